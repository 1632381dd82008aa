#include "actors/store.hpp"

namespace pragma {

run_summary summary_of(const run_header& run) {
  run_summary s;
  s.id = run.id;
  s.file = std::filesystem::path(run.request.load.path).stem().string();
  s.task = run.environment.task.name.empty() ? s.file : run.environment.task.name;
  s.state = run.state;
  s.started = run.started;
  s.stop_reason = run.stop_reason;
  s.best_attempt = run.best_attempt;
  s.confirmed = run.confirmed;
  s.speedup = run.final.time.speedup;
  s.wall_seconds = run.wall_seconds;
  s.owner = run.request.owner;
  s.priority = run.request.priority;
  return s;
}

static expected<json> summarise(const json& header) {
  auto decoded = from_json_value<run_header>(header, "the header of a run");
  if (!decoded) return fail(decoded.error());
  return json(summary_of(*decoded));
}

expected<run_store> open_runs(const std::filesystem::path& folder, run_store::mode m) { return run_store::open(folder, m, summarise); }

/// Who was killed could not say that it is interrupted.
static std::string state_now(const run_store& runs, const std::string& id, const std::string& recorded) {
  return recorded == "running" && runs.abandoned(id) ? "interrupted" : recorded;
}

expected<std::vector<run_summary>> list_runs(const run_store& runs) {
  auto listed = runs.list_runs();
  if (!listed) return fail(listed.error());
  std::vector<run_summary> all;
  for (const auto& [id, value] : *listed) {
    auto summary = from_json_value<run_summary>(value, "the summary of run " + id);
    if (!summary) return fail(summary.error());
    summary->state = state_now(runs, id, summary->state);
    all.push_back(std::move(*summary));
  }
  return all;
}

expected<run_result> read_run(const run_store& runs, const std::string& id) {
  auto header = runs.get_run(id);
  if (!header) return fail(header.error());
  run_result result;
  auto decoded = from_json_value<run_header>(*header, "run " + id);
  if (!decoded) return fail(decoded.error());
  result.header = std::move(*decoded);
  result.header.state = state_now(runs, id, result.header.state);
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

static expected<machine_scores> read_scores(const run_store& runs, const std::string& machine) {
  auto value = runs.get_scores(machine);
  if (!value) return fail(value.error());
  if (!*value) return machine_scores{machine, {}};
  return from_json_value<machine_scores>(**value, "the scores of " + machine);
}

store_actor::behavior_type store(store_actor::stateful_pointer<store_state>, store_opener open) {
  /// What `use` makes of the store.
  const auto with = [open](auto use) -> decltype(to_result(use(std::declval<run_store&>()))) {
    auto runs = open();
    if (!runs) return to_caf(runs.error());
    return to_result(use(**runs));
  };
  const auto saved = [](expected<void> done) -> expected<bool> {
    if (!done) return fail(done.error());
    return true;
  };
  return {
      [=](save_atom, const run_header& header) { return with([&](run_store& runs) { return saved(runs.put_run(header.id, json(header))); }); },
      [=](save_atom, const run_header& header, const iteration_record& record) {
        return with([&](run_store& runs) { return saved(runs.put_iteration(header.id, record.number, json(record), json(header))); });
      },
      [=](read_atom, const std::string& id) { return with([&](run_store& runs) { return read_run(runs, id); }); },
      [=](recall_atom, const std::string& family) { return with([&](run_store& runs) { return read_schedules(runs, family); }); },
      [=](remember_atom, const std::string& family, const won_schedule& won) {
        return with([&](run_store& runs) {
          auto known = read_schedules(runs, family);
          if (!known) known = won_schedules{}; // an unreadable list is replaced, not kept for ever
          remember(*known, won);
          return saved(runs.put_schedule(family, json(*known)));
        });
      },
      [=](scores_atom, const std::string& machine) { return with([&](run_store& runs) { return read_scores(runs, machine); }); },
      [=](scores_atom, const std::string& machine, const scored_run& run) {
        return with([&](run_store& runs) {
          auto known = read_scores(runs, machine);
          if (!known) known = machine_scores{machine, {}}; // unreadable ones are replaced
          learn(*known, run);
          return saved(runs.put_scores(machine, json(*known)));
        });
      },
  };
}

} // namespace pragma
