// The audits of a candidate that was just timed: is its speed real? Each looks for one way of being fast without doing
// the work on every call. docs/measuring.md says what each one can and cannot see. Used by time_candidate() only.
#pragma once

#include "kernels/slot_checker.hpp"
#include "kernels/timing.hpp"

#include <optional>
#include <string>

namespace pragma {

class timing_audit {
public:
  /// `checker` holds the slots' present contents. `cpus`: where the candidate runs.
  timing_audit(const task& t, reference& ref, runner_process& runner, slot_checker& checker, uint64_t input_seed,
               const timing_options& options, std::vector<int> cpus, double call_timeout);

  /// A trick that was found, as one sentence, and the elements that show it; nothing when it is honest.
  struct finding {
    verdict_stage stage = verdict_stage::audit;
    std::string reason;
    std::vector<mismatch> mismatches;
  };
  using result = expected<std::optional<finding>>; ///< error: only what the candidate is not to blame for

  /// A batch as long as a timed sample, with garbage in the outputs before it, leaves right outputs.
  result batch_is_right(int64_t calls, const std::string& when);
  /// Unseen inputs take as long as seen ones, and outputs that still hold the answer save nothing. `call_seconds`: of
  /// one call in the timed batches; a single verified pass must agree with it.
  result work_is_done_on_every_call(double call_seconds);
  /// Inputs and outputs are exchanged in the middle of a batch: at its end the outputs answer the new inputs.
  result batch_follows_its_inputs(double call_seconds);
  /// The process rests while nobody calls it.
  result rests_between_calls();

private:
  struct pass_times { ///< of one pass over `slots` slots
    double unseen = 1e300, seen = 1e300, kept = 1e300;
    double work = 1e300;  ///< CPU time of a pass on seen inputs: what it costs whatever else the machine does
    double batch = 1e300; ///< CPU time of a call in a batch as long as the timed ones
    int slots = 1;
  };
  expected<void> new_inputs(int slots, const std::string& name); ///< in the first slots, none that this process has seen
  result compare_slots(int first, int count, const fill_probe& before, const std::string& when);
  result call(int first, int count, int64_t calls, const std::string& when);
  result one_round(pass_times& times, double call_seconds);
  std::optional<finding> judge(const pass_times& times, double call_seconds) const;
  std::vector<std::byte> copy_inputs(int slots) const; ///< of the first slots
  void put_inputs(const std::vector<std::byte>& bytes);
  double pass_bytes() const;

  const task& task_;
  reference& ref_;
  runner_process& runner_;
  slot_checker& checker_;
  uint64_t input_seed_;
  int fresh_sets_ = 0; ///< made so far
  const timing_options& options_;
  std::vector<int> cpus_;
  double call_timeout_;
};

} // namespace pragma
