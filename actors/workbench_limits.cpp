// What a machine can do at most, as a workbench knows it: measured before the first candidate, and again before a time is not believed.
#include "actors/workbench.hpp"

#include "diagnosis/roofline.hpp"
#include "kernels/task_types.hpp"
#include "profilers/hardware.hpp"

#include <algorithm>
#include <thread>

namespace pragma {

namespace {

constexpr int busy_tries = 10;         ///< for the limits of a device that somebody else uses just now
constexpr std::chrono::seconds busy_pause{2};
constexpr double timing_slack = 1.25;  ///< times the measured roofline: what is faster is not believed (a limit is the best of many batches, and of few moments)

} // namespace

expected<machine_limits> measured_limits(reference& ref, const load_request& request, bool again) {
  return request.where().on_device() ? ref.limits(again) : machine_roofline(request.threads, again);
}

expected<machine_limits> workbench::limits_of(reference& ref, const task& t, bool again) {
  const bool on_device = request_.where().on_device();
  auto limits = measure_limits_(ref, request_, again);
  for (int tries = 0; tries < busy_tries && !again && !limits && on_device && limits.error().code == ec::measurement_failed && !(cancel_ && *cancel_); ++tries) {
    std::this_thread::sleep_for(busy_pause); // another process works on the device: a start, a check of somebody's
    limits = measure_limits_(ref, request_, again);
  }
  if (limits && !on_device && !uses(t, dtype::bfloat16) && !uses(t, dtype::int8)) limits->half_gflops = 0; // of other factors tiles are no limit
  return limits;
}

/// The limit that a time of one call lies beyond, where it does. Limits that were measured while other work ran are too low, and would accuse every good kernel of
/// a run: so they are measured once more, now that a time speaks against them, and the higher figures count from here on. The candidate stands still meanwhile (timing/),
/// and its task's reference waits.
std::function<std::string(double)> workbench::beyond_limits() {
  const auto& t = loaded_.task;
  if (loaded_.limits.peak_gflops <= 0 || t.bytes <= 0) return {};
  const auto place = [work = work_of(t, request_.tf32), this](double seconds) { return place_on_roofline(seconds, work, loaded_.limits); };
  return [place, this](double seconds) -> std::string {
    if (place(seconds).needed_share <= timing_slack) return {};
    const auto again = limits_of(*reference_, loaded_.task, true);
    if (again) loaded_.limits = better_of(loaded_.limits, *again);
    limits_again_ = limits_again_ || again.has_value();
    const auto point = place(seconds);
    if (point.needed_share <= timing_slack) return {};
    return point.limit + (again ? " (measured again just now)" : " (which could not be measured again: " + again.error().message + ")");
  };
}

} // namespace pragma
