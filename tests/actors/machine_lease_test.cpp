// Who waits for the processor alone is not overtaken by those who share it.
#include "actors/machine_lease.hpp"
#include "base/files.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace pragma;

namespace {

using clock_type = std::chrono::steady_clock;

constexpr auto held = std::chrono::milliseconds(100);
constexpr auto too_long = std::chrono::seconds(20); // of 300, which the lease would wait for at most

const device_choice cpu, device{"cuda", 0};

/// Four who share the processor in turns that overlap, until `end`: at no time does none of them hold it.
void share(const std::filesystem::path& turns, const std::atomic<bool>& end) {
  std::vector<std::thread> sharing;
  for (int i = 0; i < 4; ++i)
    sharing.emplace_back([&, i] {
      std::this_thread::sleep_for(i * held / 4);
      while (!end) {
        const machine_lease lease(device, turns, nullptr);
        std::this_thread::sleep_for(held);
      }
    });
  for (auto& one : sharing) one.join();
}

} // namespace

TEST_CASE("a processor that several share without a gap is had alone in turn, in one process and among several") {
  const bool of_all = GENERATE(false, true);
  INFO((of_all ? "another process shares" : "threads of this process share"));
  auto folder = temp_dir::create("machine-lease-");
  REQUIRE(folder);
  const auto turns = of_all ? folder->path() / "turns" : std::filesystem::path();
  std::atomic<bool> end = false;
  pid_t child = 0;
  std::thread sharing;
  if (of_all) {
    child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      share(turns, end); // until it is killed
      ::_exit(0);
    }
  } else {
    sharing = std::thread([&] { share(turns, end); });
  }
  std::this_thread::sleep_for(5 * held);
  const auto start = clock_type::now();
  for (int i = 0; i < 3; ++i) const machine_lease lease(cpu, turns, nullptr);
  const auto waited = clock_type::now() - start;
  end = true;
  if (child > 0) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  if (sharing.joinable()) sharing.join();
  CHECK(waited < too_long);
}
