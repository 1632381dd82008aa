// The Conductor's judgement as pure functions: better or worse than the best, when to stop, the trace of its reasoning, the
// brief for the Coder. The actor (actors/conductor) only moves messages.
#pragma once

#include "base/defaults.hpp"
#include "diagnosis/brief.hpp"
#include "kernels/verdict.hpp"
#include "diagnosis/rules.hpp"

#include <set>
#include <span>

namespace pragma {

/// Everything that one turn of the loop left behind; stored in RocksDB as it is.
struct iteration_record {
  int number = 0;                      ///< from 1
  code_version code;
  pragma::verdict verdict;
  std::vector<finding> findings;
  bool new_best = false;
  interval against_best;               ///< measured side by side; 0 when there was no best
  time_table table;                    ///< where the time of a call goes
  std::vector<std::string> reasoning, actions;
  double code_seconds = 0, build_seconds = 0, verify_seconds = 0, time_seconds = 0, profile_seconds = 0, wall_seconds = 0;
  std::string finished;                ///< ISO time
  bool passed() const { return verdict.passed(); }
  bool established() const { return verdict.established(); } ///< else nothing was found out, which is not the candidate's failure
  bool failed() const { return !passed() && established(); }
  std::string stage() const { return json(verdict.stage).get<std::string>(); } ///< in words: "compare", "not established"
};
/// Beside its fields a record's JSON has what lists of attempts show: "candidate" (its id), "origin", "stage", "reason".
/// Reads records of earlier versions as well, which kept schedule and log outside of code and verdict.
void to_json(json& j, const iteration_record& r);
void from_json(const json& j, iteration_record& r);

enum class judgement { first, better, worse, same, failed, unknown };
/// Of a candidate that passed, `against_best` is the side-by-side ratio best time / current time: better when its whole interval lies above 1,
/// worse when below, same otherwise. Unknown where nothing could be established.
judgement judge(const iteration_record& current, bool has_best);

/// The trace as in the paper's Listing 1: headline, historical best, current code, analysis, action.
std::vector<std::string> explain(const iteration_record& current, const iteration_record* best, judgement j);

/// Causes and remedies for a failed candidate, from the verdict's stage, reason and log, in the words of its language (base/language.hpp).
std::vector<repair_hint> repairs_for(const verdict& v, const std::string& language = "c++");

/// Further metrics that would confirm or refute the findings, most telling first, at most four: events by their names in
/// perf-list(1), for "cuda" metrics by ncu's names. Which of them exist is for the Profiler's machine to say.
std::vector<std::string> metrics_to_ask(const std::vector<finding>& findings, const std::string& backend = "cpu");

/// What a finding of the class `answers` promises: time with it over time without; 0 = there is none, or it predicts nothing.
double predicted_ratio(const std::vector<finding>& findings, const std::string& answers);

/// What to do after this attempt, most promising first: its own actions, else its findings' remedies, else repairs.
std::vector<std::string> actions_of(const iteration_record& r);

/// Of an attempt's reasoning what no other part of a brief says: how it compares, and what moved. All of it where it has no analysis.
std::vector<std::string> comparison_of(const iteration_record& r);

/// Each attempt in a line, in order.
std::vector<past_attempt> past_attempts(std::span<const iteration_record> history);

/// Remedies that an attempt was asked to follow and that brought no new best.
std::set<std::string> tried_in_vain(std::span<const iteration_record> history);
void leave_out(std::vector<finding>& findings, const std::set<std::string>& remedies);

/// "The same 3 elements of out1 are wrong as in attempt 2" where a failed comparison found what the one before found; else empty. `before` may be null.
std::string same_elements(const iteration_record& failed, const iteration_record* before);

/// Assembles the five parts. `last` and `best` may be null (first attempt); `backend` then says in which words to begin. `history`: all attempts, `last`
/// being the latest; `attempts`: how many may be made, 0 = not known.
brief make_brief(int attempt, const iteration_record* last, const iteration_record* best, const std::string& backend = "cpu",
                 std::span<const iteration_record> history = {}, int attempts = 0);

struct stop_rules {
  int attempts = defaults::attempts;
  double max_seconds = 0;              ///< wall clock of the run, once an attempt was made; 0 = none
  double target_speedup = 0;           ///< stop when the interval's low end reaches it, 0 = none
  double roofline_share = defaults::stop_at_roofline_share;
  int patience = 0;                    ///< attempts without a new best, 0 = none
};
PRAGMA_JSON(stop_rules, attempts, max_seconds, target_speedup, roofline_share, patience)
/// Empty while the run should go on, else the reason for people.
std::string stop_reason(const stop_rules& rules, const std::vector<iteration_record>& history, double seconds_so_far);

} // namespace pragma
