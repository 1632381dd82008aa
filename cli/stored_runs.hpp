// The recorded runs as every command names and shows them: which run a word means, what its task is called, what it established.
#pragma once

#include "actors/messages.hpp"
#include "cli/member.hpp"

#include <string>
#include <vector>

namespace pragma::cli {

/// "2.31x (95% 2.25-2.38)" of a confirmed run, else "not established".
std::string figure_text(const run_summary& run);
/// The speed-up of a confirmed run, else null.
json figure_of(const run_summary& run);
/// The same of a head's list, which has no interval: of a run under way "2.31x so far".
std::string figure_text(const cluster_run& run);

/// What can be named of a run.
struct named_run {
  std::string id, task;
};
/// The id that `word` means among `known` (newest first): an id, "last", or a task's name, which is its newest run.
/// not_found names what is near.
expected<std::string> find_run(const std::string& word, const std::vector<named_run>& known);
/// The same among the runs of a head.
expected<std::string> find_run(const std::string& word, head_client& client);

/// A recorded run, of the head where one is chosen, else of this machine (beside a writer). `word` as in find_run.
expected<run_result> read_stored_run(const std::string& word, const head_choice& head = head_choice::none());
/// All runs that this machine recorded, newest first; none where there is no store yet.
expected<std::vector<run_summary>> list_stored_runs();
/// What findings promised and brought, for each machine that this store knows; none where there is no store yet.
expected<std::vector<machine_scores>> list_stored_scores();
/// Removes runs from this machine's store, all or none of them; the folders of their results stay. Gives the ids. not_found; locked
/// while a process is at work on one of them, or a head has the store.
expected<std::vector<std::string>> delete_stored_runs(const std::vector<std::string>& words);

/// data_home()/runs.
std::filesystem::path run_store_folder();

} // namespace pragma::cli
