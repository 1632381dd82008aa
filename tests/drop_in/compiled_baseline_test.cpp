// What is timed beside a drop-in where the baseline is torch.compile.
#include "base/files.hpp"
#include "drop_in/drop_in.hpp"
#include "execution/python_process.hpp"
#include "reference/reference.hpp"
#include "tests/fixtures/other_python.hpp"

#include <catch2/catch.hpp>

#include <optional>
#include <set>

using namespace pragma;
using namespace pragma::test;
using Catch::Contains;

TEST_CASE("a drop-in is timed beside a compiled Model where that is the baseline, and it is said where this Torch compiles nothing") {
  auto folder = temp_dir::create("drop-in-");
  REQUIRE(folder);
  const auto file = folder->path() / "twice.py", at = folder->path() / "result";
  REQUIRE(write_file_atomic(file, "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x * 2.0 + 1.0\n"
                                  "def get_inputs():\n    return [torch.randn(64, 64)]\ndef get_init_inputs():\n    return []\n"));
  candidate code;
  code.language = "c++";
  code.compiler = "gcc";
  code.flags = {"-O2"};
  code.source = "#include \"pragma_kernel.h\"\nextern \"C\" void pragma_kernel(const pragma_args* a) {\n"
                "  for (int i = 0; i < 4096; ++i) ((float*)a->outputs[0].data)[i] = ((const float*)a->inputs[0].data)[i] * 2.0f + 1.0f;\n}\n";
  drop_in_options options;
  options.measure_seconds = 0.2;
  options.seeds = 1;
  options.baseline = "compile";
  for (const auto& python : std::set<std::string>{"", newer_python()}) {
    INFO(python);
    std::optional<with_python> there;
    if (!python.empty()) there.emplace(python);
    auto ref = reference::start({});
    if (!ref) FAIL(render(ref.error()));
    const auto t = ref->load(file, 2);
    if (!t) FAIL(render(t.error()));
    REQUIRE(write_drop_in(at, *t, code, 1));
    const auto said = check_drop_in(at, *t, options);
    if (ref->python().torch.starts_with("1.")) { // Debian 12's
      REQUIRE_FALSE(said);
      CHECK(said.error().code == ec::unsupported);
      CHECK_THAT(said.error().message, Contains("has no torch.compile"));
      continue;
    }
    if (!said) FAIL(render(said.error()));
    REQUIRE(said->times.size() == 1);
    CHECK_FALSE(said->times[0].torch_seconds.empty());
    CHECK(said->times[0].torch_alone > 0);
    // What the reference's process has compiled lies in a folder of ours, and a copy of it is used: nothing of a drop-in's process gets there.
    auto with_copy = options;
    with_copy.torch_compiled = folder->path() / "compiled";
    REQUIRE(std::filesystem::create_directory(with_copy.torch_compiled));
    reference_options compiling;
    compiling.baseline = "compile";
    compiling.torch_compiled = with_copy.torch_compiled;
    auto compiled = reference::start(compiling);
    if (!compiled) FAIL(render(compiled.error()));
    if (const auto loaded = compiled->load(file, 2); !loaded) FAIL(render(loaded.error()));
    CHECK(compiled->baseline_way() == "compile");
    const auto files = [&] {
      std::set<std::string> found;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(with_copy.torch_compiled)) found.insert(entry.path().string());
      return found;
    };
    const auto before = files();
    CHECK_FALSE(before.empty());
    const auto quicker = check_drop_in(at, *t, with_copy);
    if (!quicker) FAIL(render(quicker.error()));
    CHECK(quicker->times.size() == 1);
    CHECK(files() == before);
  }
}
