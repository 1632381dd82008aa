#include "actors/as_called.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "devices/device_lease.hpp"
#include "drop_in/drop_in.hpp"
#include "timing/quantile.hpp"
#include "timing/timing.hpp"

namespace pragma {

namespace {

constexpr double measure_seconds = 3;
constexpr double other_caches = 0.3; ///< one set of inputs, called again and again, against several in turn
constexpr double call_seconds = 200e-6; ///< of Torch from Python, where the kernel's ratio was taken of replayed graphs

timing timing_of(const drop_in_result& found, const load_request& request, const std::string& torch) {
  timing t;
  t.baseline_seconds = median_of(found.torch_seconds);
  t.candidate_seconds = median_of(found.drop_in_seconds);
  t.speedup = bootstrap_ratio(found.torch_seconds, found.drop_in_seconds, 1);
  t.baseline = "Torch " + torch + ", Model called the same way, " + std::to_string(request.threads) + (request.threads == 1 ? " thread" : " threads");
  t.threads = request.threads;
  t.blocks_accepted = t.blocks_tried = static_cast<int>(found.torch_seconds.size());
  t.cache = found.protocol;
  t.note = found.other_protocol;
  return t;
}

/// The winner's code runs in the process that says these times. One call of it takes at least about what the kernel takes, and Torch about what it
/// took in the Verifier's own process: other caches explain a factor, no more.
bool believable(const timing& called, const timing& kernel) {
  return called.candidate_seconds >= other_caches * kernel.candidate_seconds && called.baseline_seconds <= kernel.baseline_seconds / other_caches + call_seconds;
}

} // namespace

expected<void> call_drop_in(const task& t, const candidate& c, const load_request& request, const std::string& torch, confirmation& result) {
  auto place = temp_dir::create("pragma-called-");
  if (!place) return fail(place.error());
  code_version code;
  code.source = c.source;
  code.language = c.language;
  code.compiler = c.compiler;
  code.flags = c.flags;
  const auto device = find_backend(request.backend);
  if (!device) return fail(device.error());
  if (auto written = write_drop_in(place->path(), t, code, request.threads, {device->torch_device, request.allow_tf32, request.allow_torch}); !written) return written;
  drop_in_options options;
  options.language = c.language;
  options.device = request.where();
  options.allow_tf32 = request.allow_tf32;
  options.measure_seconds = measure_seconds;
  // The device for it alone: a call from Python that meets another process's slice of time is milliseconds late.
  auto lease = lease_device(options.device);
  auto found = check_drop_in(place->path(), t, options);
  lease.unlock();
  if (!found && found.error().code == ec::unsupported) {
    result.not_called = found.error().message;
    return {};
  }
  if (!found && (found.error().code == ec::candidate_failed || found.error().code == ec::timeout)) {
    result.verdict.stage = verdict_stage::audit;
    result.verdict.reason = "as a drop-in, " + found.error().message;
    return {};
  }
  if (!found) return fail(found.error());
  result.drop_in = found->message;
  result.numbers = found->numbers;
  if (request.baseline != "eager") {
    result.not_called = "its process calls Model as it is, and the baseline that was asked for is " + request.baseline;
    return {};
  }
  if (found->torch_seconds.empty() || found->drop_in_seconds.empty()) {
    result.not_called = found->not_timed.empty() ? "it was not timed" : found->not_timed;
    return {};
  }
  auto called = timing_of(*found, request, torch);
  if (!believable(called, result.kernel)) {
    result.not_called = "its process says " + format_seconds(called.baseline_seconds) + " -> " + format_seconds(called.candidate_seconds) + " a call, which is not believed: the kernel alone was timed at " +
                        format_seconds(result.kernel.candidate_seconds);
    return {};
  }
  result.time = std::move(called);
  result.as_called = true;
  return {};
}

} // namespace pragma
