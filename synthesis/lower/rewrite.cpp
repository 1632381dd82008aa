#include "synthesis/lower/rewrite.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace pragma::synthesis {

namespace {

using o = operation;

constexpr int none = -1;      ///< the rule does not apply
constexpr int most_passes = 64; ///< over the whole program; each pass works from the arguments up, so that two or three are usual

bool is(const tensor_node& n, operation op) { return n.kind == node_kind::pointwise && n.op == op; }
/// The node's argument, where that is itself the result of `op`.
bool is(node_builder& b, const tensor_node& n, size_t arg, operation op) { return is(b.at(n.args[arg]), op); }
int argument(node_builder& b, const tensor_node& n, size_t arg) { return b.at(n.args[arg]).args[0]; }
bool is_number(node_builder& b, int n, double value) {
  const auto& x = b.at(n);
  return x.kind == node_kind::constant && (is_floating(x.dtype) ? same_bits(x.value, value) : x.value == value);
}
bool is_signed(dtype type) { return type != dtype::uint8 && type != dtype::boolean; }

/// `x` in the shape of the node that it takes the place of: operators broadcast.
int instead(node_builder& b, const tensor_node& n, int x) { return b.at(x).shape == n.shape ? x : b.expand(x, n.shape); }

/// Of a square, a magnitude, an exponential, a count: what can be zero, but not -0.
bool never_minus_zero(node_builder& b, int n) {
  const auto& x = b.at(n);
  if (x.kind != node_kind::pointwise) return false;
  if (x.op == o::convert) return !is_floating(b.at(x.args[0]).dtype);
  if (x.op == o::mul) return x.args[0] == x.args[1];
  return x.op == o::abs || x.op == o::exp || x.op == o::exp_nonpositive || x.op == o::exp2;
}

/// The other argument where one of them is `value`; none where neither is.
int beside(node_builder& b, const tensor_node& n, double value) {
  for (size_t i : {1u, 0u})
    if (is_number(b, n.args[i], value)) return n.args[1 - i];
  return none;
}

// -- signs -------------------------------------------------------------------------------------------------------------

int double_negation(node_builder& b, const tensor_node& n) { return is(n, o::neg) && is(b, n, 0, o::neg) ? argument(b, n, 0) : none; }

int negated_constant(node_builder& b, const tensor_node& n) {
  if (!is(n, o::neg) || !is_floating(n.dtype) || b.at(n.args[0]).kind != node_kind::constant) return none;
  return b.constant(-b.at(n.args[0]).value, n.dtype, n.shape);
}

int sum_with_negated(node_builder& b, const tensor_node& n) {
  if (!is(n, o::add)) return none;
  if (is(b, n, 1, o::neg)) return b.sub(n.args[0], argument(b, n, 1));
  if (is(b, n, 0, o::neg)) return b.sub(n.args[1], argument(b, n, 0));
  return none;
}

int difference_with_negated(node_builder& b, const tensor_node& n) {
  return is(n, o::sub) && is(b, n, 1, o::neg) ? b.add2(n.args[0], argument(b, n, 1)) : none;
}

int two_negated_factors(node_builder& b, const tensor_node& n) {
  if (!(is(n, o::mul) || (is(n, o::div) && is_floating(n.dtype))) || !is(b, n, 0, o::neg) || !is(b, n, 1, o::neg)) return none;
  return b.pointwise(n.op, n.dtype, {argument(b, n, 0), argument(b, n, 1)});
}

int magnitude_without_sign(node_builder& b, const tensor_node& n) {
  if (!is(n, o::abs) || !is_signed(n.dtype)) return none;
  if (is(b, n, 0, o::abs)) return n.args[0];
  return is(b, n, 0, o::neg) ? b.unary(o::abs, argument(b, n, 0)) : none;
}

int square_of_magnitude(node_builder& b, const tensor_node& n) {
  if (!is(n, o::mul) || n.args[0] != n.args[1] || !is(b, n, 0, o::abs)) return none;
  return b.mul(argument(b, n, 0), argument(b, n, 0));
}

// -- neutral elements --------------------------------------------------------------------------------------------------

int zero_subtracted(node_builder& b, const tensor_node& n) {
  return is(n, o::sub) && is_number(b, n.args[1], 0.0) ? instead(b, n, n.args[0]) : none;
}

int zero_added(node_builder& b, const tensor_node& n) {
  if (!is(n, o::add)) return none;
  if (!is_floating(n.dtype)) {
    const int x = beside(b, n, 0);
    return x < 0 ? none : instead(b, n, x);
  }
  if (const int x = beside(b, n, -0.0); x >= 0) return instead(b, n, x);
  const int x = beside(b, n, 0.0);
  return x >= 0 && never_minus_zero(b, x) ? instead(b, n, x) : none;
}

int factor_one(node_builder& b, const tensor_node& n) {
  int x = none;
  if (is(n, o::mul)) x = beside(b, n, 1);
  else if (is(n, o::div) && is_number(b, n.args[1], 1)) x = n.args[0];
  return x < 0 ? none : instead(b, n, x);
}

int factor_minus_one(node_builder& b, const tensor_node& n) {
  int x = none;
  if (is(n, o::mul)) x = beside(b, n, -1);
  else if (is(n, o::div) && is_floating(n.dtype) && is_number(b, n.args[1], -1)) x = n.args[0];
  return x < 0 ? none : instead(b, n, b.unary(o::neg, x));
}

// -- what is done already ----------------------------------------------------------------------------------------------

bool gives_whole_numbers(operation op) { return op == o::floor || op == o::ceil || op == o::trunc || op == o::round; }

int rounded_twice(node_builder& b, const tensor_node& n) {
  if (n.kind != node_kind::pointwise || !gives_whole_numbers(n.op)) return none;
  const auto& x = b.at(n.args[0]);
  return x.kind == node_kind::pointwise && gives_whole_numbers(x.op) ? n.args[0] : none;
}

int bound_twice(node_builder& b, const tensor_node& n) {
  if (!is(n, o::max_or_second) && !is(n, o::min_or_second)) return none;
  const auto& x = b.at(n.args[1]);
  return is(x, n.op) && x.args[0] == n.args[0] ? instead(b, n, n.args[1]) : none;
}

// -- truth values and selections ---------------------------------------------------------------------------------------

int double_not(node_builder& b, const tensor_node& n) { return is(n, o::bit_not) && is(b, n, 0, o::bit_not) ? argument(b, n, 0) : none; }

int negated_equality(node_builder& b, const tensor_node& n) {
  if (!is(n, o::bit_not) || n.dtype != dtype::boolean) return none;
  const auto x = b.at(n.args[0]); // a copy: the list grows
  if (is(x, o::equal)) return b.compare(o::not_equal, x.args[0], x.args[1]);
  return is(x, o::not_equal) ? b.compare(o::equal, x.args[0], x.args[1]) : none;
}

int negated_condition(node_builder& b, const tensor_node& n) {
  return is(n, o::select) && is(b, n, 0, o::bit_not) ? b.select(argument(b, n, 0), n.args[2], n.args[1]) : none;
}

constexpr int deepest_places = 8; ///< nodes between a comparison and its places; a node that is used twice is looked at twice

/// The least and the greatest value of a whole number that follows from places; nothing where it depends on more, or is too far away.
std::optional<std::pair<double, double>> range_of_places(node_builder& b, int node, int depth = deepest_places) {
  const auto& n = b.at(node);
  if (n.dtype != dtype::int64 || depth < 0) return std::nullopt;
  if (n.kind == node_kind::constant) return std::pair{n.value, n.value};
  if (n.kind == node_kind::index) return std::pair{0.0, static_cast<double>(std::max<int64_t>(1, n.shape[static_cast<size_t>(n.dims[0])]) - 1)};
  if (n.kind == node_kind::view) return range_of_places(b, n.args[0], depth - 1);
  if (!is(n, o::add) && !is(n, o::sub)) return std::nullopt;
  const auto x = range_of_places(b, n.args[0], depth - 1), y = range_of_places(b, n.args[1], depth - 1);
  if (!x || !y) return std::nullopt;
  return n.op == o::add ? std::pair{x->first + y->first, x->second + y->second} : std::pair{x->first - y->second, x->second - y->first};
}

constexpr double most_narrow = 1 << 30; ///< of sums and their parts, so that 32 bits hold them

int narrow_places(node_builder& b, int node) {
  const auto n = b.at(node); // a copy: the list grows
  if (const auto range = range_of_places(b, node); range->first < -most_narrow || range->second > most_narrow) return none;
  if (n.kind == node_kind::constant) return b.constant(n.value, dtype::int32, n.shape);
  if (n.kind == node_kind::index) return b.index(n.shape, n.dims[0], dtype::int32);
  std::vector<int> args;
  for (int a : n.args) {
    args.push_back(narrow_places(b, a));
    if (args.back() == none) return none;
  }
  return n.kind == node_kind::view ? b.view(args[0], n.shape, n.map) : b.pointwise(n.op, dtype::int32, args);
}

/// Comparisons only: other results would have to widen again.
int places_compared(node_builder& b, const tensor_node& n) {
  if (n.kind != node_kind::pointwise || traits(n.op).result != result_rule::truth || n.args.size() != 2) return none;
  if (!range_of_places(b, n.args[0]) || !range_of_places(b, n.args[1])) return none;
  const auto args = n.args;
  const auto op = n.op;
  const int x = narrow_places(b, args[0]), y = x == none ? none : narrow_places(b, args[1]);
  return y == none ? none : b.compare(op, x, y);
}

int equal_branches(node_builder& b, const tensor_node& n) { return is(n, o::select) && n.args[1] == n.args[2] ? instead(b, n, n.args[1]) : none; }

int condition_itself(node_builder& b, const tensor_node& n) {
  const auto truth = [&](int i, double value) { return b.at(n.args[static_cast<size_t>(i)]).kind == node_kind::constant && b.at(n.args[static_cast<size_t>(i)]).value == value; };
  return is(n, o::select) && n.dtype == dtype::boolean && truth(1, 1) && truth(2, 0) ? instead(b, n, n.args[0]) : none;
}

int known_condition(node_builder& b, const tensor_node& n) {
  if (!is(n, o::select) || b.at(n.args[0]).kind != node_kind::constant) return none;
  return instead(b, n, n.args[b.at(n.args[0]).value != 0 ? 1 : 2]);
}

// -- conversions -------------------------------------------------------------------------------------------------------

struct number_format {
  int digits = 0;          ///< binary digits of a whole number without sign, or of a significand
  int exponent = 0;        ///< largest binary exponent of a floating type
  bool floating = false, negative = true;
};
number_format format_of(dtype type) {
  switch (type) {
    case dtype::float64: return {53, 1023, true, true};
    case dtype::float32: return {24, 127, true, true};
    case dtype::float16: return {11, 15, true, true};
    case dtype::bfloat16: return {8, 127, true, true};
    case dtype::int64: return {63, 0, false, true};
    case dtype::int32: return {31, 0, false, true};
    case dtype::int16: return {15, 0, false, true};
    case dtype::int8: return {7, 0, false, true};
    case dtype::uint8: return {8, 0, false, false};
    case dtype::boolean: return {1, 0, false, false};
  }
  return {};
}

/// Every value of `from` is one of `to`.
bool holds(dtype to, dtype from) {
  if (to == from) return true;
  if (to == dtype::boolean) return false;
  const auto a = format_of(from), b = format_of(to);
  if (a.floating && !b.floating) return false;
  if (!b.floating) return b.digits >= a.digits && (b.negative || !a.negative);
  // The exponent of float16 counts where whole numbers are wide: it reaches 65504.
  return b.digits >= a.digits && b.exponent >= (a.floating ? a.exponent : a.digits);
}

int converted_twice(node_builder& b, const tensor_node& n) {
  if (!is(n, o::convert) || !is(b, n, 0, o::convert)) return none;
  const int x = argument(b, n, 0);
  const auto first = b.at(x).dtype, between = b.at(n.args[0]).dtype, last = n.dtype;
  if (!holds(between, first)) return none;
  if (last == first) return x;
  // Of a fraction, or of a number that is too large, languages make different whole numbers, and not each type the same.
  const bool through_floating = is_floating(between) && !is_floating(last) && last != dtype::boolean;
  return through_floating && !holds(last, first) ? none : b.convert(x, last);
}

// -- the same elements elsewhere ---------------------------------------------------------------------------------------

int reshaped_twice(node_builder& b, const tensor_node& n) {
  if (n.kind != node_kind::reshape || b.at(n.args[0]).kind != node_kind::reshape) return none;
  return b.reshape(b.at(n.args[0]).args[0], n.shape);
}

int viewed_twice(node_builder& b, const tensor_node& n) {
  if (n.kind != node_kind::view || b.at(n.args[0]).kind != node_kind::view) return none;
  const auto inner = b.at(n.args[0]); // a copy: the list grows
  auto map = inner.map;
  for (auto& d : map) {
    if (d.out_dim < 0) continue;
    const auto& outer = n.map[static_cast<size_t>(d.out_dim)];
    d.offset += d.step * outer.offset;
    d.step = outer.out_dim < 0 ? 1 : d.step * outer.step;
    d.out_dim = outer.out_dim;
  }
  return b.view(inner.args[0], n.shape, map);
}

int rearranged_constant(node_builder& b, const tensor_node& n) {
  if ((n.kind != node_kind::view && n.kind != node_kind::reshape) || b.at(n.args[0]).kind != node_kind::constant) return none;
  return b.constant(b.at(n.args[0]).value, n.dtype, n.shape);
}

constexpr std::array rules{
    rewrite_rule{"double negation", "-(-x) -> x", "a sign changes twice; whole numbers wrap back", double_negation},
    rewrite_rule{"negated constant", "-(c) -> (-c)", "a sign changes", negated_constant},
    rewrite_rule{"sum with a negated", "a + (-b) -> a - b", "IEEE 754 defines a - b as a + (-b)", sum_with_negated},
    rewrite_rule{"difference with a negated", "a - (-b) -> a + b", "IEEE 754 defines a - b as a + (-b)", difference_with_negated},
    rewrite_rule{"two negated factors", "(-a) * (-b) -> a * b", "signs multiply apart from magnitudes, zeros and infinities as well", two_negated_factors},
    rewrite_rule{"magnitude without sign", "abs(-x) -> abs(x), abs(abs(x)) -> abs(x)", "the sign is cleared in any case; not of unsigned numbers, where -x is another", magnitude_without_sign},
    rewrite_rule{"square of a magnitude", "abs(x) * abs(x) -> x * x", "equal signs give a plus", square_of_magnitude},
    rewrite_rule{"zero subtracted", "x - 0 -> x", "also of -0: -0 - 0 = -0; not x - (-0), which makes +0 of -0", zero_subtracted},
    rewrite_rule{"zero added", "x + (-0) -> x", "also of -0; +0 only where x cannot be -0, as -0 + 0 = +0; whole numbers have one zero", zero_added},
    rewrite_rule{"factor one", "x * 1 -> x, x / 1 -> x", "nothing is rounded, signs stay", factor_one},
    rewrite_rule{"factor minus one", "x * (-1) -> -x, x / (-1) -> -x", "nothing is rounded, the sign changes, that of a zero as well", factor_minus_one},
    rewrite_rule{"rounded twice", "floor(ceil(x)) -> ceil(x)", "what is whole, infinite or -0 stays as it is", rounded_twice},
    rewrite_rule{"bound twice", "relu(relu(x)) -> relu(x)", "the second bound finds nothing beyond it; of equal ones both keep x, so that zeros keep their sign", bound_twice},
    rewrite_rule{"double not", "~~x -> x", "each bit changes twice", double_not},
    rewrite_rule{"negated equality", "~(a == b) -> a != b", "true exactly where the other is not, NaN as well; orders have no such twin", negated_equality},
    rewrite_rule{"negated condition", "select(~c, a, b) -> select(c, b, a)", "the other branch", negated_condition},
    rewrite_rule{"equal branches", "select(c, a, a) -> a", "either branch is a", equal_branches},
    rewrite_rule{"places compared", "int64(i) < int64(j) -> int32(i) < int32(j)", "places of a tensor that fit into 32 bits: twice as many to a vector", places_compared},
    rewrite_rule{"condition itself", "select(c, true, false) -> c", "a truth value says itself", condition_itself},
    rewrite_rule{"known condition", "select(true, a, b) -> a", "the other branch is never taken", known_condition},
    rewrite_rule{"converted twice", "int64(int32(x)) -> int64(x) of int8", "the first type's values are all in the one between", converted_twice},
    rewrite_rule{"reshaped twice", "reshape(reshape(x)) -> reshape(x)", "elements keep their linear order", reshaped_twice},
    rewrite_rule{"viewed twice", "x.T.T -> x", "indices are affine, and affine maps compose", viewed_twice},
    rewrite_rule{"rearranged constant", "expand(c) -> c", "every element is the same", rearranged_constant},
};

/// One pass, arguments before users. True: a rule applied.
bool rewrite_once(const tensor_program& program, tensor_program& twin, std::vector<std::string_view>* applied) {
  twin = program;
  twin.nodes.clear();
  node_builder b(twin);
  std::vector<int> place;
  bool changed = false;
  for (auto node : program.nodes) {
    for (int& a : node.args) a = place[static_cast<size_t>(a)];
    int now = none;
    for (const auto& rule : rules) {
      now = rule.apply(b, node);
      if (now < 0) continue;
      changed = true;
      if (applied) applied->push_back(rule.name);
      break;
    }
    place.push_back(now >= 0 ? now : b.add(std::move(node)));
  }
  for (int& out : twin.outputs) out = place[static_cast<size_t>(out)];
  return changed;
}

} // namespace

std::span<const rewrite_rule> rewrite_rules() { return rules; }

tensor_program rewrite(const tensor_program& program, std::vector<std::string_view>* applied) {
  auto now = without_dead_nodes(program);
  for (int pass = 0; pass < most_passes; ++pass) {
    tensor_program next;
    if (!rewrite_once(now, next, applied)) break;
    now = without_dead_nodes(next);
  }
  return now;
}

tensor_program without_dead_nodes(const tensor_program& program) {
  std::vector<bool> needed(program.nodes.size());
  for (int out : program.outputs) needed[static_cast<size_t>(out)] = true;
  for (size_t i = program.nodes.size(); i-- > 0;)
    if (needed[i])
      for (int a : program.nodes[i].args) needed[static_cast<size_t>(a)] = true;
  tensor_program kept = program;
  kept.nodes.clear();
  std::vector<int> place(program.nodes.size(), -1);
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    if (!needed[i]) continue;
    auto node = program.nodes[i];
    for (int& a : node.args) a = place[static_cast<size_t>(a)];
    place[i] = static_cast<int>(kept.nodes.size());
    kept.nodes.push_back(std::move(node));
  }
  for (int& out : kept.outputs) out = place[static_cast<size_t>(out)];
  return kept;
}

} // namespace pragma::synthesis
