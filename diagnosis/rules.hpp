// diagnose(): metrics, their change against the best version, and the measured roofline -> findings, most limiting first.
// Pure functions; thresholds stand in one table (thresholds()) with their sources. Used by the Conductor.
#pragma once

#include "diagnosis/finding.hpp"
#include "diagnosis/roofline.hpp"

namespace pragma {

/// What diagnose() may know besides the profile: the task's work among it.
struct diagnosis_input : roofline_work {
  const profile* current = nullptr;      ///< never null
  const profile* best = nullptr;         ///< the best version so far; may be null
  const machine_limits* limits = nullptr;///< may be null: no roofline findings then
  std::string source;                    ///< the candidate's source (streaming stores, accumulators)
  std::vector<std::string> flags;        ///< that it was built with
  int threads = 1;
};

std::vector<finding> diagnose(const diagnosis_input& input);

/// What a diagnosis rests on besides the profile, as it is kept beside one (`pragma profile --json`): it can then be made again, on another machine and by later rules.
struct diagnosed_with {
  roofline_work work;
  machine_limits limits;
  std::string source;                      ///< of the candidate
  std::vector<std::string> flags;
  int threads = 1;
};
PRAGMA_JSON(diagnosed_with, work, limits, source, flags, threads)
/// `current` must outlive the answer, and so must `with`.
diagnosis_input diagnosis_of(const diagnosed_with& with, const profile& current);

/// One row of the table of thresholds.
struct threshold {
  std::string name;
  double value;                          ///< from here on it counts as evidence, with half its weight
  std::string unit, source;              ///< the document or measurement it comes from
  double full;                           ///< from here on with its whole weight; below `value`: low figures are the bad ones
};
const std::vector<threshold>& thresholds();

/// What a metric means and how to read it (the built-in catalogue; the knowledge base extends it).
struct metric_meaning {
  std::string name, unit, meaning, reading, source;
};
const std::vector<metric_meaning>& metric_catalogue();
const metric_meaning* find_meaning(std::string_view metric_name);

} // namespace pragma
