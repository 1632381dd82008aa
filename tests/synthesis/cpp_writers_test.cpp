// Emitted C++ as text: brackets, what positions outside of a window give, and the helpers that travel with a kernel.
#include "primitives.hpp"
#include "synthesis/cpp/helpers/helpers.hpp"
#include "synthesis/search/search.hpp"

#include <map>

using namespace pragma;
using namespace pragma::synthesis;
using namespace pragma::synthesis::test;

namespace {

std::string source_of(primitives& p, std::vector<int> outputs) {
  const auto program = p.loops(std::move(outputs));
  return emit_source(program, start_of(program), "test").text;
}

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::string word;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) i = std::min(text.find('\n', i), text.size() - 1);
    if (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_') word += text[i];
    else if (!word.empty()) words.insert(std::exchange(word, {}));
  }
  return words;
}

} // namespace

TEST_CASE("a sign before a sign stands in brackets") {
  primitives p;
  const int x = p.input({7, 33});
  const auto source = source_of(p, {p.b.unary(operation::neg, p.b.unary(operation::neg, x))});
  CHECK(contains(source, "-(-load("));
  CHECK_FALSE(contains(source, "--load"));
}

TEST_CASE("an operand that is a sum stands in brackets, a call does not") {
  primitives p;
  const int x = p.input({7, 33}), y = p.input({7, 33});
  const auto source = source_of(p, {p.b.mul(p.b.add2(x, y), p.b.unary(operation::abs, p.b.sub(x, y)))});
  CHECK(contains(source, "* v_abs("));
  CHECK_FALSE(contains(source, "(v_abs("));
}

TEST_CASE("what an operator makes of a type narrower than a lane wraps as in memory") {
  primitives p;
  const int x = p.input({7, 33}, dtype::int8), y = p.input({7, 33}, dtype::uint8);
  const auto source = source_of(p, {p.b.add2(p.b.convert(p.b.unary(operation::abs, x), dtype::float32), p.b.convert(p.b.unary(operation::neg, y), dtype::float32))});
  CHECK(contains(source, "wrapped<int8_t>(v_abs("));
  CHECK(contains(source, "wrapped<uint8_t>(-"));
}

TEST_CASE("two windows over one tensor give each its own value outside of it") {
  primitives p;
  const int x = p.input({2, 3, 11, 13});
  const window_spec w{{3, 3}, {1, 1}, {1, 1}, {1, 1}};
  const int top = p.b.window(operation::max, x, w, {2, 3, 11, 13}), sum = p.b.window(operation::sum, x, w, {2, 3, 11, 13});
  const auto source = source_of(p, {p.b.add2(top, sum)});
  CHECK(contains(source, ", j, -infinity, lanes, border)"));
  CHECK(contains(source, ", j, 0.0f, lanes, border)"));
}

TEST_CASE("values and positions of one pooling share their loads") {
  primitives p;
  const int x = p.input({2, 3, 11, 13});
  const window_spec w{{3, 3}, {1, 1}, {1, 1}, {1, 1}};
  const int top = p.b.window(operation::max, x, w, {2, 3, 11, 13}), place = p.b.window(operation::argmax, x, w, {2, 3, 11, 13});
  const auto source = source_of(p, {top, place});
  const auto first = source.find("guarded<1>(x0");
  REQUIRE(first != std::string::npos);
  CHECK(source.find("guarded<1>(x0", first + 1) == std::string::npos);
}

TEST_CASE("a long window whose steps are cut into blocks stays inside of the input") {
  primitives p;
  const int x = p.input({3, 5, 301});
  const window_spec w{{200}, {1}, {100}, {1}};
  const auto source = source_of(p, {p.b.window(operation::sum, x, w, {3, 5, 302})});
  CHECK((contains(source, "const window_place inside") || contains(source, "first_inside(o")));
}

TEST_CASE("every helper names what it needs, and needs only what comes before it") {
  std::map<std::string, size_t> place;
  for (size_t i = 0; i < all_helpers().size(); ++i) CHECK(place.emplace(all_helpers()[i].name, i).second);
  for (size_t i = 0; i < all_helpers().size(); ++i) {
    const auto& h = all_helpers()[i];
    INFO(h.name);
    std::set<std::string> reached{h.name};
    std::vector<std::string> open{h.name};
    while (!open.empty()) {
      const auto& needs = all_helpers()[place.at(open.back())].needs;
      open.pop_back();
      for (const auto& n : needs) {
        REQUIRE(place.count(n));
        CHECK(place.at(n) < i);
        if (reached.insert(n).second) open.push_back(n);
      }
    }
    auto words = words_of(h.text);
    for (const char* of_std : {"floor", "round", "to", "select"}) words.erase(of_std); // parameters and functions of the C library
    for (const auto& word : words)
      if (place.count(word) && word != "some_lanes" && word + "_place" != h.name) { // the first is in every source; the last is an overload's own name
        INFO(word);
        CHECK(reached.count(word) == 1);
      }
  }
}

TEST_CASE("each operator's function travels with the kernel, and states the error of the table") {
  for (int i = 1; i < static_cast<int>(operation::matmul); ++i) {
    const auto& t = traits(static_cast<operation>(i));
    if (t.cpp.as != spelling::form::call) continue;
    INFO(t.name);
    CHECK(is_helper(std::string(t.cpp.text)));
    if (!t.cpp_cheap.empty()) CHECK(is_helper(std::string(t.cpp_cheap)));
    if (t.ulp == 0) continue;
    const auto text = helpers_text({std::string(t.cpp.text)}, 8);
    CHECK(contains(text, std::to_string(static_cast<int>(t.ulp)) + " ULP"));
  }
  CHECK_THROWS_AS(helpers_text({"no_such_helper"}, 8), std::logic_error);
}

TEST_CASE("only what a kernel uses is copied into it") {
  primitives p;
  const int x = p.input({7, 33});
  const auto source = source_of(p, {p.b.add2(x, p.b.number(1, x))});
  CHECK(contains(source, "inline auto load("));
  CHECK_FALSE(contains(source, "gather"));
  CHECK_FALSE(contains(source, "exp_polynomial"));
  CHECK_FALSE(contains(source, "immintrin"));
}

TEST_CASE("schedules are equal when their programs are: the header and comments do not count") {
  primitives p;
  const int x = p.input({7, 33});
  const auto program = p.loops({p.b.unary(operation::exp, x)});
  auto one = start_of(program), other = one;
  other.regions[0].tile = one.regions[0].tile + 4; // of columns, which this region does not have
  const auto a = emit_source(program, one, "this"), b = emit_source(program, other, "that Schedule: of mine. Written by me");
  CHECK(a.text != b.text);
  CHECK(a.program == b.program);
  CHECK(a.text.find(a.program.substr(0, a.program.find("extern"))) != std::string::npos);
  CHECK(a.program.find("// Region") == std::string::npos);
  other.regions[0].unroll = one.regions[0].unroll == 1 ? 2 : 1;
  CHECK(emit_source(program, other, "this").program != a.program);
}

TEST_CASE("the search offers no second schedule of one program, and one for each way to build it") {
  primitives p;
  const int x = p.input({7, 33});
  const auto program = p.loops({p.b.unary(operation::exp, x)});
  search_space<schedule> space;
  space.start = start_of(program);
  space.reason = "the start";
  space.emit = [&program](const schedule& s) {
    auto source = emit_source(program, s, "test");
    candidate c;
    c.source = source.text;
    c.compiler = s.compiler;
    return scheduled_candidate{c, source.program};
  };
  space.moves.push_back({"other tiles", "of columns that there are not", {}, [](schedule& s, const loop_program&) { return s.regions[0].tile *= 2, true; }});
  space.moves.push_back({"the other compiler", "", {}, [](schedule& s, const loop_program&) { return s.compiler != "clang" ? (s.compiler = "clang", true) : false; }});
  schedule_search<schedule> search(space, {}, program);
  const auto first = search.next(std::nullopt);
  REQUIRE(first);
  attempt_feedback worked;
  worked.candidate = first->id();
  worked.passed = worked.new_best = true;
  const auto second = search.next(worked);
  REQUIRE(second);
  CHECK(second->compiler == "clang");
  CHECK(second->rationale.find("the other compiler") == 0);
  worked.candidate = second->id();
  worked.new_best = false;
  CHECK_FALSE(search.next(worked)); // "other tiles" alone and with the other compiler: programs that were offered
}
