// Where the time of a call goes, by samples of the running candidate: the kernel's timer of CPU time (perf_event_open, a software event) needs no PMU, and
// what it sees are addresses. The candidate runs as it is measured, with its own instructions, AVX-512 included.
#include "base/files.hpp"
#include "base/text.hpp"
#include "profilers/running.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <linux/perf_event.h>
#if defined(__x86_64__)
#include <asm/perf_regs.h>
#endif
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pragma {

namespace {

constexpr double run_seconds = 0.3;           ///< of calls: a thousand samples and more
constexpr uint64_t period_ns = 200'000;
constexpr size_t ring_pages = 128;            ///< power of two; holds 3,400 samples with their registers, so that nobody needs to drain it; as much as a user may lock by default
constexpr int fewest_samples = 50;            ///< below it shares say nothing
constexpr double system_noise = 0.03;         ///< of the CPU time: less is the end of the run and the timer's own grain
constexpr double telling_samples = 200;       ///< in a loop: a division that runs in each trip of it is among them

#if defined(__x86_64__)
/// ax, bx, cx, dx, si, di, bp, sp and r8 to r15.
constexpr uint64_t register_mask = (1ull << PERF_REG_X86_AX) | (1ull << PERF_REG_X86_BX) | (1ull << PERF_REG_X86_CX) | (1ull << PERF_REG_X86_DX) | (1ull << PERF_REG_X86_SI) |
                                   (1ull << PERF_REG_X86_DI) | (1ull << PERF_REG_X86_BP) | (1ull << PERF_REG_X86_SP) | (0xffull << PERF_REG_X86_R8);
#endif

/// Of the main thread, as the kernel accounts for it; negative where it does not.
double cpu_seconds_of(int pid) {
  const auto id = std::to_string(pid);
  const auto text = read_file("/proc/" + id + "/task/" + id + "/schedstat");
  return text ? 1e-9 * std::strtod(text->c_str(), nullptr) : -1;
}

/// The event with its ring of records.
class timer_event {
public:
  explicit timer_event(int pid) {
    perf_event_attr how{};
    how.size = sizeof how;
    how.type = PERF_TYPE_SOFTWARE;
    how.config = PERF_COUNT_SW_CPU_CLOCK;
    how.sample_period = period_ns;
    how.sample_type = PERF_SAMPLE_IP;
#if defined(__x86_64__)
    how.sample_type |= PERF_SAMPLE_REGS_USER;
    how.sample_regs_user = register_mask;
#endif
    how.disabled = 1;
    how.exclude_kernel = 1;
    how.exclude_hv = 1;
    fd_ = static_cast<int>(syscall(SYS_perf_event_open, &how, pid, -1, -1, PERF_FLAG_FD_CLOEXEC));
    if (fd_ < 0) {
      problem_ = std::string("perf_event_open: ") + std::strerror(errno) + (errno == EACCES || errno == EPERM ? " (kernel.perf_event_paranoid above 2, or a container's filter)" : "");
      return;
    }
    bytes_ = (1 + ring_pages) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (at == MAP_FAILED) problem_ = std::string("no memory for samples: ") + std::strerror(errno);
    else ring_ = static_cast<perf_event_mmap_page*>(at);
  }
  timer_event(const timer_event&) = delete;
  ~timer_event() {
    if (ring_) munmap(ring_, bytes_);
    if (fd_ >= 0) close(fd_);
  }
  const std::string& problem() const { return problem_; }
  void start() const { ioctl(fd_, PERF_EVENT_IOC_ENABLE, 0); }
  void stop() const { ioctl(fd_, PERF_EVENT_IOC_DISABLE, 0); }

  /// Also whether all of them fitted.
  bool read_into(time_samples& out) const {
    const auto head = __atomic_load_n(&ring_->data_head, __ATOMIC_ACQUIRE);
    const size_t first = static_cast<size_t>(sysconf(_SC_PAGESIZE)), size = ring_pages * first; // a page of the kernel's comes before the ring
    const auto* data = reinterpret_cast<const std::byte*>(ring_) + first;
    const auto copy = [&](uint64_t from, void* to, size_t bytes) {
      for (size_t i = 0; i < bytes; ++i) static_cast<std::byte*>(to)[i] = data[(from + i) % size];
    };
    // The ring is written from its start and was not drained: what did not fit was dropped.
    size_t largest = 0;
    for (uint64_t at = 0; at + sizeof(perf_event_header) <= std::min<uint64_t>(head, size);) {
      perf_event_header header{};
      copy(at, &header, sizeof header);
      largest = std::max<size_t>(largest, header.size);
      if (header.size < sizeof header || at + header.size > head) break;
      if (header.type == PERF_RECORD_SAMPLE && header.size >= sizeof header + sizeof(uint64_t)) {
        uint64_t address = 0;
        copy(at + sizeof header, &address, sizeof address);
        ++out.at[address];
        ++out.count;
#if defined(__x86_64__)
        if (header.size >= sizeof header + (2 + 16) * sizeof(uint64_t)) { // the address, the ABI, the registers in the order of the mask's bits
          sampled_registers r;
          r.address = address;
          copy(at + sizeof header + 2 * sizeof(uint64_t), r.values.data(), sizeof r.values);
          out.registers.push_back(r);
        }
#endif
      }
      at += header.size;
    }
    return head + largest <= size;
  }

private:
  int fd_ = -1;
  size_t bytes_ = 0;
  perf_event_mmap_page* ring_ = nullptr;
  std::string problem_;
};

/// The C library's, whatever the version for this processor is called: "__memmove_avx512_unaligned_erms".
bool moves_memory(const std::string& function) {
  return function.find("memcpy") != std::string::npos || function.find("memmove") != std::string::npos || function.find("memset") != std::string::npos;
}

} // namespace

std::optional<time_samples> take_samples(const collect_context& context, const build_output& built, source_result& out) {
  const auto say = [&](const std::string& why) {
    out.missing.push_back("samples of its time: " + why);
    return std::nullopt;
  };
  const collect_context same{context.the_task, context.the_candidate, built, context.ref, context.time, context.facts, context.options, context.watch};
  auto running = start_running(same);
  if (!running) return say("cannot run the candidate: " + running.error().message);
  const int pid = running->runner.pid();
  const timer_event timer(pid);
  if (!timer.problem().empty()) return say(timer.problem());
  time_samples found;
  const double before = cpu_seconds_of(pid);
  timer.start();
  const auto ran = running->call(running->calls_for(std::min(run_seconds, context.watch.left() / 4)));
  timer.stop();
  if (!ran) return say(ran.error().message);
  found.cpu_seconds = before >= 0 ? cpu_seconds_of(pid) - before : 0;
  const bool all = timer.read_into(found);
  found.sampled_seconds = found.count * period_ns * 1e-9;
  if (!all) found.cpu_seconds = found.sampled_seconds; // what was dropped was not the operating system's time
  if (found.count < fewest_samples) return say("only " + std::to_string(found.count) + " of them in " + format_seconds(found.cpu_seconds) + " of CPU time");
  return found;
}

void attribute_samples(const time_samples& samples, const disassembled& code, std::vector<formats::hot_loop>& loops, source_result& out) {
  std::map<uint64_t, size_t> loop_at;
  std::map<uint64_t, bool> own; // whether it works on vectors
  for (const auto& f : code.functions)
    for (const auto& i : f.body) own[i.address] = formats::on_vectors(i);
  for (size_t k = 0; k < loops.size(); ++k)
    for (const auto& i : loops[k].body) loop_at[i.address] = k;
  std::vector<double> inside(loops.size(), 0);
  std::map<std::string, double> library;
  double outside = 0, vectors = 0, elsewhere = 0, moving = 0;
  for (const auto& [address, n] : samples.at) {
    if (const auto loop = loop_at.find(address); loop != loop_at.end()) inside[loop->second] += n;
    else if (const auto mine = own.find(address); mine != own.end()) {
      outside += n;
      if (mine->second) vectors += n;
    } else {
      elsewhere += n;
      const auto next = code.names.upper_bound(address);
      const auto& name = library.try_emplace(next == code.names.begin() ? std::string("?") : std::prev(next)->second).first->first;
      library[name] += n;
      if (moves_memory(name)) moving += n;
    }
  }
  double system = samples.cpu_seconds > 0 ? 1 - samples.sampled_seconds / samples.cpu_seconds : 0;
  if (system < system_noise) system = 0;
  const double whole = samples.count / (1 - std::min(0.99, system)); // samples that all of the CPU time would have given
  for (size_t k = 0; k < loops.size(); ++k) {
    loops[k].share = inside[k] / whole;
    if (inside[k] < telling_samples) continue;
    loops[k] = formats::without_unseen(loops[k], [&](const formats::instruction& i) {
      const auto at = samples.at.find(i.address);
      return at == samples.at.end() ? 0.0 : static_cast<double>(at->second);
    });
  }
  std::stable_sort(loops.begin(), loops.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  const auto add = [&](const char* name, double value, const char* unit, const std::string& note) {
    out.metrics.push_back({std::string("samples.") + name, value, unit, "cpu-clock", provenance::measured, note});
  };
  add("count", samples.count, "count", "every " + format_seconds(period_ns * 1e-9) + " of the main thread's CPU time");
  add("outside_loops_share", 100 * outside / whole, "%", "in the candidate's code, but in none of its innermost loops");
  add("outside_vectors_share", 100 * vectors / whole, "%", "of it, in instructions on several values at once");
  const auto most = std::max_element(library.begin(), library.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  add("library_share", 100 * elsewhere / whole, "%", most == library.end() ? "" : "most in " + printable(most->first));
  add("moving_share", 100 * moving / whole, "%", "memcpy, memmove, memset");
  add("system_share", 100 * system, "%", "of " + format_seconds(samples.cpu_seconds) + " of CPU time");
}

} // namespace pragma
