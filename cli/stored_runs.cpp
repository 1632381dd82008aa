#include "cli/stored_runs.hpp"

#include "actors/run_log.hpp"
#include "actors/store.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/progress.hpp"

#include <algorithm>

namespace pragma::cli {

namespace {

constexpr const char* nothing_established = "not established";

/// A task is also known by its file's name.
expected<std::string> find_summary(const std::string& word, const std::vector<run_summary>& runs) {
  std::vector<named_run> known;
  for (const auto& r : runs) {
    known.push_back({r.id, r.task});
    known.push_back({r.id, r.file});
  }
  return find_run(word, known);
}

} // namespace

std::string figure_text(const run_summary& run) { return run.confirmed ? speedup_text(run.speedup) : nothing_established; }

json figure_of(const run_summary& run) { return run.confirmed ? json(run.speedup) : json(nullptr); }

std::string figure_text(const cluster_run& run) {
  if (run.speedup <= 0 || (run.state != "running" && run.state != "finished")) return nothing_established;
  return format_number(run.speedup, 2) + "x" + (run.state == "running" ? " so far" : "");
}

expected<std::string> find_run(const std::string& word, const std::vector<named_run>& known) {
  for (const auto& run : known)
    if (run.id == word) return run.id;
  if (word == "last" && !known.empty()) return known.front().id;
  for (const auto& run : known)
    if (run.task == word) return run.id;
  if (known.empty()) return fail(ec::not_found, "there is no run '" + printable(word) + "': none is recorded", "`pragma optimize TASK.py` makes one");
  std::vector<std::string> words;
  for (const auto& run : known)
    for (const auto& name : {run.id, run.task})
      if (std::find(words.begin(), words.end(), name) == words.end()) words.push_back(name);
  const auto near = nearest_names(word, words);
  return fail(ec::not_found, "there is no run '" + printable(word) + "', and no task of that name was run",
              near.empty() ? "`pragma runs` lists them" : "did you mean " + join(near, " or ") + "? `pragma runs` lists them");
}

expected<std::string> find_run(const std::string& word, head_client& client) {
  auto runs = client.runs();
  if (!runs) return fail(runs.error());
  std::vector<named_run> known;
  for (const auto& r : *runs) known.push_back({r.id, r.task});
  return find_run(word, known);
}

std::filesystem::path run_store_folder() { return data_home() / "runs"; }

expected<std::vector<run_summary>> list_stored_runs() {
  if (!std::filesystem::exists(run_store_folder() / "CURRENT")) return std::vector<run_summary>{};
  auto store = open_runs(run_store_folder(), run_store::mode::read_only);
  if (!store) return fail(store.error());
  return list_runs(*store);
}

expected<std::vector<machine_scores>> list_stored_scores() {
  std::vector<machine_scores> all;
  if (!std::filesystem::exists(run_store_folder() / "CURRENT")) return all;
  auto store = open_runs(run_store_folder(), run_store::mode::read_only);
  if (!store) return fail(store.error());
  auto values = store->all_scores();
  if (!values) return fail(values.error());
  for (const auto& value : *values) {
    auto one = from_json_value<machine_scores>(value, "the scores of a machine");
    if (!one) return fail(one.error());
    all.push_back(std::move(*one));
  }
  return all;
}

expected<run_result> read_stored_run(const std::string& word, const head_choice& head) {
  auto client = head.connect();
  if (!client) return fail(client.error());
  if (*client) {
    auto id = find_run(word, **client);
    return (*client)->record(id ? *id : word); // a head lists its newest runs only, and knows more
  }
  auto store = open_runs(run_store_folder(), run_store::mode::read_only);
  if (!store) return fail(store.error());
  if (auto run = read_run(*store, word); run || run.error().code != ec::not_found) return run;
  auto runs = list_runs(*store);
  if (!runs) return fail(runs.error());
  auto id = find_summary(word, *runs);
  if (!id) return fail(id.error());
  return read_run(*store, *id);
}

expected<std::vector<std::string>> delete_stored_runs(const std::vector<std::string>& words) {
  auto runs = list_stored_runs();
  if (!runs) return fail(runs.error());
  std::vector<std::string> ids;
  for (const auto& word : words) {
    auto id = find_summary(word, *runs);
    if (!id) return fail(id.error());
    if (std::find(ids.begin(), ids.end(), *id) == ids.end()) ids.push_back(std::move(*id));
  }
  std::vector<file_lock> claims; // all or none of them
  for (const auto& id : ids) {
    auto claim = run_store::claim(run_store_folder(), id);
    if (!claim) return fail(claim.error());
    claims.push_back(std::move(*claim));
  }
  auto store = open_runs(run_store_folder(), run_store::mode::in_turn);
  if (!store) return fail(store.error());
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto& id = ids[i];
    if (auto removed = store->remove_run(id); !removed) return fail(removed.error());
    claims[i].remove();
    std::error_code ignored;
    std::filesystem::remove(run_log_file(data_home() / "logs", id), ignored);
  }
  return ids;
}

} // namespace pragma::cli
