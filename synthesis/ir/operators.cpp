#include "synthesis/ir/operators.hpp"

#include <array>

namespace pragma::synthesis {

namespace {

using o = operation;
using family = operator_family;
using form = spelling::form;

constexpr spelling special{};
constexpr spelling infix(std::string_view text) { return {form::infix, text}; }
constexpr spelling prefix(std::string_view text) { return {form::prefix, text}; }
constexpr spelling call(std::string_view text) { return {form::call, text}; }
constexpr spelling helper(std::string_view text) { return {form::helper, text}; }

constexpr operator_traits element(o op, std::string_view name, int arity, type_rule types, spelling cpp, spelling triton) {
  operator_traits t;
  t.op = op;
  t.name = name;
  t.family = family::pointwise;
  t.arity = arity;
  t.types = types;
  t.cpp = cpp;
  t.triton = triton;
  return t;
}

constexpr operator_traits number(o op, std::string_view name, int arity, spelling cpp, spelling triton) {
  return element(op, name, arity, type_rule::numbers, cpp, triton);
}

constexpr operator_traits comparison(o op, std::string_view name, std::string_view sign, type_rule types = type_rule::numbers) {
  auto t = element(op, name, 2, types, infix(sign), infix(sign));
  t.result = result_rule::truth;
  return t;
}

constexpr operator_traits of_bits(o op, std::string_view name, int arity, spelling text) {
  return element(op, name, arity, type_rule::whole_numbers_and_truth, text, text);
}

/// A function of the mathematics library.
constexpr operator_traits function(o op, std::string_view name, int arity, std::string_view cpp, std::string_view triton, double ulp = 0) {
  auto t = element(op, name, arity, type_rule::floating, call(cpp), triton.find('.') == std::string_view::npos ? helper(triton) : call(triton));
  t.expensive = true;
  t.ulp = ulp;
  return t;
}

constexpr operator_traits cheaper(operator_traits t, std::string_view text, double ulp) {
  t.cpp_cheap = text;
  t.cheap_ulp = ulp;
  return t;
}

/// As function(), but of few instructions: not worth a buffer.
constexpr operator_traits light(operator_traits t) {
  t.expensive = false;
  return t;
}

/// As function(), but also of integers.
constexpr operator_traits of_numbers(operator_traits t) {
  t.types = type_rule::numbers;
  return t;
}

constexpr operator_traits reduction(o op, std::string_view name, identity start, spelling cpp, std::string_view finish, spelling triton, std::string_view triton_finish) {
  operator_traits t;
  t.op = op;
  t.name = name;
  t.family = family::reduction;
  t.arity = 1;
  t.types = type_rule::numbers;
  t.start = start;
  t.cpp = cpp;
  t.cpp_finish = finish;
  t.triton = triton;
  t.triton_finish = triton_finish;
  return t;
}

constexpr operator_traits place(operator_traits t) {
  t.result = result_rule::place;
  return t;
}

constexpr operator_traits contraction(o op, std::string_view name) {
  operator_traits t;
  t.op = op;
  t.name = name;
  t.family = family::contraction;
  t.arity = 2;
  t.types = type_rule::floating;
  return t;
}

/// Along a dimension, in order.
constexpr operator_traits scanned(o op, std::string_view name, int arity, identity start) {
  operator_traits t;
  t.op = op;
  t.name = name;
  t.family = family::scan;
  t.arity = arity;
  t.types = type_rule::floating;
  t.start = start;
  return t;
}

/// A layer: what its arguments are says node_builder::recurrence().
constexpr operator_traits recurrence(o op, std::string_view name) {
  operator_traits t;
  t.op = op;
  t.name = name;
  t.family = family::recurrence;
  t.types = type_rule::floating;
  return t;
}

constexpr std::array table{
    operator_traits{},
    number(o::add, "add", 2, infix("+"), infix("+")),
    number(o::sub, "sub", 2, infix("-"), infix("-")),
    number(o::mul, "mul", 2, infix("*"), infix("*")),
    number(o::div, "div", 2, infix("/"), infix("/")),
    element(o::exact_div, "exact_div", 2, type_rule::floating, infix("/"), call("tl.div_rn")),
    number(o::neg, "neg", 1, prefix("-"), prefix("-")),
    number(o::abs, "abs", 1, call("v_abs"), call("tl.abs")),
    number(o::sign, "sign", 1, call("v_sign"), special),
    number(o::floor_divide, "floor_divide", 2, call("v_floor_divide"), helper("floor_divide")),
    number(o::trunc_divide, "trunc_divide", 2, call("v_trunc_divide"), infix("//")),
    number(o::remainder, "remainder", 2, call("v_remainder"), helper("remainder")),
    number(o::fmod, "fmod", 2, call("v_fmod"), call("libdevice.fmod")),
    of_numbers(function(o::pow, "pow", 2, "v_pow", "libdevice.pow")),
    light(function(o::hypot, "hypot", 2, "v_hypot", "libdevice.hypot")),
    function(o::atan2, "atan2", 2, "v_atan2", "libdevice.atan2"),
    number(o::floor, "floor", 1, call("v_floor"), call("tl.floor")),
    number(o::ceil, "ceil", 1, call("v_ceil"), call("tl.ceil")),
    number(o::round, "round", 1, call("v_round"), call("libdevice.rint")),
    number(o::trunc, "trunc", 1, call("v_trunc"), call("libdevice.trunc")),
    number(o::frac, "frac", 1, call("v_frac"), special),
    element(o::round_float16, "round_float16", 1, type_rule::floating, call("v_round_float16"), helper("round_float16")),
    element(o::round_bfloat16, "round_bfloat16", 1, type_rule::floating, call("v_round_bfloat16"), helper("round_bfloat16")),
    light(function(o::sqrt, "sqrt", 1, "v_sqrt", "tl.sqrt")),
    light(function(o::rsqrt, "rsqrt", 1, "v_rsqrt", "tl.rsqrt")),
    cheaper(function(o::exp, "exp", 1, "v_exp", "tl.exp", 2), "v_exp_short", 4),
    cheaper(function(o::exp_nonpositive, "exp_nonpositive", 1, "v_exp_nonpositive", "tl.exp", 2), "v_exp_nonpositive_short", 4),
    function(o::exp2, "exp2", 1, "v_exp2", "tl.exp2"),
    function(o::expm1, "expm1", 1, "v_expm1", "libdevice.expm1", 3),
    function(o::expm1_nonpositive, "expm1_nonpositive", 1, "v_expm1_nonpositive", "libdevice.expm1", 3),
    function(o::log, "log", 1, "v_log", "tl.log", 2),
    function(o::log2, "log2", 1, "v_log2", "tl.log2", 4),
    function(o::log10, "log10", 1, "v_log10", "libdevice.log10", 4),
    function(o::log1p, "log1p", 1, "v_log1p", "libdevice.log1p", 4),
    function(o::log1p_unit, "log1p_unit", 1, "v_log1p_unit", "libdevice.log1p", 3),
    function(o::sin, "sin", 1, "v_sin", "tl.sin"),
    function(o::cos, "cos", 1, "v_cos", "tl.cos"),
    function(o::tan, "tan", 1, "v_tan", "libdevice.tan"),
    function(o::asin, "asin", 1, "v_asin", "libdevice.asin"),
    function(o::acos, "acos", 1, "v_acos", "libdevice.acos"),
    function(o::atan, "atan", 1, "v_atan", "libdevice.atan"),
    function(o::sinh, "sinh", 1, "v_sinh", "libdevice.sinh"),
    function(o::cosh, "cosh", 1, "v_cosh", "libdevice.cosh"),
    function(o::tanh, "tanh", 1, "v_tanh", "libdevice.tanh", 6),
    light(function(o::asinh, "asinh", 1, "v_asinh", "libdevice.asinh")),
    light(function(o::acosh, "acosh", 1, "v_acosh", "libdevice.acosh")),
    light(function(o::atanh, "atanh", 1, "v_atanh", "libdevice.atanh")),
    function(o::sigmoid, "sigmoid", 1, "v_sigmoid", "sigmoid", 3),
    function(o::erf, "erf", 1, "v_erf", "tl.erf", 6),
    function(o::erfc, "erfc", 1, "v_erfc", "libdevice.erfc"),
    function(o::lgamma, "lgamma", 1, "v_lgamma", "libdevice.lgamma"),
    element(o::maximum, "maximum", 2, type_rule::numbers, call("v_maximum"), call("tl.maximum")),
    element(o::minimum, "minimum", 2, type_rule::numbers, call("v_minimum"), call("tl.minimum")),
    element(o::fmax, "fmax", 2, type_rule::numbers, call("v_fmax"), call("tl.maximum")),
    element(o::fmin, "fmin", 2, type_rule::numbers, call("v_fmin"), call("tl.minimum")),
    element(o::max_or_second, "max_or_second", 2, type_rule::numbers, call("v_max_or_second"), special),
    element(o::min_or_second, "min_or_second", 2, type_rule::numbers, call("v_min_or_second"), special),
    comparison(o::equal, "eq", "==", type_rule::any),
    comparison(o::not_equal, "ne", "!=", type_rule::any),
    comparison(o::less, "lt", "<"),
    comparison(o::less_equal, "le", "<="),
    comparison(o::greater, "gt", ">"),
    comparison(o::greater_equal, "ge", ">="),
    of_bits(o::bit_and, "and", 2, infix("&")),
    of_bits(o::bit_or, "or", 2, infix("|")),
    of_bits(o::bit_xor, "xor", 2, infix("^")),
    of_bits(o::bit_not, "not", 1, prefix("~")),
    element(o::select, "select", 3, type_rule::any, special, special),
    element(o::convert, "convert", 1, type_rule::any, special, special),
    element(o::placed, "placed", 2, type_rule::any, special, special),
    reduction(o::sum, "sum", identity::zero, infix("+"), "total", infix("+"), ""),
    reduction(o::prod, "prod", identity::one, infix("*"), "product", infix("*"), "product"),
    reduction(o::max, "max", identity::lowest, call("take_higher"), "highest", call("tl.maximum"), "higher"),
    reduction(o::min, "min", identity::highest, call("take_lower"), "lowest", call("tl.minimum"), "lower"),
    place(reduction(o::argmax, "argmax", identity::lowest, call("take_higher"), "highest_place", special, "higher_place")),
    place(reduction(o::argmin, "argmin", identity::highest, call("take_lower"), "lowest_place", special, "lower_place")),
    reduction(o::peak, "peak", identity::lowest, call("take_peak"), "peak", call("tl.maximum"), "higher"),
    contraction(o::matmul, "matmul"),
    contraction(o::convolution, "convolution"),
    scanned(o::decayed_sum, "decayed_sum", 2, identity::zero),
    scanned(o::log_sum, "log_sum", 1, identity::lowest),
    recurrence(o::rnn_tanh, "rnn_tanh"),
    recurrence(o::rnn_relu, "rnn_relu"),
    recurrence(o::gru, "gru"),
    recurrence(o::lstm, "lstm"),
};

constexpr bool in_order() {
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].op != static_cast<operation>(i)) return false;
  return table.size() == static_cast<size_t>(operation::lstm) + 1;
}
static_assert(in_order(), "the table has a row for each operator, in the order of the enumeration");

} // namespace

const operator_traits& traits(operation op) { return table[static_cast<size_t>(op)]; }

bool accepts(type_rule rule, dtype type) {
  switch (rule) {
    case type_rule::any: return true;
    case type_rule::numbers: return type != dtype::boolean;
    case type_rule::whole_numbers_and_truth: return !is_floating(type);
    case type_rule::floating: return is_floating(type);
  }
  return false;
}

} // namespace pragma::synthesis
