// The search over schedules. Each finding class maps to moves (the table is in docs/synthesis.md and in moves()); a move
// changes the best schedule so far, one that does not help is left behind. For comparison the same moves come in a
// random order, or schedules are drawn blindly from the same space. Used by builtin_coder.
#pragma once

#include "kernels/synthesis/builtin.hpp"
#include "kernels/synthesis/schedule.hpp"

#include <functional>
#include <map>
#include <set>

namespace pragma::synthesis {

/// One way to change a schedule. apply() returns false when it does not fit this program or changes nothing.
struct move {
  std::string name;                  ///< "streaming stores"
  std::string why;                   ///< what it is good for, one clause
  std::vector<bottleneck> answers;   ///< finding classes that it answers
  std::function<bool(schedule&, const loop_program&)> apply;
};

/// Every move, the most promising in general first.
const std::vector<move>& moves();

class schedule_search {
public:
  schedule_search(const loop_program& program, const builtin_options& options, std::string title);

  std::optional<candidate> next(const std::optional<attempt_feedback>& last);
  /// Of a candidate that was offered at any time, without asking for another.
  void learn(const attempt_feedback& about);

private:
  std::optional<schedule> known_that_fits() const;
  std::optional<candidate> offer(const schedule& s, const std::string& rationale);
  size_t drawn(size_t limit);
  /// A schedule from anywhere in the space: as many random moves as reach all of it.
  std::optional<candidate> anywhere();
  std::optional<candidate> neighbour(const schedule& from, const std::vector<finding>& findings);

  const loop_program& program_;
  builtin_options options_;
  std::string title_;
  schedule start_;
  std::map<std::string, schedule> offered_; ///< by candidate
  std::optional<schedule> best_;
  std::vector<finding> best_findings_;
  std::set<std::string> given_;
  bool begun_ = false;
  int pairs_ = 0;                    ///< two moves at once that were offered
  int safer_ = 0;                    ///< safer variants of the start that were tried after failures
  uint64_t random_;
};

} // namespace pragma::synthesis
