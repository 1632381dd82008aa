// Rules about launches on a device: calls that are as short as a launch, and grids that do not fill the machine.
#include "base/text.hpp"
#include "diagnosis/rule_context.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::rule::device {

namespace {

double seconds_of(const metric& m) {
  if (m.unit == "ns" || m.unit == "nsecond") return m.value * 1e-9;
  if (m.unit == "us" || m.unit == "usecond") return m.value * 1e-6;
  if (m.unit == "ms" || m.unit == "msecond") return m.value * 1e-3;
  return m.value;
}

} // namespace

double launching_share(const facts& f) {
  const double launch = f.in.limits ? f.in.limits->launch_seconds : 0;
  return f.seconds > 0 ? std::min(1.0, launch * std::max(1.0, f.value_or("launches_per_call", 1)) / f.seconds) : 0;
}

std::optional<finding> launch_bound(const facts& f) {
  if (f.seconds <= 0) return std::nullopt;
  evidence_for e(f, bottleneck::launch_bound);
  const double kernels = std::max(1.0, f.value_or("launches_per_call", 1));
  const double launch = f.in.limits ? f.in.limits->launch_seconds : 0;
  if (launch > 0) {
    const double share = launching_share(f) * 100;
    e.derived("seconds_per_call", f.seconds, "s", provenance::measured, severity(limit::launch_share, share),
              "one call takes " + format_seconds(f.seconds) + ", and " + (kernels > 1 ? short_number(kernels) + " launches" : std::string("a launch")) + " alone " + format_seconds(launch * kernels));
  } else {
    e.derived("seconds_per_call", f.seconds, "s", provenance::measured, severity(limit::device_call_seconds, f.seconds), "one call takes " + format_seconds(f.seconds));
  }
  if (const auto* duration = f.first({"gpu__time_duration.sum", "kernel_duration", "Task Duration(us)"}); duration && duration->value > 0) {
    const double inside = seconds_of(*duration);
    const double outside = (1 - inside / f.seconds) * 100;
    e.derived(duration->name, duration->value, duration->unit, provenance::measured, 0.8 * severity(limit::outside_kernels, outside),
              "the kernels themselves run " + format_seconds(inside) + " of the " + format_seconds(f.seconds) + " that a call takes");
  }
  if (!e.any()) return std::nullopt;
  if (f.value_or("launches_per_call", 0) == 1) { // counted: there is nothing in the call that it could be fused with
    e.limit_reached(nothing_to_follow);
    return e.finish("Launching is a good part of the call, which is one launch: with nothing in it to fuse it is at its limit.",
                    {"Stop here, or change what is computed: fuse it with the operations before and after it, outside of this call."});
  }
  std::vector<std::string> remedies;
  if (kernels > 1) remedies.push_back("Fuse the " + short_number(kernels) + " kernels of a call into one, or at least those that pass a tensor on.");
  else remedies.push_back("One kernel for the whole call: fuse whatever else forward() launches, and do nothing but allocate and launch in it.");
  remedies.push_back("Keep Python out of the call: compute grids and strides once in __init__, pass few arguments, no autotune key that changes.");
  remedies.push_back("Combine partial results with tl.atomic_add in the same kernel where the second kernel is tiny, if the order of the sum may vary.");
  return e.finish("The kernel is so short that launching it is a good part of the time.", std::move(remedies));
}

std::optional<finding> tail_effect(const facts& f) {
  const auto waves = f.value("launch__waves_per_multiprocessor"), grid = f.value("launch__grid_size");
  auto units = f.value("launch__sm_count");
  if (!units && f.in.limits && f.in.limits->compute_units > 0) units = f.in.limits->compute_units;
  evidence_for e(f, bottleneck::tail_effect);
  bool unfilled = false;
  if (grid && units && *grid > 0 && *units > 0 && (!waves || *waves < 1)) {
    // All blocks run at once: the fullest multiprocessor decides.
    const double each = *grid / *units, idle = 1 - each / std::ceil(each);
    unfilled = *grid < *units;
    e.derived("launch__grid_size", *grid, "count", provenance::measured, severity(limit::tail_share, idle * 100),
              short_number(*grid) + " blocks on " + short_number(*units) + " multiprocessors" +
                  (unfilled ? " leave " + format_number(idle * 100, 0) + "% of them idle"
                            : ": some have " + short_number(std::ceil(each)) + ", and all of them together idle " + format_number(idle * 100, 0) + "% of the time"));
  } else if (waves && *waves >= 1) {
    const double idle = 1 - *waves / std::ceil(*waves - 1e-6);
    e.derived("launch__waves_per_multiprocessor", *waves, "ratio", provenance::measured, severity(limit::tail_share, idle * 100),
              short_number(*waves) + " waves: in the last one " + format_number((std::ceil(*waves) - *waves) * 100, 0) + "% of the places are empty, " + format_number(idle * 100, 0) + "% of all the time");
  }
  if (!e.any()) return std::nullopt;
  if (unfilled)
    return e.finish("The grid does not fill the device: multiprocessors have no block to run.",
                    {"Start more programs: smaller BLOCK, one row for each program, or a 2-D tiling of the output.",
                     "Split the reduced axis (split-K): each program reduces a part, and a second small kernel combines the parts; aim at two or more programs for each multiprocessor.",
                     "Fewer warps for each program (num_warps of 1 to 4) when rows are short, so that smaller programs make a larger grid."});
  return e.finish("The last wave of blocks fills only a part of the device while the rest waits for it.",
                  {"Change BLOCK_M and BLOCK_N (or rows for each program) so that the grid is just below a whole number of waves.",
                   "Make programs persistent: as many as the device holds at once, each looping over tiles with a stride of the grid.",
                   "Split the reduced axis for the last tiles (split-K, stream-K), or use smaller tiles so that a partial wave costs less."});
}

} // namespace pragma::rule::device
