#include "tests/fixtures/runner_fixture.hpp"

#include "execution/contention.hpp"

#include <chrono>
#include <iostream>

using namespace pragma;
using namespace pragma_test;

namespace {

/// Builds, starts, calls once; the error's message, or empty when all went well.
std::string outcome(const std::string& source, double timeout_seconds = 2, int threads = 1) {
  const auto output = built(from_source(source));
  tensors t(1000);
  runner_options options;
  options.threads = threads;
  auto runner = runner_process::start(output, t.memory, options);
  if (!runner) return runner.error().message;
  runner->poison();
  auto done = runner->call(0, 2, 2, timeout_seconds);
  return done ? "" : done.error().message;
}

} // namespace

TEST_CASE("A good candidate computes every slot and leaves nothing else changed", "[runner]") {
  const auto output = built(from_source(doubling));
  tensors t(1003, 3);
  runner_options options;
  options.threads = 2;
  auto runner = runner_process::start(output, t.memory, options);
  INFO((runner ? "" : render(runner.error())));
  REQUIRE(runner);
  runner->poison();
  REQUIRE(runner->call(1, 2, 2, 5));
  REQUIRE(runner->freeze());
  CHECK(runner->overrun().empty());
  CHECK(std::isnan(t.y(*runner, 0)[5]));
  for (int s = 1; s < 3; ++s)
    for (int64_t i = 0; i < t.n; ++i) REQUIRE(t.y(*runner, s)[i] == 2 * t.x(s)[i]);
  t.x(0)[7] = 1234; // the checker may rewrite inputs between calls
  REQUIRE(runner->call(0, 1, 1, 5));
  CHECK(t.y(*runner, 0)[7] == 2468);
}

TEST_CASE("A crash is named and placed", "[runner]") {
  CHECK_THAT(outcome(with_attack("", "((float*)a->inputs[0].data)[3] = 1;")),
             Catch::Contains("SIGSEGV") && Catch::Contains("wrote to input x, which is read-only"));
  CHECK_THAT(outcome(with_attack("", "((volatile float*)a->outputs[0].data)[1024] = 1;")), Catch::Contains("wrote past the end of output out0 (byte 4096 of 4000)"));
  CHECK_THAT(outcome(with_attack("", "*(volatile int*)8 = 1;")), Catch::Contains("SIGSEGV") && Catch::Contains("outside all tensors"));
  CHECK_THAT(outcome(with_attack("#include <stdlib.h>", "abort();")), Catch::Contains("SIGABRT"));
  CHECK_THAT(outcome(with_attack("#include <stdlib.h>", "exit(0);")), Catch::Contains("ended its process by itself (exit code 0) during the call"));
  CHECK_THAT(outcome(with_attack("#include <stdexcept>", "throw std::runtime_error(\"no\");")), Catch::Contains("SIGABRT"));
}

TEST_CASE("A small overrun is noticed although it does not fault", "[runner]") {
  const auto output = built(from_source(with_attack("", "((volatile float*)a->outputs[0].data)[1001] = 1;")));
  tensors t(1001);
  auto runner = runner_process::start(output, t.memory, {});
  REQUIRE(runner);
  runner->poison();
  REQUIRE(runner->call(0, 1, 1, 5));
  REQUIRE(runner->freeze());
  CHECK(runner->overrun() == "wrote 4 bytes past the end of output out0");
}

TEST_CASE("Forbidden system calls end the candidate and are named", "[runner]") {
  CHECK_THAT(outcome(with_attack("#include <sys/socket.h>", "socket(AF_INET, SOCK_STREAM, 0);")), Catch::Contains("forbidden system call (socket)"));
  CHECK_THAT(outcome(with_attack("#include <stdio.h>", "fopen(\"/etc/passwd\", \"r\");")), Catch::Contains("forbidden system call (openat of /etc/passwd)"));
  CHECK_THAT(outcome(with_attack("#include <unistd.h>", "fork();")), Catch::Contains("forbidden system call"));
  CHECK_THAT(outcome(with_attack("#include <signal.h>", "kill(-1, SIGKILL);")), Catch::Contains("forbidden system call (kill)"));
  CHECK_THAT(outcome(with_attack("#include <signal.h>", "raise(SIGSTOP);")), Catch::Contains("forbidden system call (tgkill)"));
  CHECK_THAT(outcome(with_attack("#include <sys/mman.h>", "mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);")),
             Catch::Contains("forbidden system call (mmap)"));
#ifdef __x86_64__
  const std::string arch = "#include <sys/syscall.h>\n#include <unistd.h>";
  CHECK(outcome(with_attack(arch, "syscall(SYS_arch_prctl, 0x1023, 18L);")).empty()); // tiles, which products ask for; the system may refuse them
  if (read_file("/proc/cpuinfo")->find("amx_tile") != std::string::npos) // and gives them: no stack for signals of ours is too small
    CHECK(outcome(with_attack(arch, "if (syscall(SYS_arch_prctl, 0x1023, 18L) != 0) __builtin_trap();")).empty());
  CHECK_THAT(outcome(with_attack(arch, "syscall(SYS_arch_prctl, 0x1023, 17L);")), Catch::Contains("forbidden system call (arch_prctl)"));
  CHECK_THAT(outcome(with_attack(arch, "syscall(SYS_arch_prctl, 0x1012, 0L);")), Catch::Contains("forbidden system call (arch_prctl)")); // CPUID faults from now on
  CHECK_THAT(outcome(with_attack(arch, "static long at; syscall(SYS_arch_prctl, 0x1001, &at);")), Catch::Contains("forbidden system call (arch_prctl)")); // another GS
#endif
  // Nor can it catch the refusal and go on.
  CHECK_THAT(outcome(with_attack("#include <signal.h>\n#include <sys/socket.h>", "signal(SIGSYS, SIG_IGN); socket(AF_INET, SOCK_STREAM, 0);")),
             Catch::Contains("forbidden system call"));
}

TEST_CASE("A candidate that does not come back is stopped at the deadline", "[runner]") {
  CHECK_THAT(outcome(with_attack("", "for (volatile int i = 0;; ++i) {}"), 0.3), Catch::Contains("did not come back within 0.3 s"));
  CHECK_THAT(outcome(with_attack("#include <unistd.h>", "static char b[65536]; for (;;) if (write(1, b, sizeof b) < 0) {}"), 0.3),
             Catch::Contains("did not come back within 0.3 s"));
}

TEST_CASE("What a candidate prints is kept, bounded, and does not disturb the protocol", "[runner]") {
  const auto output = built(from_source(with_attack("#include <stdio.h>", "for (int i = 0; i < 200000; ++i) puts(\"hello from the kernel\"); fflush(stdout);")));
  tensors t(1000);
  auto runner = runner_process::start(output, t.memory, {});
  REQUIRE(runner);
  REQUIRE(runner->call(0, 1, 1, 5));
  CHECK(t.y(*runner, 0)[0] == 2 * t.x(0)[0]);
  CHECK_THAT(runner->log(), Catch::StartsWith("hello from the kernel"));
  CHECK(runner->log().size() < 20000);
}

TEST_CASE("A changed rounding mode or flush-to-zero is reported, also when a constructor did it", "[runner]") {
  CHECK_THAT(outcome(with_attack("#include <fenv.h>", "fesetround(FE_UPWARD);")), Catch::Contains("rounding mode"));
#ifdef __x86_64__
  CHECK_THAT(outcome(with_attack("#include <immintrin.h>", "_mm_setcsr(_mm_getcsr() | 0x8040);")), Catch::Contains("flush-to-zero"));
  CHECK_THAT(outcome(with_attack("#include <immintrin.h>", "", "struct s { s() { _mm_setcsr(_mm_getcsr() | 0x8000); } } set_ftz;")), Catch::Contains("flush-to-zero"));
  CHECK(outcome(with_attack("#include <immintrin.h>", "const unsigned was = _mm_getcsr(); _mm_setcsr(was | 0x8040); _mm_setcsr(was);")).empty());
#endif
}

#ifdef __x86_64__
TEST_CASE("Flags of the processor and full x87 registers are reported, also when a constructor left them", "[runner]") {
  CHECK_THAT(outcome(with_attack("", "__asm__ volatile(\"std\" ::: \"cc\");")), Catch::Contains("direction flag"));
  CHECK_THAT(outcome(with_attack("", "__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | 0x40000);")), Catch::Contains("check of alignment"));
  CHECK_THAT(outcome(with_attack("", "", "struct s { s() { __asm__ volatile(\"std\" ::: \"cc\"); } } left;")), Catch::Contains("direction flag"));
  CHECK_THAT(outcome(with_attack("", "__asm__ volatile(\"fldz\");")), Catch::Contains("floating-point control state"));
  CHECK(outcome(with_attack("", "__asm__ volatile(\"std; cld; fldz; fstp %%st(0)\" ::: \"cc\");")).empty());
}
#endif

TEST_CASE("Between its calls a candidate stands still: what its threads do is done in calls", "[runner]") {
  const auto counting = with_attack("#include <thread>\n#include <atomic>", R"(
    static std::atomic<uint32_t>* turns = new std::atomic<uint32_t>(0);
    static bool once = [] { std::thread([] { for (;;) ++*turns; }).detach(); return true; }(); (void)once;
    for (const uint32_t before = *turns; *turns - before < 1000;) {}
    ((float*)a->outputs[0].data)[1] = static_cast<float>(*turns % (1u << 24));)");
  const auto output = built(from_source(counting));
  tensors t(1000);
  runner_options options;
  options.threads = 2;
  auto runner = runner_process::start(output, t.memory, options);
  REQUIRE(runner);
  REQUIRE(runner->call(0, 1, 1, 5));
  const double used = cpu_seconds(runner->pid());
  const auto since = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - since < std::chrono::milliseconds(50)) {}
  CHECK(cpu_seconds(runner->pid()) == used);
  REQUIRE(runner->call(0, 1, 1, 5)); // and in a call all of them run
  CHECK(runner->last_call().cpu_seconds > 0);
  CHECK(runner->last_call().seconds > 0);
}

TEST_CASE("With one thread a second one is refused in plain words, from a constructor too", "[runner]") {
  CHECK_THAT(outcome(with_attack("#include <thread>", "std::thread([] {}).join();")), Catch::Contains("starting a second thread is one where it has one"));
  CHECK_THAT(outcome(with_attack("#include <thread>", "", "struct s { s() { std::thread([] {}).join(); } } early;")), Catch::Contains("starting a second thread"));
  CHECK(outcome(with_attack("#include <thread>", "std::thread([] {}).join();"), 2, 2).empty());
  CHECK_THAT(outcome(with_attack("#include <unistd.h>", "fork();")), Catch::Contains("forbidden system call")); // named only where fork() leaves signals open: glibc 2.41 does not
}

TEST_CASE("Something can be done in the middle of a call, and not when it is over", "[runner]") {
  const auto output = built(from_source(with_attack("#include <time.h>", "const timespec pause{0, 20000000}; nanosleep(&pause, nullptr);")));
  tensors t(1000);
  auto runner = runner_process::start(output, t.memory, {});
  REQUIRE(runner);
  int acted = 0;
  const interruption inside{0.005, [&] {
                              ++acted;
                              t.x(0)[0] = 77;
                            }};
  REQUIRE(runner->call(0, 1, 1, 5, inside));
  CHECK(acted == 1);
  REQUIRE(runner->call(0, 1, 1, 5));
  CHECK(t.y(*runner, 0)[0] == 154);
  const interruption late{60, [&] { ++acted; }};
  REQUIRE(runner->call(0, 1, 1, 5, late));
  CHECK(acted == 1);
}

TEST_CASE("Nothing of the candidate runs before the handlers of refused calls are locked", "[runner]") {
  // A resolver of the linker's runs before all constructors.
  const auto source = with_attack("#include <sys/syscall.h>", "chosen();", R"(
    extern "C" void nothing() {}
    extern "C" __attribute__((used)) void (*choose())() {
      long result;
      register long size __asm__("r10") = 8;
      static unsigned long ignore[4] = {1, 0, 0, 0};
      __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_rt_sigaction), "D"(31), "S"(ignore), "d"(0), "r"(size) : "rcx", "r11", "memory");
      return nothing;
    }
    extern "C" void chosen() __attribute__((ifunc("choose")));)");
  CHECK_THAT(outcome(source), Catch::Contains("forbidden system call"));
}

TEST_CASE("Fast-math flags alone do not switch flush-to-zero on", "[runner]") {
  const auto output = built(from_source(doubling, {"-O3", "-ffast-math"}));
  tensors t(64);
  t.x(0)[0] = 1e-39f;
  auto runner = runner_process::start(output, t.memory, {});
  REQUIRE(runner);
  REQUIRE(runner->call(0, 1, 1, 5));
  CHECK(t.y(*runner, 0)[0] == 2e-39f);
}

TEST_CASE("Answers that nobody asked for fail the candidate", "[runner]") {
  const auto forged = with_attack("#include <unistd.h>", "uint64_t r[3] = {1, 0, 0}; if (write(4, r, sizeof r) < 0) return;");
  CHECK_THAT(outcome(forged), Catch::Contains("forged"));
  const auto early = with_attack("#include <unistd.h>", "", "struct s { s() { uint64_t r[3] = {0x7072616764793031ull, 0, 0}; if (write(4, r, sizeof r) < 0) return; } } early;");
  const auto output = built(from_source(early));
  tensors t(1000);
  auto runner = runner_process::start(output, t.memory, {});
  if (runner) {
    auto done = runner->call(0, 1, 1, 5);
    if (done) done = runner->call(0, 1, 1, 5);
    REQUIRE_FALSE(done);
    CHECK(done.error().code == ec::candidate_failed);
  }
}

TEST_CASE("Frozen means that no thread writes any more", "[runner]") {
  const auto output = built(from_source(with_attack("#include <thread>", R"(
    static bool once = [&] { float* y0 = (float*)a->outputs[0].data;
      std::thread([y0] { for (;;) y0[0] = y0[0] + 1; }).detach(); return true; }(); (void)once;)")));
  tensors t(1000);
  runner_options options;
  options.threads = 2;
  auto runner = runner_process::start(output, t.memory, options);
  REQUIRE(runner);
  REQUIRE(runner->call(0, 1, 1, 5));
  REQUIRE(runner->freeze());
  const volatile float* y = t.y(*runner, 0);
  const float first = y[0];
  bool changed = false;
  for (int i = 0; i < 2000000; ++i) changed = changed || y[0] != first;
  CHECK_FALSE(changed);
  REQUIRE(runner->call(1, 1, 1, 5));
}

TEST_CASE("Memory and threads are bounded", "[runner]") {
  CHECK_THAT(outcome(with_attack("#include <stdlib.h>\n#include <string.h>",
                                 "for (;;) { char* p = (char*)malloc(256 << 20); if (!p) abort(); p[0] = 1; }")),
             Catch::Contains("SIGABRT"));
  CHECK_THAT(outcome(with_attack("#include <thread>\n#include <vector>\n#include <unistd.h>",
                                 "for (;;) std::thread([] { for (;;) pause(); }).detach();")),
             Catch::Contains("SIGABRT") || Catch::Contains("forbidden"));
}

TEST_CASE("Starting a candidate and calling it is quick", "[runner]") {
  const auto output = built(from_source(doubling));
  tensors t(16);
  std::vector<double> starts, calls, costs, used;
  for (int i = 0; i < 7; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    auto runner = runner_process::start(output, t.memory, {});
    REQUIRE(runner);
    starts.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    for (int k = 0; k < 300; ++k) {
      const auto from = std::chrono::steady_clock::now();
      REQUIRE(runner->call(0, 1, 1, 5));
      calls.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count());
      costs.push_back(runner->last_call().seconds);
      used.push_back(runner->last_call().cpu_seconds);
    }
  }
  std::sort(starts.begin(), starts.end());
  for (auto* values : {&calls, &costs, &used}) std::sort(values->begin(), values->end());
  std::cout << "candidate start: median " << starts[3] * 1e3 << " ms; round trip: median " << calls[calls.size() / 2] * 1e6 << " us with its stop, "
            << costs[costs.size() / 2] * 1e6 << " us of call, " << used[used.size() / 2] * 1e6 << " us of CPU time\n";
  CHECK(starts[0] < 0.05);      // a few ms on a quiet machine; wide for a busy one
  CHECK(calls[calls.size() / 10] < 0.001);
}
