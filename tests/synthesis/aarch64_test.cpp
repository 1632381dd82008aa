// Kernels of the built-in coder on a processor that we do not have: cross-compiled for aarch64 (NEON, and SVE's vectors as the compiler makes them
// of plain ones) and run under qemu-user against Torch. Debian: g++-aarch64-linux-gnu and qemu-user; scripts/setup installs neither.
#include "tests/fixtures/skip.hpp"

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "reference/reference.hpp"
#include "small_tasks.hpp"
#include "synthesis/search/builtin.hpp"

#include <catch2/catch.hpp>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

/// One of each kind of region, contraction and dtype; each costs a second.
const std::vector<std::string> families{"chain", "gelu", "double", "mask", "softmax_last", "sum_middle", "argmax_middle", "layer_norm", "cumsum_reverse",
                                        "max_pool_2d", "cross_entropy", "linear", "mm_transposed", "conv_2d", "depthwise", "transposed_2d", "conv_pool_norm"};
const std::vector<std::string> threaded{"softmax_last", "bmm"}, scalable{"gelu", "linear"};

const small_task& named(const std::string& name) {
  for (const auto& t : tasks)
    if (name == t.name) return t;
  FAIL("no task " << name);
  return tasks[0];
}

struct emulated {
  temp_dir dir = std::move(*temp_dir::create("pragma-aarch64-"));
  expected<reference> torch = reference::start({});
  std::vector<std::string> arguments; ///< of aarch64/check.py

  /// The starting kernel for a core with 128-bit vectors, with `march` in place of -march=native.
  void add(const std::string& name, const std::string& march, int threads) {
    REQUIRE(torch);
    const auto& small = named(name);
    const auto task_file = dir.path() / (name + ".py"), kernel = dir.path() / (name + "_" + march + "_" + std::to_string(threads) + ".cpp");
    REQUIRE(write_file_atomic(task_file, text_of(small)));
    const auto described = torch->describe(task_file);
    if (!described) FAIL(render(described.error()));
    builtin_options options;
    options.threads = threads;
    options.machine.cpu = "Neoverse";
    options.machine.simd_bits = 128;
    auto coder = builtin_coder::create(*described, options);
    if (!coder) FAIL(render(coder.error()));
    const auto made = coder->next(std::nullopt);
    REQUIRE(made);
    CHECK(made->source.find("constexpr int W = 4;") != std::string::npos);
    REQUIRE(write_file_atomic(kernel, made->source));
    std::vector<std::string> flags;
    for (const auto& flag : made->flags) flags.push_back(flag == "-march=native" ? "-march=" + march : flag == "-O3" ? "-O1" : flag);
    for (const auto& text : {kernel.string(), task_file.string(), join(flags, " "), std::to_string(threads)}) arguments.push_back(text);
  }
};

} // namespace

TEST_CASE("kernels are right on aarch64", "[aarch64]") {
  for (const char* tool : {"aarch64-linux-gnu-g++", "qemu-aarch64"})
    if (find_program(tool).empty())
      return test::skip(std::to_string(families.size() + threaded.size() + scalable.size()) + " kernels for aarch64, since there is no " + tool +
                        " (apt-get install g++-aarch64-linux-gnu qemu-user)");
  emulated machine;
  for (const auto& name : families) machine.add(name, "armv8-a", 1);
  for (const auto& name : threaded) machine.add(name, "armv8-a", 2);
  for (const auto& name : scalable) machine.add(name, "armv8.2-a+sve", 1);
  process_spec spec;
  spec.argv = {machine.torch->python().executable, TESTS_DIR "/synthesis/aarch64/check.py"};
  spec.argv.insert(spec.argv.end(), machine.arguments.begin(), machine.arguments.end());
  spec.limits.wall_seconds = 500;
  const auto ran = run_process(spec);
  REQUIRE(ran);
  INFO(ran->out << ran->err);
  CHECK(ran->ok());
  CHECK(std::count(ran->out.begin(), ran->out.end(), '\n') == static_cast<long>(machine.arguments.size() / 4));
}
