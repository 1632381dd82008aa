// From a profiler's table to the metrics of one call: which rows belong to which launch of a kernel, what each column means, and how the
// launches of a call are put together. Used by by_manifest.cpp; the rules stand in the manifest (profilers/manifest.hpp).
#pragma once

#include "profilers/tables.hpp"

#include "diagnosis/profile.hpp"

#include <cstdint>
#include <optional>

namespace pragma {

constexpr size_t max_launches_read = 100'000; ///< of one table

struct measured_value {
  double value = 0;
  std::string unit;
};

/// One launch of a kernel, or one kernel of an operator-level profiler.
struct measured_launch {
  std::string kernel;
  std::map<std::string, measured_value> values;
};

struct kernel_note {
  std::string kernel;
  tool_note note;                     ///< without the tool's name
};

struct measured_table {
  std::vector<measured_launch> launches;
  std::vector<kernel_note> notes;
};

/// "4,116,353,727,506.43" with the separators in `thousands`; nothing for "n/a", "no data", "nan", "" and other text.
std::optional<double> read_number(std::string_view text, const std::string& thousands);

/// `wanted`: names of metrics that are kept; empty keeps every column or name with a number. The units are those of m.units, or those of
/// the manifest's metrics where the tool prints none. Launches beyond the first `most` are left out.
measured_table read_launches(const data_table& table, const pass_output& form, const collect_manifest& m, const std::vector<std::string>& wanted,
                             size_t most = max_launches_read);

/// The metrics of one call out of the launches of `calls` calls, each with a note that says how; last "launches_per_call" (count).
std::vector<metric> metrics_per_call(const std::vector<measured_launch>& launches, const collect_manifest& m, int64_t calls, const std::string& tool);

} // namespace pragma
