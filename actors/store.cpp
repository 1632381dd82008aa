#include "actors/store.hpp"

namespace pragma {

expected<run_result> read_run(const run_store& runs, const std::string& id) {
  auto header = runs.get_run(id);
  if (!header) return fail(header.error());
  run_result result;
  auto decoded = from_json_value<run_header>(*header, "run " + id);
  if (!decoded) return fail(decoded.error());
  result.header = std::move(*decoded);
  auto iterations = runs.iterations(id);
  if (!iterations) return fail(iterations.error());
  for (const auto& value : *iterations) {
    auto record = from_json_value<iteration_record>(value, "an iteration of run " + id);
    if (!record) return fail(record.error());
    result.iterations.push_back(std::move(*record));
  }
  return result;
}

static expected<won_schedules> read_schedules(const run_store& runs, const std::string& family) {
  auto value = runs.get_schedule(family);
  if (!value) return fail(value.error());
  if (!*value) return won_schedules{};
  return from_json_value<won_schedules>(**value, "the schedules of " + family);
}

store_actor::behavior_type store(store_actor::stateful_pointer<store_state>, std::shared_ptr<run_store> runs) {
  const auto saved = [](expected<void> done) -> caf::result<bool> {
    if (!done) return to_caf(done.error());
    return true;
  };
  return {
      [runs, saved](save_atom, const run_header& header) { return saved(runs->put_run(header.id, json(header))); },
      [runs, saved](save_atom, const run_header& header, const iteration_record& record) {
        return saved(runs->put_iteration(header.id, record.number, json(record), json(header)));
      },
      [runs](read_atom, const std::string& id) { return to_result(read_run(*runs, id)); },
      [runs](recall_atom, const std::string& family) { return to_result(read_schedules(*runs, family)); },
      [runs, saved](remember_atom, const std::string& family, const won_schedule& won) -> caf::result<bool> {
        auto known = read_schedules(*runs, family);
        if (!known) known = won_schedules{}; // an unreadable list is replaced, not kept for ever
        remember(*known, won);
        return saved(runs->put_schedule(family, json(*known)));
      },
  };
}

} // namespace pragma
