// Facts of the CPU, the measured roofline and its cache, the tools.
#include "base/files.hpp"
#include "profilers/formats.hpp"
#include "profilers/hardware.hpp"
#include "profilers/roofline_kernels.hpp"
#include "profilers/roofline_kernels.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

using namespace pragma;

namespace {

std::string recorded(const std::string& name) {
  auto text = read_file(std::string(TESTS_DIR) + "/profilers/data/" + name);
  REQUIRE(text);
  return *text;
}

/// A PRAGMA_HOME of its own, so that the user's cache is neither used nor written.
class own_home {
public:
  own_home() : folder_(std::move(*temp_dir::create("pragma-test-home-"))) {
    const auto* before = std::getenv("PRAGMA_HOME");
    if (before) before_ = before;
    had_ = before != nullptr;
    setenv("PRAGMA_HOME", folder_.path().c_str(), 1);
  }
  ~own_home() {
    if (had_) setenv("PRAGMA_HOME", before_.c_str(), 1);
    else unsetenv("PRAGMA_HOME");
  }

private:
  temp_dir folder_;
  std::string before_;
  bool had_ = false;
};

} // namespace

TEST_CASE("lscpu as recorded") {
  const auto facts = formats::parse_lscpu(recorded("lscpu-2.38.json"));
  REQUIRE(facts);
  CHECK(facts->model == "AMD EPYC");
  CHECK(facts->vendor == "AuthenticAMD");
  CHECK(facts->virtualization == "KVM");
  CHECK(facts->logical == 2);
  CHECK(facts->cores == 2);
  CHECK(facts->simd_bits == 256);
  CHECK(facts->l1d_bytes == 32 << 10); // per instance, where lscpu prints the sum
  CHECK(facts->l2_bytes == 512 << 10);
  CHECK(facts->l3_bytes == 32 << 20);
}

TEST_CASE("lscpu of newer util-linux nests its fields; AVX-512 is seen") {
  const auto facts = formats::parse_lscpu(R"json({"lscpu":[{"field":"CPU(s):","data":"8"},{"field":"Vendor ID:","data":"GenuineIntel","children":[
    {"field":"Model name:","data":"Xeon","children":[{"field":"Thread(s) per core:","data":"2"},{"field":"Core(s) per socket:","data":"4"},
    {"field":"Socket(s):","data":"1"},{"field":"Flags:","data":"fpu sse2 avx2 fma avx512f avx512vl amx_tile"}]}]},
    {"field":"Caches (sum of all):","data":null,"children":[{"field":"L1d:","data":"192 KiB (4 instances)"},{"field":"L2:","data":"8 MiB (4 instances)"}]}]})json");
  REQUIRE(facts);
  CHECK(facts->model == "Xeon");
  CHECK(facts->cores == 4);
  CHECK(facts->simd_bits == 512);
  CHECK(facts->l1d_bytes == 48 << 10);
  CHECK(facts->l2_bytes == 2 << 20);
  CHECK(facts->l3_bytes == 0);
}

TEST_CASE("what is not lscpu's output is an error") {
  CHECK_FALSE(formats::parse_lscpu("lscpu: unrecognized option"));
  CHECK_FALSE(formats::parse_lscpu("{}"));
  CHECK_FALSE(formats::parse_lscpu(R"({"lscpu": 3})"));
}

TEST_CASE("sizes as the kernel and lscpu write them") {
  CHECK(formats::parse_size("32K") == 32768);
  CHECK(formats::parse_size("1.5 MiB") == 1572864);
  CHECK(formats::parse_size("64 KiB (2 instances)") == 32768);
  CHECK(formats::parse_size("32 MiB (1 instance)") == 33554432);
  CHECK(formats::parse_size("") == 0);
  CHECK(formats::parse_size("unknown") == 0);
}

TEST_CASE("this machine has a name, CPUs and memory") {
  const auto facts = read_cpu_facts();
  REQUIRE(facts);
  CHECK_FALSE(facts->model.empty());
  CHECK(facts->logical >= 1);
  CHECK(facts->cores >= 1);
  CHECK(facts->simd_bits >= 128);
  CHECK(facts->memory_bytes > 100 << 20);
}

namespace {

/// The files of limits that lie in this home.
std::vector<std::filesystem::path> kept_limits() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::getenv("PRAGMA_HOME")))
    if (entry.is_regular_file() && entry.path().filename().string().starts_with("roofline-") && entry.path().extension() == ".json") found.push_back(entry.path());
  return found;
}

} // namespace

TEST_CASE("a thread that waited for its CPU once does not make the batches of a limit too short") {
  int runs = 0;
  const auto repeats = roofline::repeats_for(0.5e-3, [&](int64_t n) { return ++runs == 3 ? 20e-3 : 1e-7 * static_cast<double>(n); });
  CHECK(repeats == 8192);
  CHECK(roofline::repeats_for(0.5e-3, [](int64_t) { return 25e-3; }) == 1); // one pass over memory
}

TEST_CASE("the roofline falls from level to level, is cached, and can only rise when measured again; what is measured beside other work is not kept", "[alone]") {
  own_home home;
  int calls = 0, last_total = 0;
  const auto first = machine_roofline(1, false, [&](int done, int total, const std::string& what) {
    ++calls;
    last_total = total;
    CHECK(done <= total);
    CHECK_FALSE(what.empty());
  });
  REQUIRE(first);
  CHECK(calls == last_total + 1);
  CHECK(first->threads == 1);
  REQUIRE(first->copy_gbs.size() == 4);
  REQUIRE(first->read_gbs.size() == 4);
  REQUIRE(first->cache_bytes.size() == 3);
  for (size_t i = 1; i < 4; ++i) {
    CHECK(first->copy_gbs[i] <= first->copy_gbs[i - 1]);
    CHECK(first->read_gbs[i] <= first->read_gbs[i - 1]);
  }
  CHECK(first->copy_gbs[3] > 0.5);  // no machine's memory is that slow
  CHECK(first->copy_gbs[0] > 1.5 * first->copy_gbs[3]);
  CHECK(first->read_gbs[0] > 0.6 * first->copy_gbs[0]); // a copy loads and stores; 0.42 where each load of the measuring loop had a store of its own beside it
  CHECK(first->peak_gflops > 4);    // scalar SSE2 does that
  CHECK((first->half_gflops > first->peak_gflops) == roofline::has_tiles());
  CHECK(first->divide_cycles > 1);  // no core divides a vector in each cycle
  CHECK(first->divide_cycles < 60);
  REQUIRE(first->set_bytes.size() >= 2);
  REQUIRE(first->set_read_gbs.size() == first->set_bytes.size());
  REQUIRE(first->set_copy_gbs.size() == first->set_bytes.size());
  CHECK(std::is_sorted(first->set_bytes.begin(), first->set_bytes.end()));
  CHECK(std::is_sorted(first->set_read_gbs.rbegin(), first->set_read_gbs.rend()));
  CHECK(first->set_read_gbs.back() <= first->read_gbs[3]); // the best batch of memory, and its median one
  CHECK(first->measured_at.empty() == kept_limits().empty());
  if (first->measured_at.empty()) return; // other work than ours runs on this machine

  int measured_again = 0;
  const auto counted = [&](int, int, const std::string&) { ++measured_again; };
  const auto cached = machine_roofline(1, false, counted);
  REQUIRE(cached);
  CHECK(measured_again == 0);
  CHECK(cached->peak_gflops == first->peak_gflops);

  // What an unlucky measurement left is raised, there too where it is kept; what is higher than this one's stays.
  auto unlucky = *first;
  for (auto& gbs : unlucky.copy_gbs) gbs /= 10;
  unlucky.peak_gflops = 10 * first->peak_gflops;
  REQUIRE(kept_limits().size() == 1);
  REQUIRE(write_file_atomic(kept_limits().front(), json(unlucky).dump()));
  const auto raised = machine_roofline(1, true);
  REQUIRE(raised);
  CHECK(raised->copy_gbs[3] > 2 * unlucky.copy_gbs[3]);
  CHECK(raised->peak_gflops == unlucky.peak_gflops);
  CHECK(machine_roofline(1)->copy_gbs == raised->copy_gbs);
  REQUIRE(write_file_atomic(kept_limits().front(), json(*first).dump()));

  const auto repeated = machine_roofline(1, true);
  REQUIRE(repeated);
  CHECK(repeated->peak_gflops >= first->peak_gflops);
  CHECK(repeated->copy_gbs[3] >= first->copy_gbs[3]);

  // A damaged cache file is measured again, not believed; beside other work, so that the file stays as it is.
  REQUIRE(kept_limits().size() == 1);
  const std::string damaged = "{\"cpu\": \"AMD";
  REQUIRE(write_file_atomic(kept_limits().front(), damaged));
  expected<machine_limits> beside = fail(ec::internal, "");
  {
    std::vector<std::jthread> others; // several on each CPU: no batch in memory gets through alone
    for (unsigned i = 0; i < 3 * std::max(1u, std::thread::hardware_concurrency()); ++i)
      others.emplace_back([](const std::stop_token& stop) {
        volatile uint64_t n = 0;
        while (!stop.stop_requested()) n = n + 1;
      });
    beside = machine_roofline(1, false, counted);
  }
  REQUIRE(beside);
  CHECK(measured_again > 0);
  CHECK(beside->measured_at.empty() == (read_file(kept_limits().front()).value() == damaged)); // what says when it was measured is kept, and nothing else
  CHECK(repeated->peak_gflops >= 0.9 * beside->peak_gflops);
  CHECK((beside->measured_at.empty() || beside->peak_gflops > 0.5 * repeated->peak_gflops)); // what was kept is right
}

TEST_CASE("a senseless number of threads is refused") {
  const auto none = machine_roofline(0);
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ec::invalid_argument);
}

TEST_CASE("doctor names each tool, and what a missing one would give") {
  const auto tools = profiler_tools();
  for (const char* name : {"perf", "valgrind", "llvm-mca", "objdump", "gcc", "clang", "python with torch"}) {
    const auto found = std::find_if(tools.begin(), tools.end(), [&](const auto& t) { return t.name == name; });
    REQUIRE(found != tools.end());
    CHECK_FALSE(found->enables.empty());
    if (found->found) CHECK_FALSE(found->version.empty());
    else CHECK_FALSE(found->problem.empty());
  }
}
