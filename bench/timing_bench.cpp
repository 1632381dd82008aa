// What a timed candidate costs, and how far a kernel measured against itself strays from 1. Prints ratios:
//   timing_bench TASK.py KERNEL.cpp [REPEATS]
#include "bench/need.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "execution/contention.hpp"
#include "timing/timing.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace pragma;
using namespace pragma::bench;

namespace {

void print(const char* what, const timing& t, double seconds) {
  std::printf("%-24s %.3f [%.3f, %.3f]  %d of %d pairs%s  %s\n", what, t.speedup.value, t.speedup.low, t.speedup.high,
              t.blocks_accepted, t.blocks_tried, t.contended ? ", contended" : "", format_seconds(seconds).c_str());
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: timing_bench TASK.py KERNEL.cpp [REPEATS]\n");
    return 2;
  }
  const int repeats = argc > 3 ? std::max(1, std::atoi(argv[3])) : 5;
  candidate c;
  c.source = need(read_file(argv[2]));
  c.flags = {"-O3", "-march=native"};
  reference_options start;
  start.cpus = measuring_cpus(start.threads);
  auto ref = need(reference::start(start));
  const auto t = need(ref.load(argv[1]));
  const auto built = need(build_candidate(c));
  verify_options checks;
  checks.cpus = start.cpus;

  auto begin = clock_type::now();
  const auto audit = need(audit_task(t, ref, checks));
  std::printf("%s, %s\nnull kernels %s\n", t.name.c_str(), ref.baseline_name().c_str(), format_seconds(since(begin)).c_str());
  begin = clock_type::now();
  const auto v = need(verify(t, audit, ref, built, checks));
  std::printf("verify       %s  %s\n", format_seconds(since(begin)).c_str(), v.reason.c_str());
  if (!v.passed()) return 1;

  double lowest = 1e300, highest = 0;
  for (int i = 0; i < repeats; ++i) {
    begin = clock_type::now();
    const auto timed = need(time_candidate(t, audit, ref, built, v, {}));
    print("against the reference", timed.time, since(begin));
    if (!timed.result.passed()) std::printf("  %s\n", timed.result.reason.c_str());
    lowest = std::min(lowest, timed.time.speedup.value);
    highest = std::max(highest, timed.time.speedup.value);
  }
  std::printf("spread of %d repeats: %.1f%%\n", repeats, 100 * (highest / lowest - 1));

  int covered = 0;
  double farthest = 0;
  for (int i = 0; i < repeats; ++i) {
    begin = clock_type::now();
    const auto same = need(compare_candidates(t, audit, ref, built, built, {}).map([](const side_by_side& s) { return s.time; }));
    print("against itself", same, since(begin));
    covered += same.speedup.low <= 1 && 1 <= same.speedup.high;
    farthest = std::max(farthest, std::abs(same.speedup.value - 1));
  }
  std::printf("against itself: at most %.1f%% from 1; the interval held 1 in %d of %d\n", 100 * farthest, covered, repeats);
}
