// The search over schedules. Each finding class maps to moves (the tables are in docs/synthesis.md); a move changes the best
// schedule so far, one that does not help is left behind. For comparison the same moves come in a random order, or schedules
// are drawn blindly from the same space. One search for all kinds of schedule; used by builtin_coder.
#pragma once

#include "synthesis/search/builtin.hpp"
#include "synthesis/schedule/schedule.hpp"
#include "synthesis/schedule/schedule_move.hpp"
#include "synthesis/triton/schedule.hpp"

#include <map>
#include <set>

namespace pragma::synthesis {

/// A schedule as a candidate. Two that run the same program, built alike, are one to the search.
struct scheduled_candidate {
  candidate code;
  std::string program; ///< emitted_source::program
};

/// What the search knows about one kind of schedule.
template <class Schedule> struct search_space {
  std::vector<schedule_move<Schedule>> moves; ///< the most promising in general first
  Schedule start;
  std::string reason;                                          ///< of the start
  std::function<scheduled_candidate(const Schedule&)> emit;    ///< source, language, compiler and flags
  std::function<bool(Schedule&)> fits;                         ///< a schedule of another run has a meaning here; it is made fit
  std::function<std::optional<Schedule>(int)> safer;           ///< variants for when nothing has passed: 0, 1, ...
  std::string safer_means;
};

/// They refer to `program`, which must outlive them.
search_space<schedule> processor_space(const loop_program& program, const builtin_options& options, const std::string& title);
search_space<triton_schedule> triton_space(const loop_program& program, const builtin_options& options, const std::string& title);

/// What builtin_coder asks, whatever is searched.
class any_search {
public:
  virtual ~any_search() = default;
  virtual std::optional<candidate> next(const std::optional<attempt_feedback>& last) = 0;
  /// Of a candidate that was offered at any time, without asking for another.
  virtual void learn(const attempt_feedback& about) = 0;
};

template <class Schedule> class schedule_search : public any_search {
public:
  schedule_search(search_space<Schedule> space, const builtin_options& options, const loop_program& program);

  std::optional<candidate> next(const std::optional<attempt_feedback>& last) override;
  void learn(const attempt_feedback& about) override;

private:
  std::optional<Schedule> known_that_fits() const;
  std::optional<candidate> offer(const Schedule& s, const std::string& rationale);
  size_t drawn(size_t limit);
  /// A schedule from anywhere in the space: as many random moves as reach all of it.
  std::optional<candidate> anywhere();
  std::optional<candidate> neighbour(const Schedule& from, const std::vector<finding>& findings);

  search_space<Schedule> space_;
  builtin_options options_;
  const loop_program& program_;
  std::map<std::string, Schedule> offered_; ///< by candidate
  std::map<std::string, const schedule_move<Schedule>*> made_by_; ///< by candidate: the one move that made it
  std::map<const schedule_move<Schedule>*, double> reached_;      ///< the speed-up after that move alone from the best
  std::optional<Schedule> best_;
  double best_speedup_ = 0;
  std::vector<finding> best_findings_;
  std::set<std::string> given_;      ///< hashes of programs with their compilers and flags
  bool begun_ = false;
  int pairs_ = 0;                    ///< two moves at once that were offered
  int safer_ = 0;                    ///< safer variants of the start that were tried after failures
  uint64_t random_;
};

} // namespace pragma::synthesis
