#include "diagnosis/scores.hpp"

#include <algorithm>
#include <cmath>

namespace pragma {

namespace {

constexpr double least_evidence = 4; ///< attempts that must speak against a rule before they count in full
constexpr double least_weight = 0.3; ///< nobody follows what is never shown, so that no rule is silenced for ever
constexpr double near_enough = 0.25;

} // namespace

std::vector<hint_outcome> outcomes_of(std::span<const iteration_record> history) {
  std::vector<hint_outcome> all;
  const iteration_record* best = nullptr;
  for (const auto& r : history) {
    if (best && r.passed() && r.against_best.value > 0)
      for (const auto& f : best->findings) {
        if (json(f.what).get<std::string>() != r.code.answers) continue;
        all.push_back({r.code.answers, r.number, f.confidence, f.seconds_without > 0 ? f.seconds / f.seconds_without : 0, r.against_best.value, r.against_best.low > 1});
        break;
      }
    if (r.new_best) best = &r;
  }
  return all;
}

void learn(machine_scores& scores, scored_run run) {
  std::erase_if(scores.runs, [&](const scored_run& r) { return r.run == run.run; });
  if (run.outcomes.empty()) return;
  scores.runs.push_back(std::move(run));
  if (scores.runs.size() > most_scored_runs) scores.runs.erase(scores.runs.begin(), scores.runs.end() - most_scored_runs);
}

std::vector<rule_score> scores_of(const machine_scores& scores) {
  std::vector<rule_score> rules;
  for (const auto& run : scores.runs)
    for (const auto& o : run.outcomes) {
      auto at = std::find_if(rules.begin(), rules.end(), [&](const rule_score& s) { return s.rule == o.rule; });
      if (at == rules.end()) at = rules.insert(at, rule_score{o.rule, 0, 0, 0, 0, 0, 0});
      ++at->followed;
      at->better += o.better;
      at->expected += std::clamp(o.confidence, 0.0, 1.0);
      if (!(o.predicted > 0) || !(o.brought > 0)) continue;
      ++at->predicted;
      at->near += std::fabs(o.brought / o.predicted - 1) <= near_enough;
      at->log_ratio += std::log(o.brought / o.predicted);
    }
  std::stable_sort(rules.begin(), rules.end(), [](const rule_score& a, const rule_score& b) { return a.followed > b.followed; });
  return rules;
}

double weight_of(const std::vector<rule_score>& scores, const std::string& rule) {
  for (const auto& s : scores)
    if (s.rule == rule) return std::clamp((s.better + least_evidence) / (s.expected + least_evidence), least_weight, 1.0);
  return 1;
}

void weigh(std::vector<finding>& findings, const std::vector<rule_score>& scores) {
  for (auto& f : findings)
    if (f.what != bottleneck::at_roofline) f.confidence *= weight_of(scores, json(f.what).get<std::string>());
  std::stable_sort(findings.begin(), findings.end(), [](const finding& a, const finding& b) { return a.confidence > b.confidence; });
}

} // namespace pragma
