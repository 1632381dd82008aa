// The operators of the primitives, and one table of what is known about each. Lowering, loops, schedules and the writers of both
// languages read it, so that nothing about an operator is decided in two places.
#pragma once

#include "kernels/tensor.hpp"

#include <cstdint>
#include <string_view>

namespace pragma::synthesis {

enum class operation : uint8_t {
  none,
  // of elements
  add, sub, mul, div,
  exact_div, // a quotient that no writer may take for a product with the reciprocal (lower/exact_quotients.hpp)
  neg, abs, sign, floor_divide, trunc_divide, remainder, fmod, pow, hypot, atan2,
  floor, ceil, round, trunc, frac,
  round_float16, round_bfloat16, // float32 values that a half type can hold
  sqrt, rsqrt,
  exp, exp_nonpositive, exp2, expm1, expm1_nonpositive, log, log2, log10, log1p, log1p_unit,
  sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh, sigmoid, erf, erfc, lgamma,
  maximum, minimum, fmax, fmin, max_or_second, min_or_second,
  equal, not_equal, less, less_equal, greater, greater_equal, bit_and, bit_or, bit_xor, bit_not,
  select, convert,
  placed, // a value, and where a scattering store joins it with what is there
  // over dimensions, windows and (sum, prod, max, min) cumulative
  sum, prod, max, min, argmax, argmin,
  peak, // the highest of numbers; what it makes of a NaN is not said: for those who find the NaN elsewhere, and quicker than max
  // anchors
  matmul, convolution,
  // cumulative only: a sum that decays by a factor before each element, and the logarithm of a sum of exponentials
  decayed_sum, log_sum,
  // a layer of a recurrent network over all steps
  rnn_tanh, rnn_relu, gru, lstm
};

enum class operator_family : uint8_t { none, pointwise, reduction, contraction, scan, recurrence };

/// The dtype of a result.
enum class result_rule : uint8_t {
  like_arguments, ///< the arguments' (of a selection: the second's and third's); a conversion's is chosen
  truth,          ///< bool
  place           ///< int64
};

/// The dtypes that an operator computes in. What orders values takes numbers: a true lane is -1 in C++ and in Triton, so that it would be
/// less than a false one; lower() counts truth values first, or finds the operator of bits that does the same.
enum class type_rule : uint8_t { any, numbers, whole_numbers_and_truth, floating };

/// What a reduction or a scan begins with. It is also what a position outside of the input gives to a window.
enum class identity : uint8_t { none, zero, one, lowest, highest };

/// How a language writes an operator.
struct spelling {
  enum class form : uint8_t {
    special, ///< the writer knows: a selection, a conversion
    infix,   ///< a TEXT b
    prefix,  ///< TEXT a
    call,    ///< TEXT(a, b)
    helper   ///< TEXT(a, b), a function that travels with the kernel
  } as = form::special;
  std::string_view text;
};

struct operator_traits {
  operation op = operation::none;
  std::string_view name;            ///< in messages and in the names of values: "exp", "and"
  operator_family family = operator_family::none;
  int arity = 0;
  type_rule types = type_rule::any;
  result_rule result = result_rule::like_arguments;
  bool expensive = false;           ///< a function of the mathematics library or its polynomial: worth a buffer where it is needed twice
  identity start = identity::none;  ///< of reductions
  spelling cpp;                     ///< of a reduction: how one more element joins
  spelling triton;
  std::string_view cpp_finish;      ///< of a reduction: what makes one value of all lanes
  std::string_view triton_finish;   ///< of a reduction: the function that joins two lanes; empty: tl.sum
  std::string_view cpp_cheap;       ///< a polynomial of one degree less
  double ulp = 0;                   ///< error of `cpp` in float32; 0: exact, or as the C library has it
  double cheap_ulp = 0;             ///< of `cpp_cheap`
};

const operator_traits& traits(operation op);
inline std::string_view name_of(operation op) { return traits(op).name; }
inline bool finds_place(operation op) { return traits(op).result == result_rule::place; }
/// Of a recurrence: how many vectors of its hidden size each step multiplies the state into, in Torch's order (of an LSTM: input, forget, cell, output).
constexpr int gates_of(operation op) { return op == operation::lstm ? 4 : op == operation::gru ? 3 : 1; }
/// Higher values win: max and argmax.
inline bool takes_highest(operation op) { return traits(op).start == identity::lowest; }
bool accepts(type_rule rule, dtype type);

} // namespace pragma::synthesis
