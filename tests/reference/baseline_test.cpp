// What a kernel is timed against: Torch compiled, where there is a Torch that compiles; where eager Torch spends its time; and what it rounds.
#include "tests/fixtures/skip.hpp"

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "reference/reference.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>

using namespace pragma;
using Catch::Contains;

namespace {

expected<reference> started(const std::string& baseline) {
  reference_options options;
  options.baseline = baseline;
  return reference::start(options);
}

std::filesystem::path rms() { return std::filesystem::path(TESTS_DIR).parent_path() / "examples" / "normalization_rms.py"; }

} // namespace

TEST_CASE("a baseline that this Torch does not have is refused by name, and the best of those that there are says so", "[baseline]") {
  const auto python = find_python();
  REQUIRE(python);
  if (!python->torch.starts_with("1.")) return test::skip("refusals of an old Torch: " + python->executable + " has " + python->torch);
  auto compiled = started("compile");
  REQUIRE(compiled);
  const auto refused = compiled->load(rms(), 2);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ec::unsupported);
  CHECK_THAT(refused.error().message, Contains("the baseline torch.compile cannot be had") && Contains(python->torch) && Contains("has no torch.compile"));
  auto best = started("best");
  REQUIRE(best);
  const auto loaded = best->load(rms(), 2);
  if (!loaded) FAIL(render(loaded.error()));
  CHECK_THAT(best->baseline_name(), Contains(" eager, the best of 1, "));
  CHECK_THAT(join(loaded->notes, "; "), Contains("not among the baselines: torch.compile (") && Contains("baselines here, one call: eager "));
  CHECK(best->run(3));
}

TEST_CASE("where torch.compile finds no headers of Torch, the package that has them is named", "[baseline]") {
  const auto python = find_python();
  REQUIRE(python);
  process_spec spec;
  spec.argv = {python->executable, TESTS_DIR "/reference/no_headers.py", (share_dir() / "python").string()};
  spec.env = {{"PYTHONDONTWRITEBYTECODE", "1"}};
  spec.limits.wall_seconds = 60;
  const auto ran = run_process(spec);
  REQUIRE(ran);
  INFO(ran->out + ran->err);
  CHECK(ran->exit_code == 0);
}

TEST_CASE("the best of eager, torch.compile and max-autotune is timed on a processor, and named", "[baseline]") {
  const char* newer = std::getenv("PRAGMA_OTHER_PYTHON");
  if (!newer || !*newer) return test::skip("torch.compile as a baseline, since PRAGMA_OTHER_PYTHON names no Python with a newer Torch");
  const std::string before = std::getenv("PRAGMA_PYTHON") ? std::getenv("PRAGMA_PYTHON") : "";
  ::setenv("PRAGMA_PYTHON", newer, 1);
  auto best = started("best");
  before.empty() ? ::unsetenv("PRAGMA_PYTHON") : ::setenv("PRAGMA_PYTHON", before.c_str(), 1);
  if (!best) FAIL(render(best.error()));
  const auto loaded = best->load(rms(), 2);
  if (!loaded) FAIL(render(loaded.error()));
  const auto notes = join(loaded->notes, "; ");
  INFO(notes);
  CHECK_THAT(notes, Contains("baselines here, one call: eager ") && Contains("torch.compile ") && Contains("torch.compile max-autotune "));
  CHECK_THAT(best->baseline_name(), Contains(", the best of 3, no_grad, 1 thread"));
  CHECK(best->run(3));
  REQUIRE(best->make_inputs(1, 7, input_kind::own)); // expected results are the plain Model's
}

TEST_CASE("Torch's profiler shares out the time of a call among its operators, within ranges and functions of the user's own too; of a call of very many there is none") {
  auto ref = started("eager");
  REQUIRE(ref);
  const auto of = [&](const std::filesystem::path& file) {
    if (const auto loaded = ref->load(file, 2); !loaded) FAIL(render(loaded.error()));
    auto operators = ref->operators();
    if (!operators) FAIL(render(operators.error()));
    return *operators;
  };
  const auto names = [](const std::vector<operator_time>& operators) {
    std::set<std::string> found;
    for (const auto& o : operators) found.insert(o.name);
    return found;
  };
  const auto operators = of(rms());
  double share = 0;
  for (const auto& o : operators) {
    share += o.share;
    CHECK(o.calls >= 1);
    CHECK(o.launches == 0); // no device
  }
  CHECK(share == Approx(1).margin(0.02)); // the smallest are not told
  for (const char* name : {"pow", "mul"}) CHECK(names(operators).contains(name));
  const auto tasks = std::filesystem::path(TESTS_DIR) / "tasks";
  for (const char* name : {"mul", "exp", "sinh"}) CHECK(names(of(tasks / "ranges.py")).contains(name));
  CHECK(of(tasks / "many_operators.py").empty());
  CHECK(ref->run(2)); // and it goes on
}

TEST_CASE("a Python with Torch is found; one that was named and has none is not replaced silently") {
  const auto python = find_python();
  REQUIRE(python);
  CHECK(std::filesystem::exists(python->executable));
  CHECK_FALSE(python->torch.empty());
  ::setenv("PRAGMA_PYTHON", "/bin/false", 1);
  const auto other = find_python();
  const auto served = reference::start({});
  ::unsetenv("PRAGMA_PYTHON");
  REQUIRE_FALSE(other);
  CHECK(other.error().message.find("PRAGMA_PYTHON names no Python with Torch: /bin/false") == 0);
  REQUIRE_FALSE(served);
}

TEST_CASE("a model whose functions keep its layers has an oracle in float64") {
  auto ref = reference::start({});
  if (!ref) FAIL(render(ref.error()));
  const auto t = ref->load(TESTS_DIR "/tasks/kept_layer.py", 2);
  if (!t) FAIL(render(t.error()));
  CHECK(ref->oracle_is_float64());
}

TEST_CASE("a convolution is rounded to TF32 where Torch rounds it, by its rule for ties, and nowhere else", "[baseline]") {
  const auto python = find_python();
  REQUIRE(python);
  auto folder = temp_dir::create("tf32-");
  REQUIRE(folder);
  const auto task = folder->path() / "convolutions.py";
  REQUIRE(write_file_atomic(task, "import torch\n\n\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.first, self.more = torch.nn.Conv2d(3, 8, 1), torch.nn.Conv2d(8, 8, 3, padding=1)\n"
                                  "        self.back = torch.nn.ConvTranspose2d(8, 4, 3, stride=2)\n\n    def forward(self, x):\n        return self.back(self.more(self.more(self.first(x))))\n\n\n"
                                  "def get_inputs():\n    return [torch.randn(2, 3, 9, 11)]\n\n\ndef get_init_inputs():\n    return []\n"));
  process_spec spec;
  spec.argv = {python->executable, TESTS_DIR "/reference/tf32.py", (share_dir() / "python").string(), task.string()};
  spec.env = {{"PYTHONDONTWRITEBYTECODE", "1"}, {"OMP_NUM_THREADS", "1"}};
  spec.limits.wall_seconds = 120;
  const auto ran = run_process(spec);
  REQUIRE(ran);
  INFO(ran->out + ran->err);
  CHECK(ran->out == "right\n");
}
