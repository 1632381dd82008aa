// Checks the outputs of whole slots against the reference: the part that verify() and the audits of time_candidate() share.
#pragma once

#include "verification/compare.hpp"
#include "execution/runner_process.hpp"

#include <array>
#include <string>
#include <vector>

namespace pragma {

/// "own inputs, seed 3", "large values", "tied values".
std::string input_set_name(input_kind kind, int number);

/// The first element of each output of slot 0, taken right after a fill.
using fill_probe = std::vector<std::array<std::byte, 8>>;
fill_probe probe_fill(const tensor_layout& layout, const std::byte* outputs);

/// Under constant rows normalisations and differences are zero but for rounding, which is as large as what cancelled: nothing in the output tells how large
/// that was. So are differences of what large values saturate (`s - s.mean()` of a sigmoid), and what any kind but tiny values makes equal but for rounding
/// (a LayerNorm of tanh of 41 values near one). So `scale` becomes at least the output's size on the task's own inputs. Else a kind is judged at its own size.
void judge_at_own_size(output_scale& scale, input_kind kind, double own_size);

class slot_checker {
public:
  /// tolerance: 0 = the task's, else the dtype's default. tightening: of each output, from the audit of null kernels; empty: none.
  slot_checker(const task& t, reference& ref, double tolerance, const std::vector<double>& tightening);

  /// To be called after make_inputs(slot, ...), for the task's own inputs before any other kind.
  void refresh(int slot, std::string input_set, input_kind kind = input_kind::own);

  struct outcome {
    double worst = 0;                  ///< error / allowed over the slot's outputs
    std::vector<mismatch> mismatches;  ///< of outputs with wrong elements
    bool right() const { return mismatches.empty(); }
  };
  /// `before`: what the outputs were filled with before the call; a wrong element that still holds it is called unwritten.
  outcome check(int slot, const std::byte* outputs, const fill_probe& before = {}) const;

  const std::string& input_set(int slot) const { return slots_[static_cast<size_t>(slot)].input_set; }
  /// Of the outputs, for what lies in the slot.
  const std::vector<output_scale>& scales(int slot) const { return slots_[static_cast<size_t>(slot)].scales; }
  /// Of output `i`.
  double tolerance(size_t i) const { return tolerances_[i]; }

private:
  struct slot_state {
    std::string input_set;
    std::vector<output_scale> scales;
  };
  /// Elements that differ from the reference's index, and point to a value as good: they are right. False: the output holds no indices.
  bool forgive_indices(int slot, size_t output, const std::byte* got, comparison& found) const;
  /// Elements that a step of the reference explains, which may fall on either side of a jump: they are right.
  void forgive_steps(int slot, size_t output, const std::byte* got, comparison& found) const;

  reference& ref_;
  std::vector<double> tolerances_;
  double tolerance_of_values_; ///< that indices point to: in a tensor that may be no output, so as tight as any of them
  std::vector<slot_state> slots_;
  std::vector<double> own_sizes_; ///< of each output: the largest mean absolute deviation on own inputs so far
};

/// Fills the outputs of slots [first, first + count): 0xA5 bytes in floating tensors (a small finite number), 0x5A in
/// others. Together with runner_process::poison() (NaN, 0xA5) no value of any dtype is left that an unwritten element
/// could be mistaken for in both.
void fill_outputs(const tensor_layout& layout, std::byte* outputs, int first, int count);
/// Fingerprint of all tensors of one slot.
uint64_t slot_fingerprint(const tensor_layout& layout, const std::byte* memory, int slot);
/// Worst first, the `keep` first of them.
void keep_worst(std::vector<mismatch>& mismatches, size_t keep = 5);

} // namespace pragma
