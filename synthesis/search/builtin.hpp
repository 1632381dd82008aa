// The built-in coder: the task's traced graph -> loop regions -> readable C++ or Triton under an explicit schedule; the search is
// steered by findings. Deterministic, needs no key. Used by the Coder agent.
#pragma once

#include "base/tf32.hpp"
#include "diagnosis/finding.hpp"
#include "kernels/candidate.hpp"
#include "kernels/task.hpp"

#include <memory>
#include <optional>

namespace pragma {

enum class search_mode {
  findings, ///< from the analytical start, moves that answer the findings first
  unguided, ///< from the same start, the same moves from the best so far, in random order
  random    ///< schedules drawn blindly from the same space
};

struct builtin_options {
  std::string language = "c++";     ///< of the candidates (base/language.hpp)
  tf32_use tf32 = tf32_use::none;   ///< Triton: which contractions may round their factors to TF32 (about 2^-11)
  int threads = 1;
  search_mode search = search_mode::findings;
  uint64_t seed = 1;                ///< of the searches without findings
  machine_limits machine;           ///< cache sizes and SIMD width for the analytical starting point; may be empty
  std::vector<std::string> compilers; ///< C++: those that the builder has, "gcc" and "clang"; empty: not known, all are tried
  bool algebra = true;              ///< simplifications that hold for all inputs; false: compute what the reference computes
  std::string known_schedule;       ///< JSON text: tried first where it fits (synthesis/won_schedule.hpp); may be empty
  std::string known_from;           ///< where it won, for the rationale
};

/// What the loop tells the coder about the attempt before.
struct attempt_feedback {
  std::string candidate;            ///< id
  bool passed = false;              ///< verified
  bool new_best = false;
  double speedup = 0;               ///< against the reference, 0 when not measured
  std::vector<finding> findings;    ///< of this attempt (or of the best, when this one failed)
  std::string failure;              ///< reason when it did not pass
};

/// Its kernels have loops over time for recurrent layers; else their steps are written out (synthesis/lower/lower.hpp).
bool writes_loops(const std::string& language);

class builtin_coder {
public:
  /// unsupported: names each op that cannot be lowered yet ("aten.convolution").
  static expected<builtin_coder> create(const task& t, const builtin_options& options);
  builtin_coder(builtin_coder&&) noexcept;
  builtin_coder& operator=(builtin_coder&&) noexcept;
  ~builtin_coder();

  /// The next candidate, never one that was given before; empty when nothing is left to try.
  std::optional<candidate> next(const std::optional<attempt_feedback>& last);
  /// For attempts that were made side by side: what one of them showed, without asking for the next.
  void learn(const attempt_feedback& about);
  /// Facts about the graph that hold for all inputs and a person should know ("the reference computes X and throws it away").
  std::vector<finding> graph_findings() const;

private:
  struct impl;
  explicit builtin_coder(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

} // namespace pragma
