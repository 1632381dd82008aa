// Is the built-in coder right beyond the suites? Random tasks (tests/synthesis/random_task.hpp) against the float64 oracle.
//   build/bin/random_graphs [COUNT] [FIRST SEED] [tiles]   default: 500 from seed 1000; from seed 1000000 on with the operators of everyday modules and bfloat16, from 2000000 on also with
//                                                        those that scatter or carry along a dimension, from 10000000 on with two outputs; "tiles": planned for a processor with vectors of 512 bits and tiles (AMX)
//   build/bin/random_graphs [COUNT] [FIRST SEED] triton [PYTHON]   the Triton modules of these tasks, against Torch on the CPU: under the tests' stand-in for Triton, or under the real
//                                                        Triton's interpreter, in a Python that has Triton and Torch
// Where one went wrong, its task and its kernel are left in pragma-out/random.
// Exit code 1 where one is wrong or failed, or where more than a tenth of the tasks are unsupported: they are made of operators that the coder has, and what it does not write is not tested.
#include "tests/synthesis/random_triton.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

using namespace pragma;

using kind = random_outcome::kind;

namespace {

constexpr const char* names[] = {"right", "wrong", "unsupported", "unverifiable", "failed"};

void keep(uint64_t seed, const std::string& source, const char* ending) {
  std::filesystem::create_directories("pragma-out/random");
  const auto kept = "pragma-out/random/" + std::to_string(seed);
  std::ofstream(kept + ".py") << random_task(seed).text();
  std::ofstream(kept + ending) << source;
  std::printf("task and kernel: %s.py, %s%s\n", kept.c_str(), kept.c_str(), ending);
}

void tell(random_counts& found, uint64_t seed, const random_outcome& outcome, const char* ending) {
  ++found[outcome.what];
  if (outcome.what == kind::wrong || outcome.what == kind::failed) keep(seed, outcome.source, ending);
  if (outcome.what != kind::right) std::printf("seed %llu: %s: %s\n", static_cast<unsigned long long>(seed), names[static_cast<size_t>(outcome.what)], outcome.reason.c_str());
}

int conclude(random_counts& found) {
  std::printf("%d right, %d wrong, %d failed, %d on which a null kernel would pass; not tried, as unsupported: %d\n", found[kind::right], found[kind::wrong], found[kind::failed],
              found[kind::unverifiable], found[kind::unsupported]);
  return all_well(found) ? 0 : 1;
}

/// Modules that are looked at in one Python process: importing Torch takes longer than most of them.
constexpr int in_one_process = 25;

int in_triton(reference& ref, const std::filesystem::path& folder, int count, uint64_t first, const std::string& interpreter) {
  random_counts found;
  const auto start = std::chrono::steady_clock::now();
  std::map<uint64_t, triton_module> written;
  for (int i = 0; i < count; ++i) {
    const auto seed = first + static_cast<uint64_t>(i);
    auto made = write_random_module(ref, folder, seed);
    if (made) written.emplace(seed, *made);
    else tell(found, seed, {made.error().code == ec::unsupported ? kind::unsupported : kind::failed, made.error().message, ""}, ".triton.py");
    if (static_cast<int>(written.size()) < in_one_process && i + 1 < count) continue;
    for (auto& [of, outcome] : check_random_modules(ref, written, interpreter)) tell(found, of, outcome, ".triton.py");
    written.clear();
    std::printf("%d of %d in %.0f s: %d right\n", i + 1, count, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), found[kind::right]);
    std::fflush(stdout);
  }
  return conclude(found);
}

} // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 500;
  const auto first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
  auto folder = temp_dir::create("pragma-random-");
  auto ref = reference::start({});
  if (!folder || !ref) {
    std::fprintf(stderr, "%s\n", render(!folder ? folder.error() : ref.error()).c_str());
    return 1;
  }
  if (argc > 3 && argv[3] == std::string("triton")) return in_triton(*ref, folder->path(), count, first, argc > 4 ? argv[4] : "");
  builtin_options options;
  if (argc > 3 && argv[3] == std::string("tiles")) {
    options.machine.cpu = "with tiles";
    options.machine.simd_bits = 512;
    options.machine.half_gflops = 1000;
  }
  random_counts found;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    const auto seed = first + static_cast<uint64_t>(i);
    const auto outcome = check_random_task(*ref, folder->path(), seed, {0}, options);
    tell(found, seed, outcome, ".cpp");
    if (outcome.what == kind::failed) { // the reference process may be what failed
      ref = reference::start({});
      if (!ref) break;
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i % 25 == 24 || i + 1 == count) std::printf("%d of %d in %.0f s: %d right\n", i + 1, count, seconds, found[kind::right]);
    std::fflush(stdout);
  }
  return conclude(found);
}
