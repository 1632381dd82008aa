#include "base/memory.hpp"

#include "base/files.hpp"

#include <catch2/catch.hpp>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t mib = 1 << 20;

/// The files of a made-up machine.
struct machine {
  temp_dir dir = std::move(*temp_dir::create("pragma-memory-"));
  void file(const std::string& path, const std::string& text) const {
    fs::create_directories((dir.path() / path).parent_path());
    REQUIRE(write_file_atomic(dir.path() / path, text));
  }
  std::optional<uint64_t> available() const { return available_memory(dir.path()); }
};

} // namespace

TEST_CASE("available memory is what the machine and every control group round this process leave", "[memory]") {
  machine m;
  CHECK(m.available() == std::nullopt);
  m.file("proc/meminfo", "MemTotal:       8388608 kB\nMemFree:         1048576 kB\nMemAvailable:    4194304 kB\n");
  CHECK(m.available() == 4096 * mib);
  SECTION("version 2, limits at two levels, one of them none") {
    m.file("proc/self/cgroup", "0::/pod/task\n");
    m.file("sys/fs/cgroup/pod/task/memory.max", "max\n");
    m.file("sys/fs/cgroup/pod/task/memory.current", "1048576\n");
    CHECK(m.available() == 4096 * mib);
    m.file("sys/fs/cgroup/pod/memory.max", std::to_string(1024 * mib) + "\n");
    m.file("sys/fs/cgroup/pod/memory.current", std::to_string(900 * mib) + "\n");
    CHECK(m.available() == 124 * mib);
    m.file("sys/fs/cgroup/pod/memory.stat", "anon 1\nactive_file 7\ninactive_file " + std::to_string(100 * mib) + "\n");
    CHECK(m.available() == 224 * mib);
    m.file("sys/fs/cgroup/pod/memory.current", std::to_string(2048 * mib) + "\n"); // over its limit for a moment
    CHECK(m.available() == 0);
  }
  SECTION("in a container, whose own group is the mount's root") {
    m.file("proc/self/cgroup", "0::/\n");
    m.file("sys/fs/cgroup/memory.max", std::to_string(512 * mib) + "\n");
    m.file("sys/fs/cgroup/memory.current", std::to_string(12 * mib) + "\n");
    CHECK(m.available() == 500 * mib);
  }
  SECTION("version 1") {
    m.file("proc/self/cgroup", "7:cpu,cpuacct:/docker/1f\n5:memory:/docker/1f\n");
    m.file("sys/fs/cgroup/memory/docker/1f/memory.limit_in_bytes", std::to_string(256 * mib) + "\n");
    m.file("sys/fs/cgroup/memory/docker/1f/memory.usage_in_bytes", std::to_string(56 * mib) + "\n");
    CHECK(m.available() == 200 * mib);
    m.file("sys/fs/cgroup/memory/docker/1f/memory.limit_in_bytes", "9223372036854771712\n"); // none
    CHECK(m.available() == 4096 * mib);
  }
  SECTION("what no line of these files should look like") {
    m.file("proc/self/cgroup", ":::\n\n0\n0:\n5:memory:\n0::../../..\n");
    CHECK(m.available() == 4096 * mib);
  }
}

TEST_CASE("this machine has memory", "[memory]") { CHECK(available_memory().value_or(0) > mib); }
