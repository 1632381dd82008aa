// Where the time of one call goes: phases with their share, what bounds each, the least it could take, and the residue that nothing explains.
// From what can be had without counters: the loops of the candidate (profile::loops), its bytes against the measured bandwidths, llvm-mca's cycles
// against the measured clock. A pure function; findings take their predictions from it (predict.hpp).
#pragma once

#include "base/json.hpp"

#include <string>
#include <vector>

namespace pragma {

struct diagnosis_input;

/// What holds a phase back, by the model. `unknown`: no figure of the model comes near the time.
enum class bound { unknown, execution_units, dependency_chain, divider, calls, bandwidth, system };
NLOHMANN_JSON_SERIALIZE_ENUM(bound, {{bound::unknown, "unknown"},
                                     {bound::execution_units, "execution units"},
                                     {bound::dependency_chain, "dependency chain"},
                                     {bound::divider, "divider"},
                                     {bound::calls, "function calls"},
                                     {bound::bandwidth, "bandwidth"},
                                     {bound::system, "operating system"}})

struct time_phase {
  std::string phase;             ///< "loop at line 12", "rest of the kernel", "library functions", "operating system"
  int line = 0;                  ///< in the candidate's source; 0 = none
  double seconds = 0;            ///< of one call
  bound by = bound::unknown;
  std::string level;             ///< with `bandwidth`: "L1", "L2", "L3", "memory"
  double core_seconds = 0;       ///< that the core needs as the phase is written, with all data in L1; 0 = unknown
  double move_seconds = 0;       ///< that its bytes need at the measured bandwidth; 0 = unknown
  double least_seconds = 0;      ///< of the same work, by the units' peak and the bandwidth of its bytes; 0 = unknown
  std::string evidence;
  std::string part;              ///< what its line belongs to, by name (source_parts.hpp); "" = unknown
};
PRAGMA_JSON(time_phase, phase, line, seconds, by, level, core_seconds, move_seconds, least_seconds, evidence, part)

struct time_table {
  double seconds = 0;            ///< of one call, measured; 0: there is no table
  std::string shares;            ///< how the shares were found: "samples", "simulated instructions", "one loop"; "" = no table
  std::vector<time_phase> phases; ///< the longest first; their seconds add up to `seconds`
  double unexplained_seconds = 0; ///< what no phase's model accounts for
  std::vector<std::string> tried; ///< experiments that took time away: what was changed, and both times
  double share(const time_phase& p) const { return seconds > 0 ? p.seconds / seconds : 0; }
};
PRAGMA_JSON(time_table, seconds, shares, phases, unexplained_seconds, tried)

/// The table for a CPU's profile; empty (seconds = 0) without a measured time or for a device.
time_table table_of(const diagnosis_input& input);

/// The table as lines for people and models: a heading, a row for each phase, the residue. Empty for an empty table.
std::vector<std::string> table_lines(const time_table& table);

/// Trips of a loop in one call: callgrind's count, else by the work that one trip does against the task's (FLOPs in a product; else outputs that it stores or inputs that it loads, whichever are more trips),
/// where that does not contradict the time measured. 0 = unknown.
double trips_of(const struct loop_cost& loop, const diagnosis_input& input, double seconds);

} // namespace pragma
