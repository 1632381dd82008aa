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
  };
}

} // namespace pragma
