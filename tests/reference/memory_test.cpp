#include "reference/reference.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <sys/resource.h>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

/// 4 MiB come in and go out; on the way 64 MiB in float32, and three times 128 MiB in float64.
fs::path wide_task(const fs::path& folder, const std::string& name, const std::string& result, int inputs = 1, int wide = 16) {
  std::ofstream(folder / name) << "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x" << (inputs > 1 ? ", w" : "") << "):\n        s = (x.repeat(1, " << wide << ") * 2.0)\n        return "
                               << result << "\ndef get_inputs(): return [torch.rand(1024, 1024) for _ in range(" << inputs << ")]\ndef get_init_inputs(): return []\n";
  return folder / name;
}

} // namespace

TEST_CASE("where memory is short the float64 oracle is computed in pieces of the batch, if its elements are independent") {
  auto dir = temp_dir::create("pragma-test-");
  REQUIRE(dir);
  const auto load = [&](uint64_t mebibytes, const fs::path& file, std::vector<double>& oracle, std::string& notes) {
    reference_options options;
    options.memory_bytes = mebibytes << 20;
    auto ref = reference::start(options);
    REQUIRE(ref);
    const auto loaded = ref->load(file);
    if (!loaded) FAIL(render(loaded.error()));
    REQUIRE(ref->make_inputs(1, 5, input_kind::own));
    const auto got = ref->oracle(1, 0);
    oracle.assign(got.begin(), got.end());
    notes = join(loaded->notes, "; ");
    return ref->oracle_is_float64();
  };
  std::vector<double> whole, pieces;
  std::string notes;
  SECTION("rows") {
    const auto rows = wide_task(dir->path(), "rows.py", "s.view(-1, 16, 1024).sum(1)");
    REQUIRE(load(4096, rows, whole, notes));
    CHECK(notes.find("pieces") == std::string::npos);
    REQUIRE(load(300, rows, pieces, notes));
    CHECK(notes.find("pieces of the batch") != std::string::npos);
    CHECK(whole == pieces);
  }
  SECTION("rows beside a factor that is as long as the batch") {
    const auto product = wide_task(dir->path(), "product.py", "torch.matmul(s.view(-1, 16, 1024).sum(1), w)", 2);
    REQUIRE(load(4096, product, whole, notes));
    REQUIRE(load(320, product, pieces, notes));
    CHECK(notes.find("pieces of the batch") != std::string::npos);
    REQUIRE(whole.size() == pieces.size());
    double worst = 0;
    for (size_t i = 0; i < whole.size(); ++i) worst = std::max(worst, std::abs(whole[i] - pieces[i]));
    CHECK(worst < 1e-8); // of sums near 8000
  }
  SECTION("a mean over the batch") {
    CHECK_FALSE(load(300, wide_task(dir->path(), "mean.py", "s.view(-1, 16, 1024).sum(1) - x.mean(0)"), pieces, notes));
    CHECK(notes.find("elements of the batch depend on each other") != std::string::npos);
  }
}

TEST_CASE("where memory is short there are fewer input sets, then no float64 oracle, then no task") {
  auto dir = temp_dir::create("pragma-test-");
  REQUIRE(dir);
  const auto file = wide_task(dir->path(), "wide.py", "s.view(1024, 16, 1024).sum(1)"); // of 1024 rows and no other number
  const auto with = [&](uint64_t mebibytes, bool& float64, int& slots, std::string& notes) {
    reference_options options;
    options.memory_bytes = mebibytes << 20;
    auto ref = reference::start(options);
    REQUIRE(ref);
    auto loaded = ref->load(file);
    if (!loaded) return render(loaded.error());
    float64 = ref->oracle_is_float64();
    slots = ref->slots();
    notes = join(loaded->notes, "; ");
    return std::string();
  };
  bool float64 = false;
  int slots = 0;
  std::string notes;
  CHECK(with(1024, float64, slots, notes).empty());
  CHECK((float64 && slots == 4));
  CHECK(notes.find("memory is short") == std::string::npos);
  CHECK(with(300, float64, slots, notes).empty());
  CHECK((!float64 && slots == 2));
  CHECK(notes.find("no float64 oracle (memory is short") != std::string::npos);
  CHECK(with(100, float64, slots, notes).find("checking this task takes about") != std::string::npos);
}

TEST_CASE("a call that takes more than was reckoned fails by itself, and is computed in pieces") {
  auto dir = temp_dir::create("pragma-test-");
  REQUIRE(dir);
  const auto file = dir->path() / "many.py"; // twelve tensors of 128 MiB in float64 at once
  std::ofstream(file) << "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        s = [x.repeat(1, 16) * k for k in range(12)]\n"
                         "        return sum(s).view(-1, 16, 1024).sum(1)\ndef get_inputs(): return [torch.rand(1024, 1024)]\ndef get_init_inputs(): return []\n";
  reference_options options;
  options.memory_bytes = 1100ull << 20;
  auto ref = reference::start(options);
  REQUIRE(ref);
  const auto t = ref->load(file);
  if (!t) FAIL(render(t.error()));
  CHECK(ref->oracle_is_float64());
  CHECK(join(t->notes, "; ").find("pieces of the batch") != std::string::npos);
}

TEST_CASE("memory that others took after the task was checked is an error, and no other standard for what is compared") {
  auto dir = temp_dir::create("pragma-test-");
  REQUIRE(dir);
  auto ref = reference::start({});
  REQUIRE(ref);
  const auto t = ref->load(wide_task(dir->path(), "mean.py", "s.view(-1, 64, 1024).sum(1) - x.mean(0)", 1, 64), 2); // its batch cannot be cut
  if (!t) FAIL(render(t.error()));
  REQUIRE(ref->oracle_is_float64());
  std::ifstream status("/proc/" + std::to_string(ref->pid()) + "/status");
  uint64_t held = 0;
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmData:", 0) == 0) held = std::stoull(line.substr(7)) << 10;
  REQUIRE(held > 0);
  rlimit before{};
  const rlimit short_of_it{held + (320ull << 20), held + (320ull << 20)}; // less than float64 takes; enough for threads that begin
  REQUIRE(::prlimit(ref->pid(), RLIMIT_DATA, &short_of_it, &before) == 0);
  const auto made = ref->make_inputs(1, 5, input_kind::own);
  REQUIRE_FALSE(made);
  INFO(render(made.error()));
  CHECK(made.error().code == ec::limit_exceeded);
  CHECK(made.error().message.find("ran out of memory: in float64") != std::string::npos);
  CHECK(ref->oracle_is_float64());
  if (::prlimit(ref->pid(), RLIMIT_DATA, &before, nullptr) != 0) return; // needs root
  CHECK(ref->make_inputs(1, 5, input_kind::own));
  CHECK(ref->oracle_is_float64());
}
