// The Verifier's library: is this candidate right, on inputs that it could not know? docs/verification.md has the rules.
#pragma once

#include "execution/build.hpp"
#include "reference/reference.hpp"
#include "kernels/verdict.hpp"

namespace pragma {

struct verify_options {
  int seeds = defaults::verify_seeds;
  int threads = 1;
  std::vector<int> cpus;
  double tolerance = 0;               ///< 0: the task's, else the dtype's default
  double call_timeout_seconds = 0;    ///< 0: max(2 s, 100x the reference's time), at most defaults::call_timeout_seconds
  double load_seconds = 0;            ///< for a module in Python to load and make its first call; 0: the default. What takes longer is not established
  uint64_t seed = 0;                  ///< of all input sets; 0: from getrandom()
  bool own_inputs_only = false;       ///< not the kinds beyond the task's own distribution
  bool allow_torch = false;           ///< candidates in Python may leave operators to Torch; the verdict names them in any case
  bool keep_sets = false;             ///< the reference keeps these sets: who asks again with this seed gets them without computing
  const std::atomic<bool>* cancel = nullptr;
};

/// How far the task can be verified at all: which null kernels (zeros, ones, a constant, a copy of an input, the answer
/// to another input) would pass on every input set. A task where one passes is unverifiable.
struct task_audit {
  std::vector<input_kind> usable;     ///< input kinds on which the reference gives finite, informative outputs
  std::vector<std::string> passing_nulls; ///< empty = verifiable
  std::vector<std::string> notes;     ///< "large values: the reference overflows at 12 elements"
  std::vector<double> tightening;     ///< of each output: factor on its tolerance (at most 1), so that no null kernel passes there; empty: 1 of each
  double tightening_of(size_t output) const { return output < tightening.size() ? tightening[output] : 1; }
};
/// One sentence for people when a null kernel passes, else empty: "this task cannot be verified: zeros would pass ...".
std::string why_unverifiable(const std::vector<std::string>& passing_nulls);
/// The same of a task that has some, with what to do about it.
error unverifiable_task(const std::vector<std::string>& passing_nulls);

expected<task_audit> audit_task(const task& t, reference& ref, const verify_options& options);

/// The verdict on a built candidate. Never fails because of the candidate (that is a verdict); an error means that the
/// reference or this machine failed.
expected<verdict> verify(const task& t, const task_audit& audit, reference& ref, const build_output& built,
                         const verify_options& options);

/// Compares one output with the reference and its oracle; `error` is |got - oracle| / allowed, worst element.
/// Rules: integers equal; where the reference is finite the candidate must be finite; where the reference is NaN/Inf the
/// candidate has the same class, or lies within tolerance of a finite oracle.
/// allowed_i = max(tolerance * (|oracle_i| + mad), reference_error_factor * |reference - oracle|_max over the tensor) with
/// mad = mean absolute deviation of the finite oracle values (verify() under constant rows: at least that on the task's own inputs).
struct comparison {
  double worst = 0;
  int64_t worst_index = -1;
  int64_t wrong = 0;
  std::vector<int64_t> where;        ///< the first of the wrong ones, at most most_listed_elements, in order
  std::vector<std::string> notes;    ///< of each of them, where more is known: the values that two indices stand for
};
inline constexpr size_t most_listed_elements = 8;
comparison compare_output(const tensor_spec& spec, std::span<const std::byte> reference_output,
                          std::span<const double> oracle, const std::byte* got, double tolerance);

} // namespace pragma
