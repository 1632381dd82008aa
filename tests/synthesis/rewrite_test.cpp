// Each rule of rewriting: what it makes of what, that both sides have the same bits, and what looks alike but is left alone.
#include "evaluate.hpp"
#include "synthesis/lower/rewrite.hpp"

#include <catch2/catch.hpp>
#include <algorithm>
#include <functional>
#include <limits>
#include <set>

using namespace pragma;
using namespace pragma::synthesis;
using namespace pragma::synthesis::test;

namespace {

const std::vector<int64_t> shape{4, 6};

/// Four inputs of one type ("x", "y"), of truth values ("c") and of small numbers ("n").
struct graph_under_test {
  tensor_program program;
  node_builder b{program};
  int x = 0, y = 0, c = 0, n = 0, whole = 0;

  explicit graph_under_test(dtype type) {
    const auto leaf = [&](dtype t) {
      buffer made;
      made.kind = buffer_kind::input;
      made.dtype = t;
      made.elements = 24;
      program.buffers.push_back(made);
      return b.leaf(static_cast<int>(program.buffers.size()) - 1, {t, shape});
    };
    x = leaf(type);
    y = leaf(type);
    c = leaf(dtype::boolean);
    n = leaf(dtype::int8);
    whole = leaf(dtype::int64);
  }
  int number(double value) { return b.number(value, x); }
  int neg(int a) { return b.unary(operation::neg, a); }
  int abs(int a) { return b.unary(operation::abs, a); }
  int no(int a) { return b.pointwise(operation::bit_not, dtype::boolean, {a}); }
};

using made = std::function<int(graph_under_test&)>;

struct rewriting {
  std::string_view rule;
  dtype type;
  made before, after;
};

constexpr auto f = dtype::float32;
using g = graph_under_test;

const std::vector<rewriting>& rewritings() {
  using o = operation;
  static const std::vector<rewriting> list{
      {"double negation", f, [](g& t) { return t.neg(t.neg(t.x)); }, [](g& t) { return t.x; }},
      {"double negation", dtype::int8, [](g& t) { return t.neg(t.neg(t.x)); }, [](g& t) { return t.x; }},
      {"negated constant", f, [](g& t) { return t.b.mul(t.x, t.neg(t.number(0.5))); }, [](g& t) { return t.b.mul(t.x, t.number(-0.5)); }},
      {"sum with a negated", f, [](g& t) { return t.b.add2(t.x, t.neg(t.y)); }, [](g& t) { return t.b.sub(t.x, t.y); }},
      {"sum with a negated", dtype::uint8, [](g& t) { return t.b.add2(t.neg(t.x), t.y); }, [](g& t) { return t.b.sub(t.y, t.x); }},
      {"difference with a negated", f, [](g& t) { return t.b.sub(t.x, t.neg(t.y)); }, [](g& t) { return t.b.add2(t.x, t.y); }},
      {"two negated factors", f, [](g& t) { return t.b.mul(t.neg(t.x), t.neg(t.y)); }, [](g& t) { return t.b.mul(t.x, t.y); }},
      {"two negated factors", f, [](g& t) { return t.b.div(t.neg(t.x), t.neg(t.y)); }, [](g& t) { return t.b.div(t.x, t.y); }},
      {"magnitude without sign", f, [](g& t) { return t.abs(t.neg(t.x)); }, [](g& t) { return t.abs(t.x); }},
      {"magnitude without sign", dtype::int8, [](g& t) { return t.abs(t.abs(t.x)); }, [](g& t) { return t.abs(t.x); }},
      {"square of a magnitude", f, [](g& t) { return t.b.mul(t.abs(t.x), t.abs(t.x)); }, [](g& t) { return t.b.mul(t.x, t.x); }},
      {"zero subtracted", f, [](g& t) { return t.b.sub(t.x, t.number(0)); }, [](g& t) { return t.x; }},
      {"zero added", f, [](g& t) { return t.b.add2(t.number(-0.0), t.x); }, [](g& t) { return t.x; }},
      {"zero added", f, [](g& t) { return t.b.add2(t.abs(t.x), t.number(0)); }, [](g& t) { return t.abs(t.x); }},
      {"zero added", f, [](g& t) { return t.b.add2(t.b.mul(t.x, t.x), t.number(0)); }, [](g& t) { return t.b.mul(t.x, t.x); }},
      {"zero added", dtype::int32, [](g& t) { return t.b.add2(t.x, t.number(0)); }, [](g& t) { return t.x; }},
      {"factor one", f, [](g& t) { return t.b.mul(t.number(1), t.x); }, [](g& t) { return t.x; }},
      {"factor one", f, [](g& t) { return t.b.div(t.x, t.b.constant(1, f, {2, 1, 1})); }, [](g& t) { return t.b.expand(t.x, {2, 4, 6}); }},
      {"factor minus one", f, [](g& t) { return t.b.mul(t.x, t.number(-1)); }, [](g& t) { return t.neg(t.x); }},
      {"factor minus one", f, [](g& t) { return t.b.div(t.x, t.number(-1)); }, [](g& t) { return t.neg(t.x); }},
      {"rounded twice", f, [](g& t) { return t.b.unary(o::floor, t.b.unary(o::round, t.x)); }, [](g& t) { return t.b.unary(o::round, t.x); }},
      {"bound twice", f, [](g& t) { const int z = t.number(0); return t.b.pointwise(o::max_or_second, f, {z, t.b.pointwise(o::max_or_second, f, {z, t.x})}); },
       [](g& t) { return t.b.pointwise(o::max_or_second, f, {t.number(0), t.x}); }},
      {"double not", f, [](g& t) { return t.no(t.no(t.c)); }, [](g& t) { return t.c; }},
      {"negated equality", f, [](g& t) { return t.no(t.b.compare(o::equal, t.x, t.y)); }, [](g& t) { return t.b.compare(o::not_equal, t.x, t.y); }},
      {"negated equality", f, [](g& t) { return t.no(t.b.compare(o::not_equal, t.x, t.x)); }, [](g& t) { return t.b.compare(o::equal, t.x, t.x); }},
      {"negated condition", f, [](g& t) { return t.b.select(t.no(t.c), t.x, t.y); }, [](g& t) { return t.b.select(t.c, t.y, t.x); }},
      {"equal branches", f, [](g& t) { return t.b.select(t.c, t.x, t.x); }, [](g& t) { return t.x; }},
      {"places compared", f, [](g& t) { return t.b.compare(operation::less, t.b.index(shape, 1), t.b.add2(t.b.index(shape, 0), t.b.constant(2, dtype::int64))); },
       [](g& t) { return t.b.compare(operation::less, t.b.index(shape, 1, dtype::int32), t.b.add2(t.b.index(shape, 0, dtype::int32), t.b.constant(2, dtype::int32))); }},
      {"condition itself", dtype::boolean, [](g& t) { return t.b.select(t.c, t.b.constant(1, dtype::boolean), t.b.constant(0, dtype::boolean)); }, [](g& t) { return t.c; }},
      {"known condition", f, [](g& t) { return t.b.select(t.b.constant(1, dtype::boolean), t.x, t.y); }, [](g& t) { return t.x; }},
      {"known condition", f, [](g& t) { return t.b.select(t.b.constant(0, dtype::boolean), t.x, t.y); }, [](g& t) { return t.y; }},
      {"converted twice", f, [](g& t) { return t.b.convert(t.b.convert(t.x, dtype::float64), f); }, [](g& t) { return t.x; }},
      {"converted twice", f, [](g& t) { return t.b.convert(t.b.convert(t.n, dtype::int32), f); }, [](g& t) { return t.b.convert(t.n, f); }},
      {"converted twice", f, [](g& t) { return t.b.convert(t.b.convert(t.c, dtype::int64), dtype::boolean); }, [](g& t) { return t.c; }},
      {"converted twice", f, [](g& t) { return t.b.convert(t.b.convert(t.n, f), dtype::int64); }, [](g& t) { return t.b.convert(t.n, dtype::int64); }},
      {"reshaped twice", f, [](g& t) { return t.b.reshape(t.b.reshape(t.x, {24}), {2, 12}); }, [](g& t) { return t.b.reshape(t.x, {2, 12}); }},
      {"reshaped twice", f, [](g& t) { return t.b.reshape(t.b.reshape(t.x, {24}), shape); }, [](g& t) { return t.x; }},
      {"viewed twice", f, [](g& t) { return t.b.permute(t.b.permute(t.x, {1, 0}), {1, 0}); }, [](g& t) { return t.x; }},
      {"viewed twice", f, [](g& t) { return t.b.slice(t.b.flip(t.x, {1}), 1, 1, 2, 2); },
       [](g& t) { return t.b.view(t.x, {4, 2}, {{0, 1, 0}, {4, -2, 1}}); }},
      {"viewed twice", f, [](g& t) { return t.b.expand(t.b.slice(t.x, 0, 3, 1, 1), {4, 6}); }, [](g& t) { return t.b.view(t.x, {4, 6}, {{3, 1, -1}, {0, 1, 1}}); }},
      {"rearranged constant", f, [](g& t) { return t.b.mul(t.x, t.b.expand(t.b.constant(3, f, {1, 6}), shape)); },
       [](g& t) { return t.b.mul(t.x, t.b.constant(3, f, shape)); }},
  };
  return list;
}

bool same(const tensor_program& p, int i, const tensor_program& q, int j) {
  auto a = p.nodes[static_cast<size_t>(i)], b = q.nodes[static_cast<size_t>(j)];
  if (a.args.size() != b.args.size()) return false;
  for (size_t k = 0; k < a.args.size(); ++k)
    if (!same(p, a.args[k], q, b.args[k])) return false;
  a.args = b.args = {};
  return a == b;
}

std::vector<double> special_values(dtype type) {
  if (type == dtype::boolean) return {0, 1};
  if (!is_floating(type)) return type == dtype::uint8 ? std::vector<double>{0, 1, 5, 128, 255} : std::vector<double>{0, 1, -1, 7, -7, 127, -128};
  constexpr double inf = std::numeric_limits<double>::infinity();
  return {0.0, -0.0, 1, -1, 0.5, -0.5, 2.5, -2.5, NAN, inf, -inf, 1e-45, -1e-45, 3.4028234663852886e38, -3.4028234663852886e38, 1.17549435e-38};
}

/// Each input runs through the special values at a pace of its own, so that pairs of them meet.
std::vector<std::vector<double>> inputs_of(const tensor_program& p, size_t shift) {
  std::vector<std::vector<double>> inputs;
  for (size_t k = 0; k < p.buffers.size(); ++k) {
    const auto values = special_values(p.buffers[k].dtype);
    std::vector<double> elements(24);
    for (size_t i = 0; i < 24; ++i) elements[i] = stored_as(values[(i + shift * k) % values.size()], p.buffers[k].dtype);
    inputs.push_back(elements);
  }
  return inputs;
}

void check_same_bits(const tensor_program& p, const tensor_program& q) {
  for (size_t shift = 0; shift < 16; ++shift) {
    const auto inputs = inputs_of(p, shift);
    const auto a = evaluate(p, p.outputs[0], inputs), b = evaluate(q, q.outputs[0], inputs);
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      INFO("shift " << shift << ", element " << i << ": " << a[i] << " and " << b[i]);
      REQUIRE((same_bits(a[i], b[i]) || (std::isnan(a[i]) && std::isnan(b[i]))));
    }
  }
}

tensor_program program_of(const made& m, dtype type) {
  graph_under_test t(type);
  const int out = m(t);
  auto program = t.program;
  program.outputs = {out};
  return program;
}

} // namespace

TEST_CASE("each rule gives what it says, with the same bits") {
  std::set<std::string_view> seen;
  for (const auto& r : rewritings()) {
    INFO(r.rule << " of " << json(r.type).get<std::string>());
    const auto before = program_of(r.before, r.type), after = program_of(r.after, r.type);
    std::vector<std::string_view> applied;
    const auto now = rewrite(before, &applied);
    CHECK(std::count(applied.begin(), applied.end(), r.rule) >= 1);
    CHECK(same(now, now.outputs[0], after, after.outputs[0]));
    check_same_bits(before, now);
    seen.insert(r.rule);
  }
  for (const auto& rule : rewrite_rules()) {
    INFO(rule.name);
    CHECK(seen.count(rule.name));
    CHECK_FALSE(rule.exact.empty());
  }
  CHECK(seen.size() == rewrite_rules().size());
}

TEST_CASE("what only looks neutral stays") {
  using o = operation;
  const std::vector<std::pair<dtype, made>> kept{
      {f, [](g& t) { return t.b.add2(t.x, t.number(0)); }},                                // -0 + 0 is +0
      {f, [](g& t) { return t.b.sub(t.x, t.number(-0.0)); }},                              // likewise
      {f, [](g& t) { return t.b.sub(t.number(0), t.x); }},                                 // of 0 it is +0, -x is -0
      {f, [](g& t) { return t.b.mul(t.x, t.number(0)); }},                                 // NaN and infinity
      {f, [](g& t) { return t.b.sub(t.x, t.x); }},
      {f, [](g& t) { return t.b.div(t.x, t.x); }},
      {f, [](g& t) { return t.neg(t.b.sub(t.x, t.y)); }},                                  // of equal ones -0, y - x is +0
      {f, [](g& t) { return t.no(t.b.compare(o::less, t.x, t.y)); }},                      // NaN is in no order
      {f, [](g& t) { return t.b.convert(t.b.convert(t.x, dtype::int64), f); }},            // the fraction is lost
      {f, [](g& t) { return t.b.convert(t.b.convert(t.whole, f), dtype::int64); }},        // 24 digits of 63
      {f, [](g& t) { return t.b.convert(t.b.convert(t.whole, dtype::int8), dtype::int64); }},
      {dtype::float64, [](g& t) { return t.b.convert(t.b.convert(t.x, f), dtype::float64); }},
      {f, [](g& t) { return t.b.convert(t.b.convert(t.x, dtype::float64), dtype::int8); }}, // each type makes other whole numbers of what is too large
      {dtype::uint8, [](g& t) { return t.abs(t.neg(t.x)); }},                              // 256 - x
      {f, [](g& t) { return t.b.mul(t.abs(t.x), t.abs(t.y)); }},
      {f, [](g& t) { return t.b.view(t.b.reshape(t.x, {6, 4}), {4, 6}, {{0, 1, 1}, {0, 1, 0}}); }},
  };
  for (size_t i = 0; i < kept.size(); ++i) {
    INFO("number " << i);
    const auto before = program_of(kept[i].second, kept[i].first);
    std::vector<std::string_view> applied;
    const auto now = rewrite(before, &applied);
    CHECK(applied.empty());
    CHECK(same(now, now.outputs[0], before, before.outputs[0]));
  }
}

TEST_CASE("rules apply until none does: one makes room for the next") {
  const auto before = program_of([](g& t) { // -(-(x - 0)) * (1 reshaped) + -(-(-y))
    const int one = t.b.reshape(t.b.constant(1, f, {24}), shape);
    return t.b.add2(t.b.mul(t.neg(t.neg(t.b.sub(t.x, t.number(0)))), one), t.neg(t.neg(t.neg(t.y))));
  }, f);
  const auto after = program_of([](g& t) { return t.b.sub(t.x, t.y); }, f);
  const auto now = rewrite(before);
  CHECK(same(now, now.outputs[0], after, after.outputs[0]));
  CHECK(now.nodes.size() == 3); // two inputs and the difference: what nobody needs is gone
  std::vector<std::string_view> again;
  rewrite(now, &again);
  CHECK(again.empty());
  check_same_bits(before, now);
}

TEST_CASE("a long chain is rewritten in time that grows with its length") {
  const auto before = program_of([](g& t) {
    int x = t.x;
    for (int i = 0; i < 3000; ++i) x = t.b.sub(t.neg(x), t.number(0));
    return x;
  }, f);
  const auto now = rewrite(before);
  CHECK(now.nodes.size() == 1);
}
