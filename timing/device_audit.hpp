// One running candidate on a device as seen from here, the clock that it is timed by, and the audits of what its process says. Used by
// device_timing.cpp only; docs/devices.md says what each audit sees.
#pragma once

#include "reference/call_limit.hpp"
#include "timing/timing_audit.hpp"

#include <chrono>
#include <memory>

namespace pragma {

constexpr double shortest_device_command = 20; ///< seconds, the limit of one
constexpr int64_t probe_calls = 40;            ///< to find out how long a call takes

/// How both sides of one comparison are timed.
enum class device_clock_kind { events, graphs, our_clock };
/// For timing::cache: what was done before each call, and by which clock it was timed.
const char* description(device_clock_kind how);

/// compare_times() on the clock of a device: it advances by what the timed calls took there, and not by flushes and launches. A process
/// whose clock stands still could go on for ever, so that ours has a limit, too.
class device_clock {
public:
  /// `look`: seconds by our clock that a first look at both sides took.
  device_clock(const timing_options& given, double look);
  timed_side side(std::string name, pid_t process, std::function<expected<double>(int64_t)> seconds_of, std::shared_ptr<error> failure = nullptr);
  /// `share`: of the wall-clock time that the device's clock advances in.
  timing_options options(timing_options given, double share) const;

private:
  std::shared_ptr<double> now_ = std::make_shared<double>(0);
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double most_;
};

struct device_side {
  std::shared_ptr<runner_process> runner;
  int slots = 1;
  call_limit one;
  double timeout = shortest_device_command; ///< of one call

  device_side(std::shared_ptr<runner_process> process, const reference& ref, const call_limit& limit_of_one);
  int64_t few(int64_t wanted) const { return one.few(wanted, slots); }
  double limit(int64_t calls) const { return one.of(calls, few(probe_calls)); }
  /// Seconds by the device's events.
  expected<double> events(int64_t calls, bool graph) const { return runner->time(0, slots, calls, graph, limit(calls)); }
  /// Seconds of `calls` calls back to back by our clock, without what an empty command costs.
  expected<double> outer(int64_t calls, bool graph) const;
  /// Seconds of fetching the results of all slots.
  expected<double> downloading() const;
  expected<double> seconds(int64_t calls, device_clock_kind how) const {
    return how == device_clock_kind::our_clock ? outer(calls, false) : events(calls, how == device_clock_kind::graphs);
  }
  /// As a side of compare_times(): while the other one is timed, it stands still.
  timed_side timed(device_clock& clock, const std::string& name, device_clock_kind how, std::shared_ptr<error> failure) const;
};

/// The candidate's audits while it is timed.
class device_audit {
public:
  device_audit(const device_side& side, const device_choice& device, reference& ref, slot_checker& checker, uint64_t seed)
      : side_(side), device_(device), ref_(ref), checker_(checker), seed_(seed) {}

  using answer = timing_audit::result;

  /// What the latest calls left on the device is right.
  answer results_are_right(const std::string& when);
  /// Our clock sees no more than the events say, and calls are over when the process says so. `doubtful`: it sees more. Launching from Python could be
  /// that on a slow or busy host, and work outside of the events as well; no limit tells them apart, so nobody is accused and our clock counts.
  answer clock_agrees(double call_seconds, device_clock_kind how, bool& doubtful);
  /// Contents that it never saw take as long as those that it did.
  answer unseen_is_as_fast(double call_seconds, device_clock_kind how);
  /// A call alone takes no longer than one among the many that were timed: else it leaves out some of them.
  answer alone_as_among_many(double call_seconds, device_clock_kind how);
  /// Calls from Python are after timing what they were while it was verified: right on contents that it never saw, and what it leaves to Torch is
  /// what it left to it then. Replays of a graph call nothing of a module, so that as many calls are made first: users call the module.
  answer calls_as_before(const std::vector<std::string>& before, double call_seconds, device_clock_kind how);

private:
  /// Results that are fetched after many calls come as soon as when they are fetched again.
  answer calls_are_over(int64_t calls, device_clock_kind how);
  expected<std::vector<mismatch>> wrong_results();
  /// A graph holds the work of a call and none of its launches from Python: whether one does all of it in so many seconds.
  expected<bool> replays_in(double seconds, int64_t calls);

  const device_side& side_;
  const device_choice& device_;
  reference& ref_;
  slot_checker& checker_;
  uint64_t seed_;
};

} // namespace pragma
