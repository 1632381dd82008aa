// machine_roofline(): bandwidth per cache level and the multiply-add peak, measured with pinned threads. A limit must not
// be too low (a candidate above it counts as a measurement error), so each figure is the best of many short batches over
// every way of copying that a candidate could use: plain and streaming stores, and the C library's memcpy.
#include "base/file_lock.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/utc.hpp"
#include "diagnosis/roofline.hpp"
#include "profilers/hardware.hpp"
#include "profilers/roofline_kernels.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <sched.h>
#include <sys/mman.h>
#include <thread>

namespace pragma {

namespace {

constexpr int file_version = 6;             // of the cached file: raise it when the method changes
constexpr double batch_seconds = 1e-3;      // long against the clock and the start of threads, short against a time slice
constexpr double cache_seconds = 0.07;      // per figure in a cache
constexpr double memory_seconds = 0.25;      // per figure in memory, where one pass takes 10 ms
constexpr double peak_seconds = 0.25;
constexpr double max_off_cpu_share = 0.02;  // a batch that lost more than this of its time to other work is not clean
constexpr int patience = 3;                 // times the budget while no batch was clean
constexpr auto longest_by_another = std::chrono::seconds(60); // a measurement by another process takes a few seconds
constexpr size_t page = 4096;
constexpr int64_t default_l1 = 32 << 10, default_l2 = 512 << 10; // when the machine does not say
constexpr int64_t smallest_memory_set = 64 << 20, largest_memory_set = 1ll << 30;

using clock_type = std::chrono::steady_clock;

double thread_cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double seconds_between(clock_type::time_point a, clock_type::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) cpus.push_back(i);
  return cpus;
}

enum class operation { read, read_streams, copy, stream_copy, library_copy, multiply_add, multiply_tiles, divide };

struct job {
  operation what = operation::read;
  size_t bytes = 0; // per thread; for copies: source plus destination
  int64_t repeats = 1;
};

/// One thread's memory, mapped and touched by that thread.
class buffer {
public:
  explicit buffer(size_t bytes) : size_(bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    data_ = static_cast<std::byte*>(at);
    madvise(at, bytes, MADV_HUGEPAGE);
    std::memset(at, 1, bytes); // not the shared zero page
  }
  buffer(const buffer&) = delete;
  ~buffer() {
    if (data_) munmap(data_, size_);
  }
  std::byte* data() const { return data_; }

private:
  size_t size_ = 0;
  std::byte* data_ = nullptr;
};

/// Threads that start a job together and meet again after it; thread 0 decides what comes next.
class team {
public:
  team(int threads, size_t bytes) : threads_(threads), bytes_(bytes), starts_(static_cast<size_t>(threads)), ends_(starts_), off_(starts_.size()) {}

  /// Runs `plan` in thread 0 of the team; plan calls batch(). False when memory could not be had.
  bool run(const std::function<void()>& plan) {
    const auto cpus = allowed_cpus();
    std::vector<std::thread> members;
    for (int i = 0; i < threads_; ++i)
      members.emplace_back([this, i, &cpus, &plan] {
        if (!cpus.empty()) {
          // The last CPUs: interrupts and other people's single threads tend to sit on the first.
          cpu_set_t set;
          CPU_ZERO(&set);
          CPU_SET(cpus[(cpus.size() * static_cast<size_t>(threads_) - 1 - static_cast<size_t>(i)) % cpus.size()], &set);
          sched_setaffinity(0, sizeof set, &set);
        }
        buffer memory(bytes_);
        if (!memory.data()) failed_ = true;
        meet();
        if (!failed_) {
          if (i == 0) {
            leader_memory_ = memory.data();
            plan();
            stop_ = true;
            meet();
          } else {
            follow(i, memory.data());
          }
        }
      });
    for (auto& member : members) member.join();
    return !failed_;
  }

  struct outcome {
    double seconds = 0;
    bool clean = false;
  };
  /// All threads do `j` at the same time; from the first start to the last end.
  outcome batch(const job& j) {
    job_ = j;
    meet();
    work(0, leader_memory_);
    meet();
    const auto first = *std::min_element(starts_.begin(), starts_.end());
    const auto last = *std::max_element(ends_.begin(), ends_.end());
    outcome result;
    result.seconds = std::max(1e-9, seconds_between(first, last));
    result.clean = *std::max_element(off_.begin(), off_.end()) <= max_off_cpu_share * result.seconds;
    return result;
  }
  double work_per_repeat(const job& j) const {
    if (j.what == operation::multiply_add) return roofline::best_kernels().multiply_add(1) * threads_;
    if (j.what == operation::divide) return roofline::best_kernels().divide(1);
    if (j.what == operation::multiply_tiles) return roofline::multiply_tiles(1) * threads_;
    return static_cast<double>(j.bytes) * threads_;
  }

private:
  void follow(int i, std::byte* memory) {
    while (true) {
      meet();
      if (stop_) return;
      work(static_cast<size_t>(i), memory);
      meet();
    }
  }

  void work(size_t i, std::byte* memory) {
    const auto& kernels = roofline::best_kernels();
    const auto half = job_.bytes / 2 / page * page;
    // Half a page apart: a load that follows a store to the same page offset would wait for it on some CPUs.
    auto* to = memory + half + page / 2;
    const auto cpu_before = thread_cpu_seconds();
    starts_[i] = clock_type::now();
    switch (job_.what) {
      case operation::read: kernels.read(memory, job_.bytes / page * page, job_.repeats); break;
      case operation::read_streams: kernels.read_streams(memory, job_.bytes / (4 * page) * (4 * page), job_.repeats); break;
      case operation::copy: kernels.copy(to, memory, half, job_.repeats); break;
      case operation::stream_copy: kernels.stream_copy(to, memory, half, job_.repeats); break;
      case operation::library_copy:
        for (int64_t r = 0; r < job_.repeats; ++r) {
          std::memcpy(to, memory, half);
          asm volatile("" ::: "memory");
        }
        break;
      case operation::multiply_add: kernels.multiply_add(job_.repeats); break;
      case operation::multiply_tiles: roofline::multiply_tiles(job_.repeats); break;
      case operation::divide: kernels.divide(job_.repeats); break;
    }
    ends_[i] = clock_type::now();
    off_[i] = seconds_between(starts_[i], ends_[i]) - (thread_cpu_seconds() - cpu_before);
  }

  /// Spins, since waking costs more than a batch may be off; yields when there are more threads than CPUs.
  void meet() {
    const int turn = turn_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      turn_.store(turn + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; turn_.load(std::memory_order_acquire) == turn; ++spins)
      if (spins > 10000) std::this_thread::yield();
  }

  int threads_;
  size_t bytes_;
  std::vector<clock_type::time_point> starts_, ends_;
  std::vector<double> off_;
  std::byte* leader_memory_ = nullptr;
  job job_;
  std::atomic<bool> failed_{false}, stop_{false};
  std::atomic<int> arrived_{0}, turn_{0};
};

struct rate {
  double best = 0, typical = 0;           ///< bytes or FLOP per second: of the best batch, and of the median one
  bool established = false;               ///< other work left some batch alone
};
/// Of many batches within `budget` seconds.
rate rate_of(team& t, job j, double budget) {
  j.repeats = roofline::repeats_for(batch_seconds / 2, [&](int64_t repeats) {
    j.repeats = repeats;
    return t.batch(j).seconds;
  });
  rate found;
  std::vector<double> seconds;
  const auto begin = clock_type::now();
  while (true) {
    const auto elapsed = seconds_between(begin, clock_type::now());
    if (elapsed >= budget && (found.established || elapsed >= patience * budget)) break;
    const auto result = t.batch(j);
    found.established = found.established || result.clean;
    seconds.push_back(result.seconds);
  }
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
  const double work = t.work_per_repeat(j) * static_cast<double>(j.repeats);
  found.typical = work / seconds[seconds.size() / 2];
  found.best = work / *std::min_element(seconds.begin(), seconds.end());
  return found;
}

/// Cycles of a nanosecond while a core works: a chain of exclusive ors takes one cycle each on every core that we know, and none takes it out of the
/// chain as some do with additions. The fastest of many batches; 0 where the assembler is not known.
double measured_clock_ghz() {
  double best = 0;
#if defined(__x86_64__) || defined(__aarch64__)
  constexpr int rounds = 2000, links = 64, batches = 60;
  uint64_t chain = 1, other = 0x5555;
  for (int b = 0; b < batches; ++b) {
    const auto begin = clock_type::now();
    for (int r = 0; r < rounds; ++r) {
#if defined(__x86_64__)
#define PRAGMA_LINK "xorq %1, %0\n"
#else
#define PRAGMA_LINK "eor %0, %0, %1\n"
#endif
#define PRAGMA_LINKS_8 PRAGMA_LINK PRAGMA_LINK PRAGMA_LINK PRAGMA_LINK PRAGMA_LINK PRAGMA_LINK PRAGMA_LINK PRAGMA_LINK
      asm volatile(PRAGMA_LINKS_8 PRAGMA_LINKS_8 PRAGMA_LINKS_8 PRAGMA_LINKS_8 PRAGMA_LINKS_8 PRAGMA_LINKS_8 PRAGMA_LINKS_8 PRAGMA_LINKS_8 : "+r"(chain) : "r"(other));
    }
#undef PRAGMA_LINKS_8
#undef PRAGMA_LINK
    const double seconds = seconds_between(begin, clock_type::now());
    if (seconds > 0) best = std::max(best, rounds * links / seconds / 1e9);
  }
#endif
  return best;
}

struct level {
  std::string name;
  std::vector<size_t> sets; // bytes per thread
  std::vector<operation> reads, copies;
  double seconds;
  bool shared = false; // a cache of several cores, or memory: what it gives depends on how much of it is asked for
};

std::vector<level> plan_levels(const std::vector<int64_t>& caches, int threads, int64_t memory_bytes) {
  const auto l1 = static_cast<size_t>(caches[0]), l2 = static_cast<size_t>(caches[1]), l3 = static_cast<size_t>(caches[2]);
  const auto n = static_cast<size_t>(threads);
  // The last level is shared: each thread takes its part of it, but never so little that it fits the level above.
  const auto part = [&](size_t bytes) { return std::max(bytes / n, std::min(2 * l2, l3)); };
  auto memory_set = std::clamp<int64_t>(4 * caches[2], smallest_memory_set, largest_memory_set);
  if (memory_bytes > 0) memory_set = std::min(memory_set, memory_bytes / 8);
  const auto whole = std::max<size_t>(16 * page, static_cast<size_t>(memory_set) / n / page * page);
  using enum operation;
  return {{"L1", {l1 / 2, l1 * 3 / 4}, {read}, {copy, library_copy}, cache_seconds},
          {"L2", {l2 / 4, l2 / 2}, {read}, {copy, library_copy}, cache_seconds},
          // Four times L2, too: a virtual machine reports the whole host's L3, of which it has little, and half of that would be memory's speed.
          {"L3", {part(std::min(4 * l2, l3 / 4)), part(l3 / 4), part(l3 / 2), std::min(part(l3), whole)}, {read, read_streams}, {copy, library_copy, stream_copy}, cache_seconds, true},
          {"memory", {whole}, {read, read_streams}, {copy, library_copy, stream_copy}, memory_seconds, true}};
}

std::filesystem::path cached_file(const cpu_facts& facts, int threads) {
  const auto identity = std::to_string(file_version) + '\0' + facts.model + '\0' + std::to_string(facts.logical) + '\0' +
                        std::to_string(facts.l3_bytes) + '\0' + roofline::best_kernels().isa;
  return cache_home() / ("roofline-" + short_hash(identity) + "-" + std::to_string(threads) + ".json");
}

bool plausible(const machine_limits& limits, const cpu_facts& facts, int threads) {
  const auto positive = [](const auto& values, size_t n) {
    return values.size() == n && std::all_of(values.begin(), values.end(), [](auto v) { return v > 0; });
  };
  return limits.cpu == facts.model && limits.threads == threads && limits.peak_gflops > 0 &&
         positive(limits.copy_gbs, 4) && positive(limits.read_gbs, 4) && positive(limits.cache_bytes, 3);
}

/// Nothing when there is no file, or not one of ours: then it is measured again.
std::optional<machine_limits> read_cached(const std::filesystem::path& file, const cpu_facts& facts, int threads) {
  auto text = read_file(file);
  if (!text) return std::nullopt;
  auto parsed = parse_json(*text, file.string());
  if (!parsed) return std::nullopt;
  auto limits = from_json_value<machine_limits>(*parsed, file.string());
  if (!limits || !plausible(*limits, facts, threads)) return std::nullopt;
  if (limits->clock_ghz > 0) return *limits;
  limits->clock_ghz = measured_clock_ghz(); // a file from before it was measured
  limits->microarchitecture = facts.microarchitecture;
  (void)write_file_atomic(file, json(*limits).dump(2) + "\n");
  return *limits;
}

/// What a slower level can do, a faster one can: keeps noise from turning the order round.
void order_levels(machine_limits& limits) {
  for (size_t i = limits.copy_gbs.size() - 1; i > 0; --i) {
    limits.copy_gbs[i - 1] = std::max(limits.copy_gbs[i - 1], limits.copy_gbs[i]);
    limits.read_gbs[i - 1] = std::max(limits.read_gbs[i - 1], limits.read_gbs[i]);
  }
  for (size_t i = limits.set_bytes.size(); i > 1; --i) {
    limits.set_copy_gbs[i - 2] = std::max(limits.set_copy_gbs[i - 2], limits.set_copy_gbs[i - 1]);
    limits.set_read_gbs[i - 2] = std::max(limits.set_read_gbs[i - 2], limits.set_read_gbs[i - 1]);
  }
}

/// The best rate of each level, and the typical one of each working set of what several cores share. `measure` gives bytes per second.
void measure_levels(const std::vector<level>& levels, int threads, const std::function<rate(const job&, double)>& measure, const std::function<void(const std::string&)>& tell, machine_limits& limits) {
  struct rates {
    double copy = 0, read = 0;
    void also(const rates& other) { copy = std::max(copy, other.copy), read = std::max(read, other.read); }
  };
  std::map<int64_t, rates> sets; // by bytes of all threads
  for (const auto& l : levels) {
    rates of_level;
    for (auto bytes : l.sets) {
      rates typical;
      for (auto how : l.reads) {
        tell("reading from " + l.name);
        const auto found = measure({how, bytes, 1}, l.seconds);
        of_level.read = std::max(of_level.read, found.best / 1e9), typical.read = std::max(typical.read, found.typical / 1e9);
      }
      for (auto how : l.copies) {
        tell("copying in " + l.name);
        const auto found = measure({how, bytes, 1}, l.seconds);
        of_level.copy = std::max(of_level.copy, found.best / 1e9), typical.copy = std::max(typical.copy, found.typical / 1e9);
      }
      if (l.shared) sets[static_cast<int64_t>(bytes) * threads].also(typical);
    }
    limits.copy_gbs.push_back(of_level.copy);
    limits.read_gbs.push_back(of_level.read);
  }
  for (const auto& [bytes, one] : sets) {
    limits.set_bytes.push_back(bytes);
    limits.set_copy_gbs.push_back(one.copy);
    limits.set_read_gbs.push_back(one.read);
  }
}

/// Of runs that begin together one measures, and the others read what it found.
expected<file_lock> alone_with(const std::filesystem::path& file) {
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  return file_lock::take(file.string() + ".lock", file_lock::kind::exclusive, longest_by_another);
}

} // namespace

expected<machine_limits> machine_roofline(int threads, bool remeasure,
                                          const std::function<void(int, int, const std::string&)>& progress) {
  if (threads < 1 || threads > CPU_SETSIZE)
    return fail(ec::invalid_argument, "cannot measure the roofline with " + std::to_string(threads) + " threads",
                "give a number between 1 and the number of CPUs");
  auto facts = read_cpu_facts();
  if (!facts) return fail(facts.error());

  const auto file = cached_file(*facts, threads);
  if (const auto earlier = read_cached(file, *facts, threads); earlier && !remeasure) return *earlier;
  const auto alone = alone_with(file);
  const auto earlier = read_cached(file, *facts, threads);
  if (earlier && !remeasure) return *earlier;

  machine_limits limits;
  limits.cpu = facts->model;
  limits.threads = threads;
  limits.cores = facts->cores;
  limits.microarchitecture = facts->microarchitecture;
  limits.simd_bits = roofline::best_kernels().simd_bits;
  const auto l1 = facts->l1d_bytes > 0 ? facts->l1d_bytes : default_l1;
  const auto l2 = std::max(facts->l2_bytes > 0 ? facts->l2_bytes : default_l2, 2 * l1);
  limits.cache_bytes = {l1, l2, std::max(facts->l3_bytes, l2)}; // no L3: the L2 is the last level

  const auto levels = plan_levels(limits.cache_bytes, threads, facts->memory_bytes);
  size_t largest = 0;
  int total = 1, done = 0;
  for (const auto& l : levels) {
    for (auto bytes : l.sets) largest = std::max(largest, bytes);
    total += static_cast<int>(l.sets.size() * (l.reads.size() + l.copies.size()));
  }
  const auto tell = [&](const std::string& what) {
    if (progress) progress(done, total, what);
    ++done;
  };

  bool quiet = true;
  double divisions = 0; // of one core in a second
  const auto measure = [&quiet](team& t, const job& j, double budget) {
    const auto found = rate_of(t, j, budget);
    quiet = quiet && found.established;
    return found;
  };
  team t(threads, largest + 2 * page);
  const bool measured = t.run([&] {
    measure_levels(levels, threads, [&](const job& j, double budget) { return measure(t, j, budget); }, tell, limits);
    tell("multiply-add peak");
    limits.peak_gflops = measure(t, {operation::multiply_add, page, 1}, peak_seconds).best / 1e9;
    divisions = measure(t, {operation::divide, page, 1}, cache_seconds).best;
    if (roofline::has_tiles()) limits.half_gflops = measure(t, {operation::multiply_tiles, page, 1}, peak_seconds).best / 1e9;
  });
  if (!measured)
    return fail(ec::limit_exceeded, "no memory to measure the roofline: " + format_bytes(static_cast<double>(largest) * threads) + " are needed",
                "close other programs, or use fewer threads");
  limits.clock_ghz = measured_clock_ghz();
  if (divisions > 0) limits.divide_cycles = limits.clock_ghz * 1e9 / divisions;
  if (earlier && earlier->cache_bytes == limits.cache_bytes) {
    limits = better_of(std::move(limits), *earlier); // the best ever seen on this machine counts
    quiet = true; // those were
  }
  order_levels(limits);
  if (progress) progress(total, total, "done");
  if (!quiet) return limits; // too low, perhaps: good for now, not to be kept
  limits.measured_at = utc_now();

  // A cache that cannot be written costs three seconds next time, no more.
  (void)write_file_atomic(file, json(limits).dump(2) + "\n");
  return limits;
}

} // namespace pragma
