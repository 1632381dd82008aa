// The Conductor's brief to the Coder: the paper's five prompt parts as plain data. The built-in coder reads the findings,
// an LLM gets the rendered text (llm/prompts), people see it in the report.
#pragma once

#include "diagnosis/finding.hpp"
#include "diagnosis/time_table.hpp"
#include "kernels/candidate.hpp"

namespace pragma {

/// The candidate of an attempt, with its profile when it passed.
struct code_version : candidate {
  int attempt = 0;
  bool has_profile = false;
  profile measured;
};
PRAGMA_JSON(code_version, attempt, source, language, compiler, flags, origin, rationale, schedule, answers, has_profile, measured)

/// A probable cause and what to do about it, from the Verifier's log.
struct repair_hint {
  std::string symptom, cause, remedy;
};
PRAGMA_JSON(repair_hint, symptom, cause, remedy)

struct metric_note {
  std::string metric, meaning, reading, source;
};
PRAGMA_JSON(metric_note, metric, meaning, reading, source)

/// One earlier attempt in a line.
struct past_attempt {
  int number = 0;
  std::string idea, verdict;             ///< "packs the operand"; "new best", "slower", "no difference", "failed at compare: out0[3] is 0 ..."
  interval against_best;                 ///< side by side with the best of then; 0 where it was not compared
  std::string answers;                   ///< the finding that it set out to remove
  double predicted = 0;                  ///< ratio that the finding promised; 0 = nothing
};
PRAGMA_JSON(past_attempt, number, idea, verdict, against_best, answers, predicted)

struct brief {
  int attempt = 1;                       ///< the attempt that the Coder is to write
  int attempts_left = -1;                ///< with this one; -1 = no limit is known
  std::vector<past_attempt> past;        ///< all that were made, in order
  time_table table;                      ///< where the time goes in `code`, or in `best` when `code` has no profile
  double tolerance = 0, worst_error = -1; ///< allowed relative error of the last verdict; the worst as a share of it, -1 = unknown
  bool has_code = false;
  code_version code;                     ///< (1) what the Coder wrote last
  std::string failure_stage, failure;    ///< verifier's stage and log when it failed
  std::vector<repair_hint> repairs;      ///< (2) causes and remedies for errors
  std::vector<metric_note> meanings;     ///< (3) what the metrics mean
  std::vector<finding> findings;         ///< (4) results: the profile in `code`, and what it says
  bool has_best = false;
  code_version best;                     ///< (5) best version so far with its profile
  std::vector<std::string> reasoning;    ///< the trace as in the paper's Listing 1
  std::vector<std::string> actions;      ///< what to do now, most promising first
};
PRAGMA_JSON(brief, attempt, attempts_left, past, table, tolerance, worst_error, has_code, code, failure_stage, failure, repairs, meanings, findings, has_best, best, reasoning, actions)

} // namespace pragma
