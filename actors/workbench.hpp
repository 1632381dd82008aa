// The machine's side of a run without any actor: one reference process, the task, and the candidates built lately. The
// Verifier and the Profiler of one node share it; its lock is the exclusive lease of the machine while it measures.
#pragma once

#include "actors/as_called.hpp"
#include "actors/messages.hpp"
#include "timing/timing.hpp"

#include <functional>
#include <list>
#include <memory>
#include <mutex>

namespace pragma {

/// For people, where more threads are asked for than can run at once; else empty.
std::string too_many_threads(int threads, int processors);

/// What the machine or the device of `request` can do at most; `again`: measured now, whatever is known of it.
using limits_source = std::function<expected<machine_limits>(reference& ref, const load_request& request, bool again)>;
/// machine_roofline() (profilers/hardware.hpp), or reference::limits() of a device.
expected<machine_limits> measured_limits(reference& ref, const load_request& request, bool again);

class workbench {
public:
  /// `more_follow`: after each candidate another one will be built; false where all are known beforehand (`pragma verify`).
  /// `turns`: the file that processes of this machine lock while they measure (machine_lease.hpp); empty: this process measures whenever it wants to (a node).
  /// `limits`: where they come from (tests hand in their own).
  explicit workbench(const std::atomic<bool>* cancel = nullptr, bool more_follow = true, std::filesystem::path turns = {}, limits_source limits = measured_limits)
      : cancel_(cancel), more_follow_(more_follow), turns_(std::move(turns)), measure_limits_(std::move(limits)) {}

  /// Starts the reference (or restarts a dead one), reads and audits the task, measures the machine's roofline once.
  expected<loaded_task> load(const load_request& request);
  /// Builds and verifies. A wrong candidate is a verdict.
  expected<verdict> verify(const candidate& c);
  /// Times (against the reference, then side by side with the best), audits, profiles.
  expected<measurement> measure(const measure_request& request);
  /// Fresh build, fresh process, unseen seeds.
  expected<confirmation> confirm(const candidate& c);

private:
  // Of a candidate of parts, whose kernels were verified one by one: the whole as its user gets it, in a fresh Torch process.
  expected<const written_winner*> whole_of(const candidate& c); ///< written and compiled once for all of them
  expected<verdict> verify_parts(const candidate& c);
  expected<measurement> measure_parts(const measure_request& request);
  expected<confirmation> confirm_parts(const candidate& c, int processes);
  device_choice where();
  expected<void> ensure_loaded();
  expected<std::shared_ptr<build_output>> built(const candidate& c, bool more_follow);
  /// A device's next candidate gets a process that is starting while this one is written, verified and timed.
  void prepare_next();
  /// The process of a candidate on a device is started before the device is taken. Where the device is full, the processes of others make
  /// room, but for that of `beside`.
  void warm(const build_output& built, const build_output* beside = nullptr);
  /// Ends the processes of all candidates but these two; how many there were.
  int release_others(const build_output* one, const build_output* other);
  /// Side by side with the best; by way of the reference where the best cannot be run. A challenger that fails is refused.
  expected<void> compare(const measure_request& request, const build_output& challenger, measurement& result);
  expected<void> time_best_again(const measure_request& request, measurement& result);
  /// Of all builds but the latest and this one: a device's memory is not for those that lost.
  void release_processes(const std::string& best);
  expected<machine_limits> limits_of(reference& ref, const task& t, bool again = false);
  std::function<std::string(double)> beyond_limits();
  timing_options timing_for(const verify_options& checks);

  const std::atomic<bool>* cancel_;
  bool more_follow_;
  std::filesystem::path turns_;
  limits_source measure_limits_;
  std::recursive_mutex mutex_;
  std::unique_ptr<reference> reference_;
  load_request request_;
  loaded_task loaded_;
  bool limits_again_ = false;                    ///< loaded_.limits were measured again
  task_audit audit_;
  verify_options search_checks_;                 ///< of all attempts: one set of seeds, drawn at load
  std::optional<temp_dir> torch_compiled_; ///< by the reference process alone, where the baseline is compiled
  std::optional<std::pair<std::string, written_winner>> whole_; ///< of the candidate of parts that was asked about last, by its id
  std::optional<build_output> next_;             ///< prepare_next()'s
  std::list<std::pair<std::string, std::shared_ptr<build_output>>> builds_; ///< most recent first, a few
};

} // namespace pragma
