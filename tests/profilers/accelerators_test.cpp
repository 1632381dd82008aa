// What a machine offers in accelerators. Torch's answers come from a program that stands in for Python, with the numbers of a real H200
// (the facts that Torch 2.11 told of it); the driver is a file. One case asks the real script.
#include "profilers/accelerators.hpp"

#include "manifest_fixture.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

using namespace pragma;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

const std::string told = R"({"python": "3.12.3", "torch": "2.11.0+cu130", "built_for": "cuda", "problem": "", "triton": "3.6.0"})";
std::string h200(int index) {
  return R"({"index": )" + std::to_string(index) + R"(, "cpu": "NVIDIA H200", "arch": "sm_90", "compute_units": 132, "memory_bytes": 150109880320,)"
         R"( "cache_bytes": [62914560], "shared_bytes": 232448, "registers": 65536, "warp_size": 32, "max_threads": 2048})";
}

/// A driver that is loaded, and a Python of our own for the time of a test.
struct machine {
  temp_dir dir = std::move(*temp_dir::create("pragma-accelerators-"));
  std::string before = std::getenv("PRAGMA_PYTHON") ? std::getenv("PRAGMA_PYTHON") : "", home = std::getenv("PRAGMA_HOME") ? std::getenv("PRAGMA_HOME") : "";

  machine() { ::setenv("PRAGMA_HOME", dir.path().c_str(), 1); }
  ~machine() {
    before.empty() ? ::unsetenv("PRAGMA_PYTHON") : ::setenv("PRAGMA_PYTHON", before.c_str(), 1);
    home.empty() ? ::unsetenv("PRAGMA_HOME") : ::setenv("PRAGMA_HOME", home.c_str(), 1);
  }
  /// 8 is how likely_python() learns that a Python has Torch (reference/python_search.cpp).
  void python_that(const std::string& script) {
    static int number = 0;
    const auto file = dir.path() / ("python" + std::to_string(++number));
    REQUIRE(write_file_atomic(file, "#!/bin/sh\ncase \"$*\" in *find_spec*) exit 8;; esac\n" + script + "\n"));
    fs::permissions(file, fs::perms(0755));
    ::setenv("PRAGMA_PYTHON", file.c_str(), 1);
  }
  void python_that_tells(const std::vector<std::string>& lines) { python_that("cat <<'END'\n" + join(lines, "\n") + "\nEND"); }

  backend driver(const std::string& name = "cuda") const {
    REQUIRE(write_file_atomic(dir.path() / "nvidiactl", ""));
    auto b = *find_backend(name);
    b.present = {(dir.path() / "nvidiactl").string()};
    b.clocks = {"echo", "580.159.04, 1980 MHz, index {index}"};
    return b;
  }
};

} // namespace

TEST_CASE("without its driver a backend is absent, and no Python is started", "[accelerators]") {
  machine m;
  m.python_that("touch " + (m.dir.path() / "started").string());
  auto b = m.driver();
  b.present = {(m.dir.path() / "nowhere").string()};
  const auto found = probe_accelerators(b);
  CHECK_THAT(found.absent, Contains("nowhere"));
  CHECK_FALSE(found.usable());
  CHECK_FALSE(fs::exists(m.dir.path() / "started"));
}

TEST_CASE("each device is found with its facts and its state", "[accelerators]") {
  machine m;
  m.python_that_tells({"a library's warning", told, h200(0), h200(1)});
  const auto found = probe_accelerators(m.driver());
  INFO(found.problem);
  CHECK(found.usable());
  CHECK(found.torch == "2.11.0+cu130");
  CHECK(found.triton == "3.6.0");
  REQUIRE(found.devices.size() == 2);
  const auto& d = found.devices[1];
  CHECK(d.where.text() == "cuda:1");
  CHECK(d.limits.cpu == "NVIDIA H200");
  CHECK(d.limits.backend == "cuda");
  CHECK(d.limits.memory_bytes == 150109880320);
  CHECK(d.state == "580.159.04, 1980 MHz, index 1");
  CHECK_FALSE(d.measured);
  CHECK(facts_of(d) == std::vector<std::string>{"sm_90", "132 compute units", "L2 60.0 MiB", "state 580.159.04, 1980 MHz, index 1"});
  REQUIRE_FALSE(found.profilers.empty());
  CHECK(found.profilers[0].name == "ncu");
}

TEST_CASE("a profiler that the user registered for the backend is asked, too", "[accelerators]") {
  machine m;
  m.python_that_tells({told, h200(0)});
  const auto own = parse_json(tally_text(), "tally");
  REQUIRE(own);
  const auto found = probe_accelerators(m.driver(), {*own});
  bool there = false;
  for (const auto& p : found.profilers) {
    INFO(p.name << ": " << p.problem);
    CHECK(p.name != "manifest"); // one that cannot be used
    there = there || (p.name == "tally" && p.found);
  }
  CHECK(there);
}

TEST_CASE("what stands in the way is said", "[accelerators]") {
  machine m;
  const auto b = m.driver();
  m.python_that_tells({R"({"python": "3.11.2", "torch": "1.13.0a0", "built_for": "", "problem": "torch 1.13.0a0 finds no cuda device", "triton": ""})"});
  CHECK(probe_accelerators(b).problem == "torch 1.13.0a0 finds no cuda device");
  m.python_that_tells({told});
  CHECK_THAT(probe_accelerators(b).problem, Contains("finds no such device"));
  m.python_that("echo 'the driver and the library do not fit' >&2; exit 3");
  CHECK_THAT(probe_accelerators(b).problem, Contains("do not fit"));
  m.python_that_tells({told, h200(0)});
  const auto other = probe_accelerators(m.driver("rocm")); // both call their devices cuda
  CHECK(other.devices.empty());
  CHECK_THAT(other.problem, Contains("built for cuda"));
}

TEST_CASE("the script itself: a Torch without devices gives the reason, not a failure", "[accelerators]") {
  machine m;
  ::unsetenv("PRAGMA_PYTHON");
  const auto found = probe_accelerators(m.driver());
  if (found.devices.empty()) {
    CHECK_FALSE(found.problem.empty());
    CHECK_THAT(found.problem, !Contains("could not be asked"));
  }
  CHECK_FALSE(found.torch.empty());
}
