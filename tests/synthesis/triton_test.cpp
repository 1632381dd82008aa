// The built-in coder in Triton: modules of small tasks of every family run on a stand-in for Triton (triton_stand_in) against
// Torch on the CPU, with the starting schedule and with schedules drawn at random. What a GPU's compiler says is not tested here.
#include "triton_fixture.hpp"
#include "triton_tasks.hpp"
#include "triton_python.hpp"
#include "tests/fixtures/skip.hpp"

#include <set>

using namespace pragma;

namespace {

finding seen(bottleneck what) {
  finding f;
  f.what = what;
  f.confidence = 0.8;
  return f;
}

} // namespace

TEST_CASE_METHOD(stand_in, "the first Triton module of every family is right") {
  for (const auto& small : tasks) {
    INFO(small.name);
    const auto c = first_of(describe(small), in_triton());
    CHECK(c.language == "triton");
    CHECK(c.compiler.empty());
    add(small, c, "start");
  }
  run();
}

TEST_CASE_METHOD(stand_in, "Triton modules with rows of many sizes are right, in registers, in loops and shared by programs") {
  for (const auto& small : triton_tasks) {
    INFO(small.name);
    const auto t = describe(small);
    add(small, first_of(t, in_triton()), "start");
    for (uint64_t seed = 1; seed <= 4; ++seed) add(small, first_of(t, in_triton(search_mode::random, seed)), "random" + std::to_string(seed));
  }
  run();
}

TEST_CASE_METHOD(stand_in, "Triton's own interpreter says of our modules what the stand-in says") {
  const std::set<std::string> chosen{"chain", "gelu", "softmax_last", "softmax_first", "layer_norm", "argmax_middle", "cumsum_reverse", "decays", "max_pool_2d", "cross_entropy", "linear",
                                     "bmm", "conv_2d", "depthwise", "transposed_2d"};
  const auto python = test::python_with("torch, triton");
  if (python.empty()) return test::skip(std::to_string(chosen.size()) + " modules in Triton's interpreter, since no Python that is named has Torch and Triton");
  for (const auto& small : tasks)
    if (chosen.count(small.name)) add(small, first_of(describe(small), in_triton()), "start");
  REQUIRE(pairs.size() == 2 * chosen.size());
  run(python);
}

TEST_CASE_METHOD(stand_in, "a finding chooses the next Triton schedule, and no module comes twice") {
  const small_task softmax{"softmax_long", "return torch.softmax(x, dim=1)", "[torch.randn(4, 40000)]"};
  auto coder = builtin_coder::create(describe(softmax), in_triton());
  REQUIRE(coder);
  auto made = coder->next(std::nullopt);
  REQUIRE(made);
  std::set<std::string> sources{made->source};
  attempt_feedback feedback;
  feedback.candidate = made->id();
  feedback.passed = feedback.new_best = true;
  feedback.findings = {seen(bottleneck::tail_effect)};
  made = coder->next(feedback);
  REQUIRE(made);
  INFO(made->rationale);
  CHECK(made->rationale.find("tail effect") != std::string::npos);
  for (int i = 0; i < 12 && made; ++i) {
    CHECK(sources.insert(made->source).second);
    add(softmax, *made, "step" + std::to_string(i));
    feedback.candidate = made->id();
    feedback.new_best = i % 3 == 0;
    feedback.findings = {seen(i % 2 == 0 ? bottleneck::register_spills : bottleneck::launch_bound)};
    made = coder->next(feedback);
  }
  run();
}

TEST_CASE_METHOD(stand_in, "a schedule that won elsewhere is tried first where it fits, and refused where it makes no sense") {
  const small_task rows{"rows", "return torch.softmax(x, dim=1)", "[torch.randn(6, 700)]"};
  const auto t = describe(rows);
  auto options = in_triton();
  const auto won = first_of(t, in_triton(search_mode::random, 3));
  options.known_schedule = won.schedule;
  options.known_from = "another task";
  CHECK(first_of(t, options).source == won.source);
  auto broken = parse_json(won.schedule, "test");
  REQUIRE(broken);
  (*broken)["regions"][0]["block"]["lanes"] = 3; // no power of two
  options.known_schedule = broken->dump();
  CHECK(first_of(t, options).source == first_of(t, in_triton()).source);
  options.known_schedule = first_of(t, {}).schedule; // of C++
  CHECK(first_of(t, options).source == first_of(t, in_triton()).source);
  auto in_cpp = builtin_options{};
  in_cpp.known_schedule = won.schedule;
  CHECK(first_of(t, in_cpp).source == first_of(t, {}).source);
}

TEST_CASE_METHOD(stand_in, "TF32 is offered only where the options allow it") {
  const small_task product{"product", "return torch.matmul(x, y)", "[torch.randn(64, 96), torch.randn(96, 80)]", "", "x, y"};
  const auto t = describe(product);
  for (const bool allowed : {false, true}) {
    auto options = in_triton(search_mode::unguided);
    options.tf32 = allowed ? tf32_use::all : tf32_use::convolutions;
    CHECK((first_of(t, options).schedule.find("\"precision\":\"tf32\"") != std::string::npos) == allowed); // and at once: it is what was asked for
    auto coder = builtin_coder::create(t, options);
    REQUIRE(coder);
    bool rounded = false;
    attempt_feedback feedback;
    for (int i = 0; i < 60; ++i) {
      const auto made = coder->next(i == 0 ? std::nullopt : std::optional(feedback));
      if (!made) break;
      rounded = rounded || made->schedule.find("\"precision\":\"tf32\"") != std::string::npos;
      feedback = {};
      feedback.candidate = made->id();
      feedback.passed = true;
      feedback.new_best = i == 0;
    }
    CHECK(rounded == allowed);
  }
}

TEST_CASE_METHOD(stand_in, "an unknown language is refused by name") {
  const small_task chain{"chain", "return x + 1", "[torch.randn(3)]"};
  auto options = in_triton();
  options.language = "fortran";
  const auto coder = builtin_coder::create(describe(chain), options);
  REQUIRE(!coder);
  CHECK(render(coder.error()).find("fortran") != std::string::npos);
}
