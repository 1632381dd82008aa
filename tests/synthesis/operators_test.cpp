// The table of operators, and primitives that are found again as data.
#include "synthesis/ir/operators.hpp"
#include "synthesis/lower/lower.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

using namespace pragma;
using namespace pragma::synthesis;

TEST_CASE("every operator has a row with a name of its own, and each family what its writers read") {
  std::set<std::string_view> names;
  for (int i = 1; i <= static_cast<int>(operation::convolution); ++i) {
    const auto& t = traits(static_cast<operation>(i));
    INFO(t.name);
    CHECK(names.insert(t.name).second);
    CHECK(t.family != operator_family::none);
    CHECK(t.arity > 0);
    const bool by_hand = t.op == operation::select || t.op == operation::convert || t.op == operation::placed || t.family == operator_family::contraction;
    CHECK(by_hand == (t.cpp.as == spelling::form::special));
    CHECK((t.family == operator_family::reduction) == (t.start != identity::none));
    if (t.family == operator_family::reduction) CHECK_FALSE(t.cpp_finish.empty());
    if (!t.cpp_cheap.empty()) CHECK(t.cheap_ulp > t.ulp);
  }
  CHECK(traits(operation::sum).start == identity::zero);
  CHECK(traits(operation::argmax).start == traits(operation::max).start);
  CHECK(finds_place(operation::argmin));
  CHECK_FALSE(finds_place(operation::min));
}

TEST_CASE("equal primitives are one node; numbers count by their bits") {
  tensor_program program;
  node_builder b(program);
  const int zero = b.constant(0, dtype::float32), negative = b.constant(-0.0, dtype::float32);
  CHECK(zero == b.constant(0, dtype::float32));
  CHECK(zero != negative);
  CHECK(zero != b.constant(0, dtype::float64));
  CHECK(b.constant(NAN, dtype::float32) == b.constant(NAN, dtype::float32));
  const int x = b.leaf(0, {dtype::float32, {4, 6}});
  CHECK(b.slice(x, 1, 0, 1, 3) != b.slice(x, 1, 3, 1, 3));
  CHECK(b.slice(x, 1, 3, 1, 3) == b.slice(x, 1, 3, 1, 3));
  CHECK(b.reduce(operation::max, x, {1}) == b.reduce(operation::max, x, {1}));
  CHECK(b.reduce(operation::max, x, {1}) != b.reduce(operation::min, x, {1}));
  window_spec small{{3}, {1}, {1}, {1}}, wide{{3}, {1}, {1}, {2}};
  CHECK(b.window(operation::max, x, small, {4, 6}) != b.window(operation::max, x, wide, {4, 4}));
  CHECK(b.window(operation::max, x, small, {4, 6}) == b.window(operation::max, x, small, {4, 6}));
}

TEST_CASE("an operator of a dtype that it cannot compute in is refused by name") {
  tensor_program program;
  node_builder b(program);
  const int truth = b.leaf(0, {dtype::boolean, {3}}), whole = b.leaf(1, {dtype::int32, {3}});
  CHECK_THROWS_AS(b.pointwise(operation::add, dtype::boolean, {truth, truth}), not_lowered);
  CHECK_THROWS_AS(b.unary(operation::exp, whole), not_lowered);
  // A true lane is -1: nothing that orders values takes it for more than a false one.
  for (const auto op : {operation::maximum, operation::minimum, operation::fmax, operation::max_or_second})
    CHECK_THROWS_AS(b.pointwise(op, dtype::boolean, {truth, truth}), not_lowered);
  for (const auto op : {operation::less, operation::greater_equal}) CHECK_THROWS_AS(b.compare(op, truth, truth), not_lowered);
  for (const auto op : {operation::max, operation::argmin, operation::sum}) CHECK_THROWS_AS(b.reduce(op, truth, {0}), not_lowered);
  CHECK(b.extreme(operation::maximum, truth, truth) == b.pointwise(operation::bit_or, dtype::boolean, {truth, truth}));
  CHECK(b.extreme(operation::fmin, truth, truth) == b.pointwise(operation::bit_and, dtype::boolean, {truth, truth}));
  CHECK_NOTHROW(b.compare(operation::not_equal, truth, truth));
  CHECK_NOTHROW(b.pointwise(operation::bit_and, dtype::boolean, {truth, truth}));
}
