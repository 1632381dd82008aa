// The drawings of the reports as inline SVG: speed-up over attempts (Fig. 4 of the paper), the roofline, bars.
// Colours come from the page's style, so that they follow light and dark.
#pragma once

#include "diagnosis/conductor.hpp"
#include "diagnosis/roofline.hpp"

#include <string>
#include <utility>
#include <vector>

namespace pragma::html {

/// Speed-up of each attempt with its interval, the best so far as a step line, failed attempts as crosses on the axis.
std::string speedup_curve(const std::vector<iteration_record>& iterations);

struct roofline_dot {
  std::string label;      ///< "4", "Torch"
  double seconds = 0;     ///< of one call
  bool best = false, reference = false;
};
/// Log-log: FLOP per byte against GFLOP/s with the measured ceilings, those of matrix units where the task's products may use them; without FLOPs, GB/s of each attempt against the
/// measured bandwidths. Empty when there is nothing to compare with.
std::string roofline_plot(const machine_limits& limits, const roofline_work& work, const std::vector<roofline_dot>& dots);

/// One stacked bar with its key: shares of a whole, in seconds.
std::string time_split(const std::vector<std::pair<std::string, double>>& parts);

struct bar {
  std::string label, note;   ///< note: at the end of the bar
  double value = 0;          ///< speed-up
};
/// Horizontal bars of speed-ups on a log axis, with a line at 1 (as fast as Torch).
std::string speedup_bars(const std::vector<bar>& bars);

} // namespace pragma::html
