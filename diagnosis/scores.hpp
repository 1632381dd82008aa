// What findings promised and what following them brought: kept per rule and machine, so that a rule that misleads loses weight.
#pragma once

#include "diagnosis/conductor.hpp"

namespace pragma {

/// One finding that an attempt set out to remove, and what came of it.
struct hint_outcome {
  std::string rule;                ///< class of the finding
  int attempt = 0;                 ///< that followed it
  double confidence = 0;           ///< of the finding
  double predicted = 0;            ///< ratio that it promised; 0 = nothing
  double brought = 0;              ///< side by side against the version that the finding was about
  bool better = false;             ///< the whole interval lay above 1
};
PRAGMA_JSON(hint_outcome, rule, attempt, confidence, predicted, brought, better)

/// Of one rule on one machine, over all runs.
struct rule_score {
  std::string rule;
  int followed = 0, better = 0;
  double expected = 0;             ///< sum of the confidences: how many should have been better
  int predicted = 0, near = 0;     ///< with a prediction; within 25% of it
  double log_ratio = 0;            ///< sum of log(brought / predicted) over those: its mean says by how much the rule promises too much
};
PRAGMA_JSON(rule_score, rule, followed, better, expected, predicted, near, log_ratio)

/// What one run taught; a run that goes on replaces what it said before.
struct scored_run {
  std::string run, task, finished; ///< finished: ISO time
  std::vector<hint_outcome> outcomes;
};
PRAGMA_JSON(scored_run, run, task, finished, outcomes)

/// What the run store keeps for a machine.
struct machine_scores {
  std::string machine;             ///< model of the CPU or device
  std::vector<scored_run> runs;    ///< the latest last, at most most_scored_runs
};
PRAGMA_JSON(machine_scores, machine, runs)
inline constexpr size_t most_scored_runs = 500; ///< older ones are of older rules

/// Outcomes of a run's attempts: those that name a finding of the best version of then, and were compared with that version.
std::vector<hint_outcome> outcomes_of(std::span<const iteration_record> history);

/// Adds a run, or replaces what it said before. A run without outcomes leaves no trace.
void learn(machine_scores& scores, scored_run run);

/// A row for each rule that was followed, the most followed first.
std::vector<rule_score> scores_of(const machine_scores& scores);

/// What a rule's confidence is multiplied by: (better + 4) / (expected + 4), between 0.3 and 1. A rule that was never followed counts in full.
double weight_of(const std::vector<rule_score>& scores, const std::string& rule);

/// Applies the weights to findings and puts them in order again.
void weigh(std::vector<finding>& findings, const std::vector<rule_score>& scores);

} // namespace pragma
