// Where a graph is cut between what we compile and what Torch keeps. On graphs as JSON: no Torch, no compiler.
#include "synthesis/partition/cut.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

using namespace pragma;
using namespace pragma::synthesis;

namespace {

json ref(const std::string& id) { return {{"ref", id}}; }
json unary(const std::string& id, const std::string& op, const std::string& of, std::vector<int64_t> shape = {64, 32}) {
  return {{"id", id}, {"op", "aten." + op + ".default"}, {"args", {{"self", ref(of)}}}, {"shape", shape}, {"dtype", "float32"}};
}
json binary(const std::string& id, const std::string& op, const std::string& a, const std::string& b, std::vector<int64_t> shape = {64, 32}) {
  return {{"id", id}, {"op", "aten." + op + ".Tensor"}, {"args", {{"self", ref(a)}, {"other", ref(b)}, {"alpha", 1}}}, {"shape", shape}, {"dtype", "float32"}};
}
json product(const std::string& id, const std::string& a, const std::string& b, std::vector<int64_t> shape) {
  return {{"id", id}, {"op", "aten.mm.default"}, {"args", {{"self", ref(a)}, {"mat2", ref(b)}}}, {"shape", shape}, {"dtype", "float32"}};
}
/// An operator that nobody lowers, of one result or of two.
json unknown(const std::string& id, const std::string& of, std::vector<int64_t> shape = {64, 32}) { return unary(id, "heaviside_of_nobody", of, shape); }
json two_results(const std::string& id, const std::string& of) {
  return {{"id", id}, {"op", "aten.topk.default"}, {"args", {{"self", ref(of)}, {"k", 2}, {"dim", -1}, {"largest", true}, {"sorted", true}}}, {"shapes", {{64, 2}, {64, 2}}}, {"dtypes", {"float32", "int64"}}};
}
json item(const std::string& id, const std::string& of, int index, const std::string& type) {
  return {{"id", id}, {"op", "getitem"}, {"args", {{"self", ref(of)}, {"index", index}}}, {"shape", {64, 2}}, {"dtype", type}};
}

struct made {
  json document;
  graph parsed;
};
made graph_of(json nodes, std::vector<std::string> outputs, json more = json::object()) {
  json g = {{"version", 1},
            {"inputs", {{{"id", "x0"}, {"input", 0}, {"shape", {64, 32}}, {"dtype", "float32"}, {"used", true}}}},
            {"params", {{{"id", "p0"}, {"param", 0}, {"shape", {32, 32}}, {"dtype", "float32"}, {"used", true}}, {{"id", "p1"}, {"param", 1}, {"shape", {32, 32}}, {"dtype", "float32"}, {"used", true}}}},
            {"constants", json::array()},
            {"nodes", std::move(nodes)},
            {"outputs", std::move(outputs)},
            {"random", false},
            {"mutated", json::array()}};
  g.update(more);
  auto parsed = parse_graph(g.dump());
  if (!parsed) FAIL(render(parsed.error()));
  return {std::move(g), std::move(*parsed)};
}

partition cut_of(const made& m, const keeps& torch_keeps = {}) {
  auto result = cut(m.parsed, torch_keeps);
  if (!result) FAIL(render(result.error()));
  return std::move(*result);
}

std::vector<std::string> ids(const made& m, const part& p) {
  std::vector<std::string> found;
  for (const auto i : p.nodes) found.push_back(m.parsed.nodes[i].id);
  return found;
}
using words = std::vector<std::string>;

/// Whatever is cut: each node is in one part, parts read what is there, and what is read later is an output.
void check_order(const made& m, const partition& cut_at) {
  std::set<std::string> there = {"x0", "p0", "p1"};
  std::set<size_t> seen;
  for (const auto& p : cut_at.parts) {
    for (const auto& id : p.inputs) CHECK(there.contains(id));
    for (const auto i : p.nodes) CHECK(seen.insert(i).second);
    CHECK(std::is_sorted(p.nodes.begin(), p.nodes.end()));
    for (const auto& id : p.outputs) there.insert(id);
  }
  CHECK(seen.size() == m.parsed.nodes.size());
  for (const auto& id : m.parsed.outputs) CHECK(there.contains(id));
}

} // namespace

TEST_CASE("an operator that is not lowered is Torch's, what is before and after it ours") {
  const auto m = graph_of({product("logits", "x0", "p0", {64, 32}), unary("powers", "exp", "logits"), two_results("best", "powers"), item("values", "best", 0, "float32"), item("places", "best", 1, "int64"),
                           unary("small", "tanh", "values", {64, 2})},
                          {"small", "places"});
  const auto cut_at = cut_of(m);
  check_order(m, cut_at);
  REQUIRE(cut_at.parts.size() == 3);
  CHECK(cut_at.parts[0].ours);
  CHECK(ids(m, cut_at.parts[0]) == words{"logits", "powers"});
  CHECK(cut_at.parts[0].params == std::vector<size_t>{0});
  CHECK_FALSE(cut_at.parts[1].ours);
  CHECK(ids(m, cut_at.parts[1]) == words{"best", "values", "places"});
  CHECK(cut_at.parts[1].outputs == words{"values", "places"});
  CHECK(cut_at.parts[2].ours);
  CHECK(cut_at.parts[2].inputs == words{"values"});
  REQUIRE(cut_at.kept.size() == 1);
  CHECK(cut_at.kept[0].call == "topk");
  CHECK(cut_at.kept[0].why == "aten.topk has no rule");
}

TEST_CASE("a value is computed where it is read, so that nothing is stored between the parts for it") {
  const auto m = graph_of({unary("early", "exp", "x0"), unary("before", "tanh", "x0"), unknown("call", "before"), binary("sum", "add", "early", "call")}, {"sum"});
  const auto cut_at = cut_of(m);
  check_order(m, cut_at);
  REQUIRE(cut_at.parts.size() == 3);
  CHECK(ids(m, cut_at.parts[0]) == words{"before"});
  CHECK(ids(m, cut_at.parts[2]) == words{"early", "sum"});
  CHECK(cut_at.parts[2].inputs == words{"x0", "call"});
}

TEST_CASE("a view that only Torch's calls read is theirs, and a part that computes nothing is no part of ours") {
  json turned = {{"id", "turned"}, {"op", "aten.permute.default"}, {"args", {{"self", ref("x0")}, {"dims", {1, 0}}}}, {"shape", {32, 64}}, {"dtype", "float32"}};
  const auto m = graph_of({turned, unknown("call", "turned", {32, 64}), unary("after", "exp", "call", {32, 64})}, {"after"});
  const auto cut_at = cut_of(m);
  check_order(m, cut_at);
  REQUIRE(cut_at.parts.size() == 2);
  CHECK(ids(m, cut_at.parts[0]) == words{"turned", "call"});
  CHECK_FALSE(cut_at.parts[0].ours);
  // ... and what depends on parameters alone is computed with what it is for, or by Torch.
  const auto constant = graph_of({unary("of_p", "exp", "p0", {32, 32}), unknown("call", "of_p", {32, 32}), binary("sum", "add", "x0", "x0"), product("out", "sum", "call", {64, 32})}, {"out"});
  for (const auto& p : cut_of(constant).parts)
    if (p.ours) CHECK_FALSE(p.inputs.empty());
}

TEST_CASE("a type that no kernel has stays Torch's, with all that makes or takes it") {
  for (const char* type : {"complex64", "complex32", "float8_e4m3fn", "uint16", "qint8", "a_type_of_tomorrow"}) {
    CAPTURE(type);
    auto made_of = unary("wave", "tanh", "before"); // each has a rule for types that kernels have
    made_of["dtype"] = type;
    auto inside = unary("inside", "neg", "wave");
    inside["dtype"] = type;
    const auto m = graph_of({unary("before", "exp", "x0"), made_of, inside, unary("turned", "abs", "inside"), unary("out", "exp", "turned")}, {"out"});
    const auto cut_at = cut_of(m);
    check_order(m, cut_at);
    REQUIRE(cut_at.parts.size() == 3);
    CHECK(ids(m, cut_at.parts[0]) == words{"before"});
    CHECK(ids(m, cut_at.parts[1]) == words{"wave", "inside", "turned"});
    CHECK_FALSE(cut_at.parts[1].ours);
    CHECK(ids(m, cut_at.parts[2]) == words{"out"});
    REQUIRE(cut_at.kept.size() == 3);
    CHECK(cut_at.kept[2].why == "aten.abs: no kernel has the type " + std::string(type));
  }
}

TEST_CASE("views alone may be what stands between two parts") {
  auto pairs = unary("pairs", "view_as_complex", "before"), back = unary("back", "view_as_real", "pairs");
  pairs["dtype"] = "complex32";
  const auto m = graph_of({unary("before", "exp", "x0"), pairs, back, unary("out", "exp", "back")}, {"out"});
  const auto cut_at = cut_of(m);
  CHECK(cut_at.parts.size() == 3);
  CHECK(calls_of(cut_at.kept) == "view_as_complex, view_as_real");
}

TEST_CASE("parameters of a type that no kernel has go to Torch's calls, never to a kernel, not even where only their shape is read") {
  const json foreign = {{"foreign", {{{"id", "f0"}, {"foreign", "table"}, {"shape", {64, 32}}, {"dtype", "float8_e4m3fn"}, {"used", true}}}}};
  auto wide = json{{"id", "wide"}, {"op", "aten._to_copy.default"}, {"args", {{"self", ref("f0")}, {"dtype", "float32"}}}, {"shape", {64, 32}}, {"dtype", "float32"}};
  auto like = json{{"id", "like"}, {"op", "aten.zeros_like.default"}, {"args", {{"self", ref("f0")}, {"dtype", "float32"}}}, {"shape", {64, 32}}, {"dtype", "float32"}};
  const auto m = graph_of({wide, like, unary("powers", "exp", "x0"), binary("sum", "add", "wide", "powers"), binary("out", "add", "sum", "like")}, {"out"}, foreign);
  REQUIRE(m.parsed.foreign.size() == 1);
  CHECK(m.parsed.foreign[0].type.foreign == "float8_e4m3fn");
  const auto cut_at = cut_of(m);
  check_order(m, cut_at);
  REQUIRE(cut_at.parts.size() == 2);
  CHECK(ids(m, cut_at.parts[0]) == words{"wide", "like"});
  CHECK_FALSE(cut_at.parts[0].ours);
  CHECK(ids(m, cut_at.parts[1]) == words{"powers", "sum", "out"});
  CHECK(cut_at.parts[1].inputs == words{"x0", "wide", "like"});
}

TEST_CASE("of a call with results of which one is foreign, the others are a kernel's to read") {
  json scaled = {{"id", "scaled"}, {"op", "aten.scaled_by_nobody.default"}, {"args", {{"self", ref("x0")}}}, {"shapes", {{64, 32}, {64, 32}}}, {"dtypes", {"float8_e5m2", "float32"}}};
  auto small = item("small", "scaled", 0, "float8_e5m2"), scale = item("scale", "scaled", 1, "float32");
  small["shape"] = scale["shape"] = {64, 32};
  auto back = unary("back", "neg", "small");
  const auto m = graph_of({scaled, small, scale, back, binary("out", "mul", "back", "scale")}, {"out"});
  const auto cut_at = cut_of(m);
  check_order(m, cut_at);
  REQUIRE(cut_at.parts.size() == 2);
  CHECK(ids(m, cut_at.parts[0]) == words{"scaled", "small", "scale", "back"});
  CHECK(ids(m, cut_at.parts[1]) == words{"out"});
}

TEST_CASE("contractions are Torch's where that is asked for") {
  const auto m = graph_of({product("a", "x0", "p0", {64, 32}), unary("b", "exp", "a"), product("c", "b", "p1", {64, 32}), unary("d", "exp", "c")}, {"d"});
  const auto cut_at = cut_of(m, is_contraction);
  check_order(m, cut_at);
  REQUIRE(cut_at.parts.size() == 4);
  CHECK(ids(m, cut_at.parts[1]) == words{"b"});
  CHECK(ids(m, cut_at.parts[3]) == words{"d"});
  REQUIRE(cut_at.kept.size() == 1); // in no line: said once
  CHECK(cut_at.kept[0].why.starts_with("mm: Torch's own may be the faster one"));
  CHECK(shape_of(m.parsed, cut_at.parts[1]) == shape_of(m.parsed, cut_at.parts[3])); // one kernel serves both
  CHECK(shape_of(m.parsed, cut_at.parts[0]) != shape_of(m.parsed, cut_at.parts[1]));
  CHECK(cut_of(m).parts.size() == 1);
}

TEST_CASE("parts are equal where they compute the same with other tensors, and in nothing else") {
  const auto with = [](const char* op, int alpha) {
    auto sum = binary("d", "add", "c", "p1", {32, 32});
    sum["args"]["alpha"] = alpha;
    auto other = binary("b", op, "a", "p0", {32, 32});
    return graph_of({unknown("a", "x0", {32, 32}), other, unknown("c", "b", {32, 32}), sum}, {"d"});
  };
  const auto equal = with("add", 1);
  const auto cut_equal = cut_of(equal);
  CHECK(shape_of(equal.parsed, cut_equal.parts[1]) == shape_of(equal.parsed, cut_equal.parts[3]));
  for (const auto& other : {with("mul", 1), with("add", 2)}) {
    const auto cut_at = cut_of(other);
    CHECK(shape_of(other.parsed, cut_at.parts[1]) != shape_of(other.parsed, cut_at.parts[3]));
  }
}

TEST_CASE("what a replayed graph would not be is not cut") {
  const auto nodes = json::array({unary("a", "exp", "x0"), unknown("b", "a")});
  CHECK_FALSE(cut(graph_of(nodes, {"b"}, {{"random", true}}).parsed));
  CHECK_FALSE(cut(graph_of(nodes, {"b"}, {{"mutated", {"input x0"}}}).parsed));
  CHECK(cut(graph_of(nodes, {"b"}, {{"mutated", {"p0"}}}).parsed));
  CHECK_FALSE(cut(graph_of({unary("a", "exp", "x0"), unary("b", "as_strided", "a")}, {"b"}).parsed));
  CHECK_FALSE(cut(graph_of({unknown("b", "x0")}, {"b"}).parsed));                         // nothing is ours
  CHECK_FALSE(cut(graph_of({unary("a", "exp", "x0"), unknown("b", "a")}, {"b", "p0"}).parsed));
}

TEST_CASE("a recurrent layer of many steps is ours where the writer has loops, and Torch's where steps are written out") {
  json layer = {{"id", "a"}, {"op", "aten.rnn_tanh.input"}, {"shapes", {{100, 2, 32}, {1, 2, 32}}}, {"dtypes", {"float32", "float32"}},
                {"args", {{"input", ref("x1")}, {"hx", ref("x2")}, {"params", {ref("p0"), ref("p1")}}, {"has_biases", false}, {"num_layers", 1}, {"dropout", 0.0}, {"train", false}, {"bidirectional", false},
                          {"batch_first", false}}}};
  json taken = {{"id", "b"}, {"op", "getitem"}, {"args", {{"self", ref("a")}, {"index", 0}}}, {"shape", {100, 2, 32}}, {"dtype", "float32"}};
  const json inputs = {{{"id", "x1"}, {"input", 0}, {"shape", {100, 2, 32}}, {"dtype", "float32"}, {"used", true}}, {{"id", "x2"}, {"input", 1}, {"shape", {1, 2, 32}}, {"dtype", "float32"}, {"used", true}}};
  const auto m = graph_of({layer, taken, unary("c", "relu", "b", {100, 2, 32}), unknown("d", "c", {100, 2, 32})}, {"d"}, {{"inputs", inputs}});
  const auto with_loops = cut(m.parsed);
  REQUIRE(with_loops);
  REQUIRE(with_loops->parts.size() == 2);
  CHECK(ids(m, with_loops->parts[0]) == words{"a", "b", "c"});
  CHECK(with_loops->parts[0].ours);
  const auto without = cut(m.parsed, {}, false);
  REQUIRE(without);
  REQUIRE(without->parts.size() == 3);
  CHECK(ids(m, without->parts[0]) == words{"a", "b"});
  CHECK_FALSE(without->parts[0].ours);
  CHECK(ids(m, without->parts[1]) == words{"c"});
}
