// One candidate examined without the loop: what the functions give back, without any terminal.
#include "tests/integration/small_task.hpp"

#include "actors/examine.hpp"
#include "base/files.hpp"

#include <catch2/catch.hpp>

using namespace pragma;

namespace {

candidate kernel(const std::string& body) {
  candidate c;
  c.source = "#include \"pragma_kernel.h\"\n\nextern \"C\" void pragma_kernel(const pragma_args* args) {\n"
             "  const float* x = static_cast<const float*>(args->inputs[0].data);\n"
             "  float* y = static_cast<float*>(args->outputs[0].data);\n  const long n = 64 * 4096;\n" + body + "}\n";
  c.flags = {"-O3", "-march=native"};
  return c;
}
const candidate right = kernel("  for (long i = 0; i < n; ++i) y[i] = (x[i] > 0 ? x[i] : 0) * 2.0f + 1.0f;\n");
const candidate other = kernel("  for (long i = 0; i < n; ++i) { const float v = x[i] > 0 ? x[i] : 0; y[i] = v + v + 1.0f; }\n");
const candidate wrong = kernel("  for (long i = 0; i < n; ++i) y[i] = x[i];\n");

} // namespace

TEST_CASE("a diagnosis is asked with the task's work, its written part, and limits only where they were measured") {
  loaded_task loaded;
  loaded.task.flops = 10;
  loaded.task.bytes = 100;
  tensor_spec out;
  out.shape = {4, 2};
  loaded.task.outputs = {out};
  load_request load;
  load.threads = 3;
  load.tf32 = tf32_use::all;
  const profile current, best;
  auto input = diagnosis_of(loaded, load, current, &best, "source");
  CHECK(input.current == &current);
  CHECK(input.best == &best);
  CHECK(input.limits == nullptr);
  CHECK(input.written_bytes == 32);
  CHECK(input.threads == 3);
  CHECK(input.products == product_precision::tf32);
  loaded.limits.peak_gflops = 1;
  CHECK(diagnosis_of(loaded, load, current, nullptr, "").limits == &loaded.limits);
}

TEST_CASE("more threads than processors are not taken without a word") {
  CHECK(too_many_threads(2, 2).empty());
  CHECK(too_many_threads(64, 0).empty()); // unknown
  CHECK_THAT(too_many_threads(64, 2), Catch::Contains("64 threads take turns on 2 processors"));
}

TEST_CASE("examine: a wrong kernel is a verdict and is not timed; a right one is timed, compared and diagnosed", "[alone]") {
  auto folder = temp_dir::create("pragma-test-");
  REQUIRE(folder);
  REQUIRE(write_file_atomic(folder->path() / "task.py", small_task));
  load_request load;
  load.path = (folder->path() / "task.py").string();
  load.seeds = 1;
  workbench bench(nullptr, false);
  auto loaded = load_checked(bench, load);
  if (!loaded) FAIL(render(loaded.error()));

  examine_request request;
  request.measure = true;
  request.profile_seconds = 0.5;
  request.candidate = wrong;
  auto found = examine(bench, *loaded, load, request);
  if (!found) FAIL(render(found.error()));
  CHECK(found->verdict.stage == verdict_stage::compare);
  CHECK_FALSE(found->measured);
  CHECK_FALSE(document(*found).contains("profile"));

  request.candidate = right;
  request.against = wrong;
  request.against_name = "old.cpp";
  const auto refused = examine(bench, *loaded, load, request);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ec::candidate_failed);
  CHECK_THAT(refused.error().message, Catch::Contains("old.cpp is not right"));

  request.against = other;
  std::vector<std::string> steps;
  found = examine(bench, *loaded, load, request, [&](const std::string& step) { steps.push_back(step); });
  if (!found) FAIL(render(found.error()));
  CHECK(found->verdict.passed());
  CHECK(found->measured);
  CHECK(found->profile.time.candidate_seconds > 0);
  CHECK(found->compared);
  CHECK(document(*found)["against"]["candidate"] == other.id());
  CHECK(document(*found)["verdict"]["stage"] == "passed");
  CHECK(steps.size() == 3);
}
