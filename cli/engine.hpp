// Runs the agents in this process for one command: the actor system, the store, the four agents, and the wait for the
// result with Ctrl-C. `optimize`, `resume` and `bench` use it.
#pragma once

#include "actors/messages.hpp"
#include "cli/member.hpp"
#include "cli/terminal.hpp"
#include "drop_in/drop_in.hpp"

#include <filesystem>
#include <functional>
#include <memory>

namespace pragma::cli {

class engine {
public:
  /// Through the head where one is chosen; else in this process, with the run store in data_home()/runs, beside other processes that do the same
  /// (locked while a head has it).
  static expected<std::unique_ptr<engine>> open(const head_choice& head = head_choice::none());
  virtual ~engine() = default;
  /// Blocks until the run has ended. locked: another process is at it. `on_event` is called from another thread, one event at a time. Runs may go on side by side; each
  /// ends when its own `cancel` turns true.
  virtual expected<run_result> run(const run_request& request, std::function<void(const run_event&)> on_event,
                                   const std::atomic<bool>& cancel = cancelled()) = 0;
  /// How many parts of one task it may be asked to run at once, at least one.
  virtual size_t side_by_side(const load_request&) const { return 1; }
};

/// On a device: gives the request the profilers that the user registered on this machine and that say how to collect.
expected<void> hand_over_collectors(load_request& load);

/// run.json: the document that the report is made from.
json run_document(const run_result& result);
/// An earlier run's drop-in, which is not of what the folder is about now. A model_new.py of the user's own stays: beside it lies no pragma_drop_in.py.
void remove_drop_in(const std::filesystem::path& folder);
/// Why a result has no drop-in: a program that calls Model is as fast (parts), or faster (one kernel). Empty where there is one.
std::string why_no_drop_in(const run_result& result);
/// Writes run.json, report.html, kernel.cpp and, but for why_no_drop_in(), the drop-in model_new.py into `folder`; returns what the drop-in's check said at the end of the
/// run, or why it was not tried there. `deploy`: with built objects for this and other processors.
expected<std::string> write_outputs(const std::filesystem::path& folder, const run_result& result, bool deploy);

} // namespace pragma::cli
