#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "tests/fixtures/skip.hpp"

#include <atomic>
#include <cerrno>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

using namespace pragma;

namespace {
process_spec shell(const std::string& script) {
  process_spec spec;
  spec.argv = {"/bin/sh", "-c", script};
  return spec;
}

/// A control group whose processes share so much memory, while it lives.
class memory_group {
public:
  static std::unique_ptr<memory_group> create(int64_t bytes) {
    namespace fs = std::filesystem;
    for (const auto& [top, limit] : {std::pair{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}}) {
      std::error_code failed;
      const auto folder = fs::path(top) / ("pragma-test-" + std::to_string(::getpid()));
      if (!fs::create_directory(folder, failed) || failed) continue;
      auto made = std::unique_ptr<memory_group>(new memory_group(folder));
      if (!(std::ofstream(folder / limit, std::ios::in) << bytes << std::flush)) continue;
      // No way out into swap, where there is any.
      for (const auto& [swap, most] : {std::pair{"memory.memsw.limit_in_bytes", bytes}, {"memory.swap.max", int64_t{0}}})
        if (fs::exists(folder / swap, failed) && !(std::ofstream(folder / swap, std::ios::in) << most << std::flush)) return {};
      return made;
    }
    return {};
  }
  ~memory_group() { ::rmdir(folder_.c_str()); }
  std::string processes() const { return folder_ / "cgroup.procs"; }

private:
  explicit memory_group(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
};
} // namespace

TEST_CASE("a program's output, error output and exit code come back") {
  auto spec = shell("cat; echo oops >&2; exit 3");
  spec.stdin_data = std::string(300000, 'x');
  const auto result = run_process(spec);
  REQUIRE(result);
  CHECK(result->out == spec.stdin_data);
  CHECK(result->err == "oops\n");
  CHECK(result->exit_code == 3);
  CHECK(describe_end(*result) == "exit code 3");
}

TEST_CASE("a program that does not exist is named") {
  process_spec spec;
  spec.argv = {"no-such-program-here"};
  const auto result = run_process(spec);
  REQUIRE(!result);
  CHECK(result.error().code == ec::not_found);
  CHECK(result.error().message.find("no-such-program-here") != std::string::npos);
}

TEST_CASE("the wall-clock limit kills the whole process group") {
  const auto dir = temp_dir::create("pragma-test-");
  REQUIRE(dir);
  const auto pid_file = (dir->path() / "pid").string();
  auto spec = shell("sleep 1000 & echo $! > " + pid_file + "; wait");
  spec.limits.wall_seconds = 0.4;
  const auto result = run_process(spec);
  REQUIRE(result);
  CHECK(result->timed_out);
  CHECK(result->wall_seconds < 5);
  const auto pid = std::stoi(read_file(pid_file).value());
  // The kernel may take a moment to reap an orphan: wait for it with a deadline.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  bool gone = false;
  while (!gone && std::chrono::steady_clock::now() < deadline) {
    const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    gone = !stat || stat->find(") Z") != std::string::npos;
  }
  CHECK(gone);
}

TEST_CASE("output beyond the bound is drained and dropped, not kept") {
  auto spec = shell("head -c 5000000 /dev/zero");
  spec.max_output = 1000;
  const auto result = run_process(spec);
  REQUIRE(result);
  CHECK(result->out.size() == 1000);
  CHECK(result->output_truncated);
  CHECK(result->exit_code == 0);
}

TEST_CASE("a background child that keeps the pipe open does not hold us up") {
  const auto result = run_process(shell("setsid sleep 20 & echo done"));
  REQUIRE(result);
  CHECK(result->out == "done\n");
  CHECK(result->wall_seconds < 5);
}

TEST_CASE("a cancelled program ends at once") {
  std::atomic<bool> cancel = false;
  auto spec = shell("sleep 100");
  spec.cancel = &cancel;
  std::thread stopper([&] { cancel = true; });
  const auto result = run_process(spec);
  stopper.join();
  REQUIRE(result);
  CHECK(result->cancelled);
}

TEST_CASE("limits reach the program") {
  auto spec = shell("ulimit -v; ulimit -f; ulimit -c");
  spec.limits.memory_bytes = 512ull << 20;
  spec.limits.file_bytes = 1024 * 512;
  const auto result = run_process(spec);
  REQUIRE(result);
  CHECK(result->out.find("524288\n") == 0);
  CHECK(result->out.find("\n0\n") != std::string::npos);
}

TEST_CASE("what who listens takes is not the program's time") {
  auto spec = shell("echo begun; sleep 0.2; echo ended");
  spec.limits.wall_seconds = 0.6;
  spec.on_stdout = [](std::string_view said) {
    if (said.starts_with("begun")) std::this_thread::sleep_for(std::chrono::milliseconds(900));
  };
  const auto result = run_process(spec);
  REQUIRE(result);
  CHECK(result->out == "begun\nended\n");
  CHECK_FALSE(result->timed_out);
  spec = shell("echo begun; sleep 5");
  spec.limits.wall_seconds = 0.3;
  CHECK(run_process(spec)->timed_out);
}

TEST_CASE("descriptors are inherited under the number asked for and no others leak") {
  int fds[2];
  REQUIRE(::pipe(fds) == 0); // no O_CLOEXEC here: only what is listed may arrive, and dup'ed ones do
  auto spec = shell("cat <&7");
  spec.inherit_fds = {{fds[0], 7}};
  REQUIRE(::write(fds[1], "hi", 2) == 2);
  ::close(fds[1]);
  const auto result = run_process(spec);
  ::close(fds[0]);
  REQUIRE(result);
  CHECK(result->out == "hi");
}

TEST_CASE("a long-lived child answers, stops and reports its end") {
  process_spec spec;
  spec.argv = {"/bin/sh", "-c", "while read x; do echo got $x; done; echo bye >&2"};
  auto child = child_process::start(spec);
  REQUIRE(child);
  REQUIRE(child->write_all("one\ntwo\n", 8));
  CHECK(child->read_line(5).value() == "got one");
  char exact[9] = {};
  REQUIRE(child->read_exact(exact, 8, 5));
  CHECK(std::string(exact) == "got two\n");
  const auto nothing = child->read_line(0.05);
  REQUIRE(!nothing);
  CHECK(nothing.error().code == ec::timeout);
  child->signal(SIGSTOP);
  CHECK(child->wait_stopped(5));
  CHECK(child->alive());
  const auto end = child->kill();
  CHECK(end.signal == SIGKILL);
  CHECK(!child->alive());
  CHECK(describe_end(end) == "killed by SIGKILL (Killed)");
}

TEST_CASE("who was killed since the machine had no memory left is told apart") {
  const auto small = memory_group::create(64 << 20);
  if (!small) return test::skip("no memory cgroup may be made here");
  process_spec spec;
  spec.argv = {"/bin/sh", "-c", "echo $$ > " + small->processes() + "; exec " + find_program("python3") + " -c 'x = bytearray(1 << 30)'"};
  const auto result = run_process(spec);
  REQUIRE(result);
  CHECK(result->signal == SIGKILL);
  CHECK(result->out_of_memory);
  CHECK(describe_end(*result) == "killed: the machine ran out of memory");
  auto driver = spec; // as a compiler's: its child is killed, and it ends by itself
  driver.argv[2] = "echo $$ > " + small->processes() + "; " + find_program("python3") + " -c 'x = bytearray(1 << 30)'; exit 4";
  const auto of_driver = run_process(driver);
  REQUIRE(of_driver);
  CHECK(of_driver->exit_code == 4);
  CHECK(of_driver->memory_was_short);
  CHECK_FALSE(of_driver->out_of_memory);
  auto child = child_process::start(spec);
  REQUIRE(child);
  char one = 0;
  CHECK_FALSE(child->read_exact(&one, 1, 60)); // its end
  CHECK(child->kill().out_of_memory);
  spec.argv = {"/bin/sh", "-c", "kill -9 $$"};
  const auto itself = run_process(spec);
  REQUIRE(itself);
  CHECK(itself->signal == SIGKILL);
  CHECK_FALSE(itself->out_of_memory);
}

TEST_CASE("what a child leaves behind in its group ends with it") {
  process_spec spec;
  spec.argv = {"/bin/sh", "-c", "sleep 600 & echo $!; exit 3"};
  auto child = child_process::start(spec);
  REQUIRE(child);
  const auto left = child->read_line(10);
  REQUIRE(left);
  const auto pid = static_cast<pid_t>(std::stol(*left));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (child->alive() && std::chrono::steady_clock::now() < deadline) ::usleep(1000);
  CHECK(describe_end(child->kill()) == "exit code 3");
  // Nobody of ours may reap it: a zombie is as dead.
  const auto gone = [&] {
    const auto state = read_file("/proc/" + std::to_string(pid) + "/stat");
    return !state || state->find(") Z ") != std::string::npos || state->find("(sleep)") == std::string::npos;
  };
  while (!gone() && std::chrono::steady_clock::now() < deadline) ::usleep(1000);
  CHECK(gone());
}

TEST_CASE("writing to a child that has gone is an error, not the end of us") {
  process_spec spec;
  spec.argv = {"/bin/true"};
  auto child = child_process::start(spec);
  REQUIRE(child);
  REQUIRE(!child->read_line(5));
  const std::string big(1 << 20, 'x');
  const auto result = child->write_all(big.data(), big.size());
  REQUIRE(!result);
  CHECK(result.error().code == ec::io_error);
}

TEST_CASE("a program for which the system has no process at first is started when it has one; until then nobody is at fault") {
  // The kernel's answer to one process too many comes from exec, too (RLIMIT_NPROC): the child gives it, and counts.
  void* shared = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  auto* tries = new (shared) std::atomic<int>(0);
  int refused = 2;
  auto spec = shell("echo there");
  spec.before_exec = [tries, &refused] {
    if (++*tries > refused) return true;
    errno = EAGAIN;
    return false;
  };
  const auto ran = run_process(spec);
  if (!ran) FAIL(render(ran.error()));
  CHECK(ran->out == "there\n");
  CHECK(*tries == 3);

  refused = 1000;
  const auto never = run_process(spec);
  REQUIRE_FALSE(never);
  CHECK(never.error().code == ec::busy);
  CHECK_FALSE(never.error().hint.empty());

  *tries = 0;
  const std::atomic<bool> cancelled{true};
  spec.cancel = &cancelled;
  CHECK_FALSE(run_process(spec));
  CHECK(*tries == 1); // whoever was told to stop does not wait
  ::munmap(shared, sizeof(std::atomic<int>));
}
