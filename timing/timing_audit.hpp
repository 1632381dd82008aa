// The audits of a candidate that is timed: is its speed real? Each looks for one way of being fast without doing the work on every
// call. docs/measuring.md says what each one can and cannot see. Used by time_pair() only. Between the calls made here the
// candidate stands still.
#pragma once

#include "kernels/seeds.hpp"
#include "timing/repeated_look.hpp"
#include "timing/timing.hpp"
#include "verification/slot_checker.hpp"

#include <optional>
#include <string>

namespace pragma {

/// What an audit found, as one sentence, and the elements that show it.
struct finding_of_audit {
  verdict_stage stage = verdict_stage::audit; ///< not_established: what was seen may be the machine's doing
  doubt why_not = doubt::none;
  bool by_time = false;                       ///< shown by times alone: a second process has to show it, too
  std::string reason;
  std::vector<mismatch> mismatches;
};

class timing_audit {
public:
  /// `checker` holds the slots' present contents. `cpus`: where the candidate runs.
  timing_audit(const task& t, reference& ref, runner_process& runner, slot_checker& checker, uint64_t input_seed,
               const timing_options& options, std::vector<int> cpus, double call_timeout);

  using result = expected<std::optional<finding_of_audit>>; ///< nothing: honest; error: only what the candidate is not to blame for

  /// A batch as long as a timed sample, with garbage in the outputs before it, leaves right outputs.
  result batch_is_right(int64_t calls, const std::string& when);
  /// Unseen inputs take as long as seen ones, outputs that still hold the answer save nothing, and the first calls of a batch take as long
  /// as all others. `call_seconds`: of one call in the timed batches. Straight after batch_is_right(): the answers in the outputs are taken for known ones.
  result work_is_done_on_every_call(double call_seconds);
  /// Inputs and outputs are exchanged in the middle of a batch: at its end the outputs answer the new inputs.
  result batch_follows_its_inputs(double call_seconds);

private:
  using buffer = std::vector<std::byte>;
  enum class pass { unseen, seen, kept, none }; ///< new inputs; known ones; known ones, with their answers left in the outputs; no call at all
  struct cost {
    double wall = 0, cpu = -1; ///< seconds; CPU time of the whole process
  };
  /// Contents that the candidate has answered rightly.
  struct known_set {
    buffer inputs, answers;
    std::vector<std::vector<output_scale>> scales; ///< per slot
  };
  struct looks {
    repeated_look content, done, batch;  ///< of a pass: unseen inputs against seen ones, those against kept answers, a batch's first calls against as many of all
    double usual = 1e300;                ///< least seconds of a call in a batch
    double waited = 0, lasted = 0;       ///< seconds of all batches: for a processor that somebody else had, and from beginning to end
  };

  result call(int first, int count, int64_t calls, const std::string& when, cost* spent = nullptr, const interruption* inside = nullptr);
  result compare_slots(int first, int count, const fill_probe& before, const std::string& when);
  expected<void> new_inputs(int slots, const std::string& name); ///< in the first slots, none that this process has seen
  buffer copy_inputs(int slots) const;
  void put_inputs(const buffer& bytes);
  buffer copy_outputs(int slots) const;

  void learn_known_set(int slots);
  result one_round(looks& seen, int slots, double call_seconds);
  result one_pass(pass kind, const buffer& unseen, int slots, double call_seconds, cost& spent);
  result answers_as_before(int slots, const std::string& when);
  result batch_round(looks& seen, int slots, double call_seconds);
  std::optional<finding_of_audit> judge(const looks& seen, int slots, double call_seconds) const;
  double time_of(const cost& spent) const; ///< what decides: CPU time with one thread, else wall-clock time; without what a command without calls takes

  static constexpr double most_empty = 20e-6; ///< seconds of an empty command: more is not subtracted

  const task& task_;
  reference& ref_;
  runner_process& runner_;
  slot_checker& checker_;
  uint64_t input_seed_;
  int fresh_sets_ = 0; ///< made so far
  const timing_options& options_;
  std::vector<int> cpus_;
  double call_timeout_;
  cost empty_{most_empty, most_empty}; ///< of a command without calls: the least that was seen
  double usual_ = 0;            ///< seconds of a call in a batch as long as the timed ones: the least that was seen
  double preparing_ = 0;        ///< seconds that preparing the latest pass took
  seed_source order_;           ///< nobody can know what comes next
  known_set known_;
  buffer staged_inputs_, staged_outputs_;
};

} // namespace pragma
