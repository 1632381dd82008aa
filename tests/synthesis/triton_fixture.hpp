// Emitted Triton modules of small tasks, run on the stand-in for Triton (triton_stand_in) against Torch on the CPU.
#pragma once

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "reference/reference.hpp"
#include "synthesis/search/builtin.hpp"
#include "small_tasks.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

namespace pragma {

inline builtin_options in_triton(search_mode mode = search_mode::findings, uint64_t seed = 1) {
  builtin_options o;
  o.language = "triton";
  o.search = mode;
  o.seed = seed;
  return o;
}

struct stand_in {
  temp_dir dir = std::move(*temp_dir::create("pragma-triton-"));
  expected<reference> torch = reference::start({});
  std::vector<std::string> pairs; ///< module, task, module, task, ...

  std::filesystem::path write(const std::string& name, const std::string& text) {
    const auto path = dir.path() / name;
    std::ofstream(path) << text;
    return path;
  }
  task describe(const small_task& small) {
    REQUIRE(torch);
    auto described = torch->describe(write(std::string(small.name) + ".py", text_of(small)));
    if (!described) FAIL(render(described.error()));
    return *described;
  }
  void add(const small_task& small, const candidate& c, const std::string& variant) {
    pairs.push_back(write(std::string(small.name) + "_" + variant + ".py", c.source).string());
    pairs.push_back((dir.path() / (std::string(small.name) + ".py")).string());
  }
  /// One Python process for all of them: importing Torch takes longer than most kernels. `interpreter`: the real Triton's, of this Python.
  void run(const std::string& interpreter = "") {
    process_spec spec;
    spec.argv = {interpreter.empty() ? torch->python().executable : interpreter, TESTS_DIR "/synthesis/triton_stand_in/check.py"};
    if (!interpreter.empty()) spec.argv.push_back("--interpreter");
    spec.argv.insert(spec.argv.end(), pairs.begin(), pairs.end());
    spec.limits.wall_seconds = 500;
    const auto result = run_process(spec);
    REQUIRE(result);
    INFO(result->out);
    INFO(result->err);
    CHECK(result->ok());
    const auto passed = std::count(result->out.begin(), result->out.end(), '\n');
    CHECK(passed == static_cast<long>(pairs.size() / 2));
  }
};

inline builtin_coder coder_of(const task& t, const builtin_options& options = in_triton()) {
  auto coder = builtin_coder::create(t, options);
  if (!coder) FAIL(render(coder.error()));
  return std::move(*coder);
}

inline candidate first_of(const task& t, const builtin_options& options) {
  const auto c = coder_of(t, options).next(std::nullopt);
  REQUIRE(c);
  return *c;
}

} // namespace pragma
