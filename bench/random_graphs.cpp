// Is the built-in coder right beyond the suites? Random tasks (tests/synthesis/random_task.hpp) against the float64 oracle.
//   build/bin/random_graphs [COUNT] [FIRST SEED] [tiles]   default: 500 from seed 1000; from seed 1000000 on with the operators of everyday modules and bfloat16, from 2000000 on also with
//                                                        those that scatter or carry along a dimension, from 10000000 on with two outputs; "tiles": planned for a processor with vectors of 512 bits and tiles (AMX)
// Where one went wrong, its task and its kernel are left in pragma-out/random.
#include "tests/synthesis/random_task.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

using namespace pragma;

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 500;
  const auto first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
  auto folder = temp_dir::create("pragma-random-");
  auto ref = reference::start({});
  if (!folder || !ref) {
    std::fprintf(stderr, "%s\n", render(!folder ? folder.error() : ref.error()).c_str());
    return 1;
  }
  static constexpr const char* names[] = {"right", "wrong", "unsupported", "unverifiable", "failed"};
  builtin_options options;
  if (argc > 3 && argv[3] == std::string("tiles")) {
    options.machine.cpu = "with tiles";
    options.machine.simd_bits = 512;
    options.machine.half_gflops = 1000;
  }
  std::map<size_t, int> found;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    const auto seed = first + static_cast<uint64_t>(i);
    const auto outcome = check_random_task(*ref, folder->path(), seed, {0}, options);
    const auto what = static_cast<size_t>(outcome.what);
    ++found[what];
    if (outcome.what == random_outcome::kind::failed) { // the reference process may be what failed
      ref = reference::start({});
      if (!ref) break;
    }
    if (outcome.what == random_outcome::kind::wrong || outcome.what == random_outcome::kind::failed) {
      std::filesystem::create_directories("pragma-out/random");
      const auto kept = "pragma-out/random/" + std::to_string(seed);
      std::ofstream(kept + ".py") << random_task(seed).text();
      std::ofstream(kept + ".cpp") << outcome.source;
      std::printf("task and kernel: %s.py, %s.cpp\n", kept.c_str(), kept.c_str());
    }
    if (outcome.what != random_outcome::kind::right)
      std::printf("seed %llu: %s: %s\n", static_cast<unsigned long long>(seed), names[what], outcome.reason.c_str());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i % 25 == 24 || i + 1 == count)
      std::printf("%d of %d in %.0f s: %d right, %d wrong, %d unsupported, %d unverifiable, %d failed\n", i + 1, count, seconds, found[0], found[1],
                  found[2], found[3], found[4]);
    std::fflush(stdout);
  }
  return found[1] + found[4] > 0 ? 1 : 0;
}
