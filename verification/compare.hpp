// Comparing one output tensor with the reference and its float64 oracle, and saying in words what is wrong with it.
// compare_output() (verify.hpp) is the whole rule; the parts here let the Verifier and the audit of null kernels reuse
// what depends on the reference only. docs/verification.md derives the rule.
#pragma once

#include "kernels/verdict.hpp"
#include "verification/verify.hpp"

#include <span>
#include <string>
#include <vector>

namespace pragma {

/// What of an output's allowed error depends on the reference only.
struct output_scale {
  double mean = 0;             ///< of the finite oracle values
  double mad = 0;              ///< mean absolute deviation of the finite oracle values; where few large ones make it, ten times what nine of ten lie below
  double reference_error = 0;  ///< max |reference - oracle| over elements where both are finite
  int64_t finite = 0;          ///< elements whose reference value is finite (integers: all)
  double largest = 0;          ///< |oracle|
  bool heavy_tail = false;     ///< few large values make the deviation
  // Where few large values make the deviation, the largest error is theirs, and the others are judged by errors of their own:
  double relative_error = 0;   ///< max |reference - oracle| / |oracle|, where that is small for every element; else 0
  struct slices {              ///< the elements with one index in a dimension
    int64_t stride = 1, extent = 1;
    std::vector<double> errors; ///< by that index: max |reference - oracle|
  };
  slices part;                 ///< of the dimension whose slices differ most; nothing where none do
  /// The error of the reference that stands for an element's.
  double error_at(int64_t index, double value) const;
};
output_scale scale_of(const tensor_spec& spec, std::span<const std::byte> reference_output, std::span<const double> oracle);

/// compare_output() with the scale already known.
comparison compare_output(const tensor_spec& spec, std::span<const std::byte> reference_output,
                          std::span<const double> oracle, const output_scale& scale, const std::byte* got, double tolerance);

/// Elements that the rule calls wrong, all of them: where, what they are, and the error that was allowed there (whole numbers: 0). Nothing where there are more than `most`.
struct wrong_elements {
  std::vector<int64_t> positions;
  std::vector<double> got, allowed;
};
wrong_elements find_wrong(const tensor_spec& spec, std::span<const std::byte> reference_output, std::span<const double> oracle, const output_scale& scale, const std::byte* got,
                          double tolerance, size_t most);

/// Distance from 1 to the next value of a floating type; float32's of all others.
double epsilon_of(dtype type);

/// The smallest tolerance under which `got` would be accepted: 0 when it lies within the reference's own error
/// everywhere (no tolerance refuses it), infinity when none accepts it. Over elements [first, first + count) only; `got`
/// holds just those.
double needed_tolerance(const tensor_spec& spec, std::span<const std::byte> reference_output, std::span<const double> oracle,
                        const output_scale& scale, const std::byte* got, int64_t first, int64_t count);
double needed_tolerance(const tensor_spec& spec, std::span<const std::byte> reference_output, std::span<const double> oracle,
                        const output_scale& scale, const std::byte* got);

/// The tolerance of a dtype (base/defaults.hpp); 0 for integers, which must be equal.
double default_tolerance(dtype type);

double element_value(dtype type, const std::byte* data, int64_t index);
/// Writes `value` converted to the dtype (rounded for integers, non-zero is true).
void set_element(dtype type, std::byte* data, int64_t index, double value);
/// With six digits, "nan", "inf", "-inf".
std::string number_text(double value);
/// Shortest text that tells it from its neighbours for people: "0.7312", "nan", "-inf", "17".
std::string element_text(dtype type, const std::byte* data, int64_t index);
std::vector<int64_t> position_of(const tensor_spec& spec, int64_t index);

/// mismatch::got of an element that the candidate did not write.
inline constexpr const char* unwritten_text = "not written";

/// The worst element of one output as plain data.
mismatch describe_mismatch(const tensor_spec& spec, std::span<const std::byte> reference_output, std::span<const double> oracle,
                           const std::byte* got, const comparison& found, const std::string& input_set);
/// "out0[3, 17] is 0, expected 0.7312 (own inputs, seed 3); 12 of 4096 elements are wrong".
std::string sentence(const mismatch& m);

} // namespace pragma
