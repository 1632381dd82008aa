// One run of the loop as plain state: what to ask next, what an answer means, what to record. No CAF: the Conductor only
// carries the messages. Times are handed in, so that it is deterministic.
#pragma once

#include "actors/messages.hpp"

#include <chrono>
#include <map>
#include <optional>

namespace pragma {

class loop {
public:
  using clock = std::chrono::steady_clock;

  /// A new run. `id` and `now` (ISO time) are given by the caller.
  void begin(run_request request, std::string id, std::string now);
  /// Goes on where a stored run was left: same best, next attempt. Limits (attempts, time) come from `request`.
  void resume(run_result stored, const run_request& request);

  void loaded(const loaded_task& task);
  /// Which schedules could help: the family to ask the store for; empty where none is wanted, or one is known already.
  std::string wanted_schedules() const;
  void recalled(const won_schedules& known);
  /// The machine whose scores of rules weigh this run's findings; empty where there is none, or it has them.
  std::string wanted_scores() const;
  void scored(const machine_scores& known);
  /// What this run's findings promised and brought.
  scored_run outcomes() const;
  coder_setup coder_request() const;
  /// The attempt that is being made (from 1).
  int attempt() const { return static_cast<int>(history_.size()) + 1; }
  /// `sibling`: beside one that was just asked for; nothing was learned in between.
  code_request code_request_now(bool sibling = false);
  void coded_now(const coded& answer);
  void verified(const verdict& v);
  bool needs_measurement() const { return current_.passed(); }
  measure_request measure_request_now() const;
  void measured(const measurement& m);
  /// The best of before, where that measurement has a better figure for it: to be saved, too.
  const iteration_record* retimed() const;
  /// The measurement could not be taken (a noisy machine): the attempt is recorded as such and the loop goes on.
  void not_measured(const error& e);
  /// Diagnoses, judges, explains; appends to the history. The record is to be saved before anything else happens.
  const iteration_record& conclude(std::string now);

  /// Metrics that the last attempt's findings rest on and that were not looked up yet.
  look_up wanted_documentation() const;
  /// Puts what is known beside the last attempt's findings; `asked` is not asked for again.
  const iteration_record& documented(const look_up& asked, const looked_up& answer);

  /// Empty while the run should go on.
  std::string stop_reason() const;
  const iteration_record* best() const;
  candidate best_candidate() const;
  /// The best is what it was before the parts were tried, and was confirmed then: that stands.
  bool still_confirmed();
  /// The winner's confirmation. A busy machine leaves it unconfirmed, or with the figure of the search. False: it failed, the next best is to be confirmed (best() has changed).
  bool confirmed(const confirmation& c, double seconds);
  /// The attempt that the last confirmation refused, to be stored again as such; null: none.
  const iteration_record* refused() const { return refused_ > 0 ? &history_[static_cast<size_t>(refused_ - 1)] : nullptr; }
  /// What the winner teaches: its family and schedule; an empty family where there is nothing to keep.
  std::pair<std::string, won_schedule> lesson() const;
  void finish(std::string state, std::string reason, std::string now);

  const run_header& header() const { return header_; }
  const std::vector<iteration_record>& history() const { return history_; }
  run_result result() const { return {header_, history_}; }
  void add_usage(const chat_usage& usage);

private:
  double seconds() const;
  /// Limits that were too low before: what is diagnosed and reported from here on rests on the better ones.
  void measured_again(const machine_limits& limits);
  void rank();
  code_request request_after(size_t finished) const;

  run_header header_;
  std::vector<iteration_record> history_;
  iteration_record current_;
  std::map<std::string, std::optional<citation>> documentation_; ///< by metric; nothing: the compendium does not know it
  int refused_ = 0;                       ///< number of the attempt that lost its confirmation just now
  size_t asked_at_ = 0;                   ///< attempts that were over when the Coder was asked last
  int retimed_ = 0;                       ///< attempt
  int confirmed_before_ = 0;              ///< of a run that goes on with given candidates: the attempt whose confirmation it has
  interval called_;                       ///< of a run that goes on: the speed-up of its best as a program calls it; 0 where it has none
  bool resumed_ = false;
  double seconds_before_ = 0;
  clock::time_point started_, attempt_started_;
};

} // namespace pragma
