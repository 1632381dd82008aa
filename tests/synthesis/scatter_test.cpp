// What is written where a tensor of places says: right against Torch, and never outside of the output, whatever the places are.
#include "kernel_fixture.hpp"
#include "scatter_tasks.hpp"
#include "triton_fixture.hpp"

#include "execution/build.hpp"
#include "verification/verify.hpp"

#include <limits>

using namespace pragma;
using namespace pragma::test;

namespace {

/// The first kernel of a task, by several threads, against the float64 oracle.
void check_first(stand_in& torch, const small_task& small, int threads) {
  INFO(small.name << " on " << threads << " threads");
  auto loaded = torch.torch->load(torch.write(std::string(small.name) + ".py", text_of(small)), 2);
  if (!loaded) FAIL(render(loaded.error()));
  builtin_options options;
  options.threads = threads;
  const auto first = coder_of(*loaded, options).next(std::nullopt);
  REQUIRE(first);
  INFO(first->source);
  const auto built = build_candidate(*first, build_options{});
  if (!built) FAIL(render(built.error()));
  verify_options checks;
  checks.seeds = 2;
  checks.threads = threads;
  const auto audit = audit_task(*loaded, *torch.torch, checks);
  if (!audit) FAIL(render(audit.error()));
  const auto v = verify(*loaded, *audit, *torch.torch, *built, checks);
  if (!v) FAIL(render(v.error()));
  INFO(v->reason);
  CHECK(v->passed());
}

} // namespace

TEST_CASE_METHOD(stand_in, "what is scattered, carried along or cut into patches is right") {
  REQUIRE(torch);
  for (const auto& small : scatter_tasks) check_first(*this, small, 1);
  for (const auto& small : scatter_tasks_of_processors) check_first(*this, small, 1);
}

TEST_CASE_METHOD(stand_in, "threads share out what is scattered without meeting each other") {
  REQUIRE(torch);
  check_first(*this, {"shared_rows", "return torch.zeros(700, 512).index_add(0, y, torch.tanh(x))", "[torch.randn(3000, 512), torch.randint(0, 700, (3000,))]", "", "x, y"}, 2);
  check_first(*this, {"shared_columns", "return torch.zeros(64, 700).scatter_add(1, y, torch.tanh(x))", "[torch.randn(64, 20000), torch.randint(0, 700, (64, 20000))]", "", "x, y"}, 2);
}

TEST_CASE_METHOD(stand_in, "the first Triton module of what is scattered or carried along is right") {
  for (const auto& small : scatter_tasks) {
    INFO(small.name);
    const auto t = describe(small);
    add(small, first_of(t, in_triton()), "start");
    for (uint64_t seed = 1; seed <= 2; ++seed) add(small, first_of(t, in_triton(search_mode::random, seed)), "random" + std::to_string(seed));
  }
  run();
}

TEST_CASE_METHOD(stand_in, "a kernel that adds to memory is not run to choose its sizes") {
  const small_task large{"large_sums", "return torch.zeros(4096, 2048).index_add(0, y, x)", "[torch.randn(16384, 2048), torch.randint(0, 4096, (16384,))]", "", "x, y"};
  const auto source = first_of(describe(large), in_triton()).source;
  const auto scatter = source.find("tl.atomic_add"), kernel = source.rfind("@triton.", scatter);
  REQUIRE(scatter != std::string::npos);
  CHECK(source.compare(kernel, 11, "@triton.jit") == 0);
}

TEST_CASE_METHOD(stand_in, "what a device has no atomic operation for is refused by name there") {
  for (const auto& small : scatter_tasks_of_processors) {
    if (std::string(small.name) == "scatter_several") continue;
    const auto refused = builtin_coder::create(describe(small), in_triton());
    REQUIRE_FALSE(refused);
    CHECK(render(refused.error()).find("no atomic operation") != std::string::npos);
  }
}

TEST_CASE_METHOD(stand_in, "a loop of linear steps is one scan, and one that is not linear stays as it was written") {
  const auto source = [&](const std::string& name, const builtin_options& options) {
    const auto small = std::find_if(std::begin(scatter_tasks), std::end(scatter_tasks), [&](const auto& t) { return name == t.name; });
    REQUIRE(small != std::end(scatter_tasks));
    return first_of(describe(*small), options).source;
  };
  const auto count = [](const std::string& text, const std::string& what) {
    int n = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
  };
  for (const char* name : {"selective_scan", "scan_from_a_state", "scan_of_rows"}) {
    INFO(name);
    CHECK(count(source(name, {}), "// Region") <= 6);
    CHECK(count(source(name, {}), "(scanned)") >= 1);
    CHECK(source(name, in_triton()).find("combine_fn=decayed") != std::string::npos);
  }
  CHECK(source("loop_that_is_not_linear", {}).find("(scanned)") == std::string::npos);
}

TEST_CASE("nothing is written outside of the output, wherever the places point") {
  constexpr int64_t rows = 6, columns = 19, n = 5, guard = 64;
  const std::vector<int64_t> outside{-1, rows, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), 2};
  graph_text g;
  const auto ref = &graph_text::ref;
  const auto x = g.input({rows, columns}), v = g.input({n, columns}), y = g.input({n}, "int64"), each = g.input({n, columns}, "int64");
  const json line = {{"self", ref(x)}, {"dim", 0}, {"index", ref(y)}};
  const auto with = [](json args, const json& more) { return args.update(more), args; };
  const std::vector<std::string> outputs{
      g.node("aten.index_add.default", with(line, {{"source", ref(v)}, {"alpha", 1}}), {rows, columns}),
      g.node("aten.index_copy.default", with(line, {{"source", ref(v)}}), {rows, columns}),
      g.node("aten.index_fill.int_Scalar", with(line, {{"value", 7.0}}), {rows, columns}),
      g.node("aten.scatter_add.default", {{"self", ref(x)}, {"dim", 0}, {"index", ref(each)}, {"src", ref(v)}}, {rows, columns}),
      g.node("aten.scatter.src", {{"self", ref(x)}, {"dim", 0}, {"index", ref(each)}, {"src", ref(v)}}, {rows, columns}),
      g.node("aten.scatter_reduce.two", {{"self", ref(x)}, {"dim", 0}, {"index", ref(each)}, {"src", ref(v)}, {"reduce", "amax"}, {"include_self", true}}, {rows, columns})};
  auto coder = coder_for(g.finish(outputs));
  const auto made = coder.next(std::nullopt);
  REQUIRE(made);
  INFO(made->source);
  const loaded kernel(made->source, made->flags);
  auto self = random_floats(rows * columns, 1), values = random_floats(n * columns, 2);
  tensor<int64_t> places(n), of_each(n * columns);
  for (int64_t i = 0; i < n; ++i) {
    places[static_cast<size_t>(i)] = outside[static_cast<size_t>(i)];
    for (int64_t k = 0; k < columns; ++k) of_each[static_cast<size_t>(i * columns + k)] = outside[static_cast<size_t>((i + k) % n)];
  }
  std::vector<tensor<float>> results;
  std::vector<void*> out;
  constexpr float untouched = -12345;
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.emplace_back(static_cast<size_t>(rows * columns + 2 * guard));
    for (size_t k = 0; k < results.back().size(); ++k) results.back()[k] = untouched;
    out.push_back(results.back().data() + guard);
  }
  call(kernel, {self.data(), values.data(), places.data(), of_each.data()}, out);
  for (size_t i = 0; i < results.size(); ++i) {
    INFO("output " << i);
    for (int64_t k = 0; k < guard; ++k) {
      CHECK(results[i][static_cast<size_t>(k)] == untouched);
      CHECK(results[i][static_cast<size_t>(guard + rows * columns + k)] == untouched);
    }
    const auto at = [&](int64_t r, int64_t c) { return results[i][static_cast<size_t>(guard + r * columns + c)]; };
    for (int64_t c = 0; c < columns; ++c) {
      const auto own = [&](int64_t r) { return self[static_cast<size_t>(r * columns + c)]; };
      for (int64_t r = 0; r < rows; ++r)
        if (r != 2) CHECK(at(r, c) == (i == 2 && r == rows - 1 ? 7 : own(r))); // but the row that one of them names, and index_fill's last one, counted from the end
      int64_t from = n - 1; // whose place is 2
      if (i >= 3)
        for (from = 0; outside[static_cast<size_t>((from + c) % n)] != 2;) ++from;
      const auto brought = values[static_cast<size_t>(from * columns + c)];
      const float expected[] = {own(2) + brought, brought, 7, own(2) + brought, brought, std::max(own(2), brought)};
      CHECK(at(2, c) == expected[i]);
    }
  }
}
