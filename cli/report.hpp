// Self-contained HTML: the report of one run, and the table of a suite. No external resources; every text is escaped.
#pragma once

#include "diagnosis/conductor.hpp"
#include "diagnosis/roofline.hpp"

#include <string>

namespace pragma {

/// From run_document() (cli/outputs.cpp): {"run": {...}, "iterations": [...]}.
std::string render_html_report(const json& document);
/// Whether the figure of a run that was confirmed is its best attempt's of the search: the machine was busy when the winner, right again, was timed.
inline bool timed_in_search(const timing& confirmed, const timing& of_best) {
  return confirmed.candidate_seconds == of_best.candidate_seconds && confirmed.baseline_seconds == of_best.baseline_seconds;
}
/// "Why it is faster" in a few lines of facts and a chart of times: Torch's, each version that was kept, the machine's limit; then what did not
/// help. `confirmed` and `limits` may be null; `task` as in the document, for what Torch does in a call. Empty without a version that was kept and timed.
std::string render_story(const std::vector<iteration_record>& iterations, const iteration_record* best, const timing* confirmed, const machine_limits* limits,
                         const roofline_work& work, const json& task);
/// From the suite document (cli/bench.cpp): {"tasks": [...], "categories": [...], "overall": {...}, ...}.
std::string render_suite_html(const json& suite);

} // namespace pragma
