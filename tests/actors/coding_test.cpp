// What a model is told of a task and a machine.
#include "actors/coding.hpp"
#include "base/language.hpp"

#include <catch2/catch.hpp>

using namespace pragma;

namespace {

coder_setup a_setup(dtype weights) {
  coder_setup setup;
  setup.task.name = "linear";
  tensor_spec x, w;
  x.name = "x";
  x.shape = {64, 512};
  w.name = "weight";
  w.shape = {512, 512};
  w.dtype = weights;
  setup.task.inputs = setup.task.outputs = {x};
  setup.task.params = {w};
  setup.limits.cpu = "made up";
  setup.limits.peak_gflops = 100;
  return setup;
}

coding_task told(const coder_setup& setup) {
  auto prompt = prompt_for(setup, std::string(language_name::cpp));
  if (!prompt) FAIL(prompt.error().message);
  return *prompt;
}

} // namespace

TEST_CASE("a model is told of narrow types wherever the task has them, of its tolerance, and of tiles") {
  auto setup = a_setup(dtype::float32);
  auto prompt = told(setup);
  CHECK(prompt.narrow_types.empty());
  CHECK(prompt.tolerance == defaults::tolerance_float32);
  CHECK_FALSE(prompt.tiles);
  CHECK(prompt.machine.find("AMX") == std::string::npos);
  CHECK(told(a_setup(dtype::int8)).narrow_types == std::vector<std::string>{"int8"});
  // Autocast: no tensor of the task is of a half type.
  setup.task.graph = R"({"nodes": [{"dtype": "bfloat16"}]})";
  setup.task.tolerance = defaults::tolerance_bfloat16;
  setup.limits.half_gflops = 1000;
  prompt = told(setup);
  CHECK(prompt.narrow_types == std::vector<std::string>{"bfloat16"});
  CHECK(prompt.tolerance == defaults::tolerance_bfloat16);
  CHECK(prompt.tiles);
  CHECK(prompt.machine.find("1000 bfloat16 on tiles (AMX") != std::string::npos);
  setup.task.graph.clear();
  setup.task.outputs.front().dtype = dtype::int64;
  CHECK(prompt_for(setup, std::string(language_name::triton))->tolerance == 0); // integers must be equal
}
