// Rules about the call as a whole: its length, threads, work that need not be done.
#include "base/text.hpp"
#include "diagnosis/rule_context.hpp"

#include <algorithm>

namespace pragma::rule {

std::optional<finding> call_overhead(const facts& f) {
  if (f.seconds <= 0) return std::nullopt;
  evidence_for e(f, bottleneck::call_overhead);
  e.derived("seconds_per_call", f.seconds, "s", provenance::measured, severity(limit::call_seconds, f.seconds), "one call takes " + format_seconds(f.seconds));
  return e.finish("The kernel is so short that entering it, setting up its loops and constants, and leaving it are a good part of its time.",
                  {"Do no set-up work in the call: no allocation, no team of threads, constants precomputed at compile time.",
                   "Specialise for the fixed shapes: constant trip counts, no checks, no generic dispatch.",
                   "Use one thread."});
}

namespace {

constexpr double busy_part = 0.9;       ///< of the processors that the threads could use
constexpr double woken_again = 2.5;    ///< switches a call and further thread: more than one time to sleep
constexpr double most_of_it = 50;      ///< per cent of the main thread's time: no single waking takes that
constexpr double imbalance_first = 0.6; ///< of the confidence: why threads sleep
constexpr double moved_part = 0.5;     ///< of a loop's time, by the bandwidth that threads share: then that keeps them from gaining
constexpr double unseen_gain = 0.7; ///< of a witness's weight: waiting was seen, what it costs was not

void add_thread_gain(const facts& f, evidence_for& e) {
  const double gain = *f.thread_gain();
  e.derived("experiment.one_thread_time", 100 * gain * f.in.threads, "%", provenance::measured, severity(limit::thread_gain, gain * 100),
            std::to_string(f.in.threads) + " threads are " + short_number(gain * f.in.threads) + " times as fast as one");
}

} // namespace

std::optional<finding> thread_overhead(const facts& f) {
  if (f.in.threads <= 1) return std::nullopt;
  evidence_for e(f, bottleneck::thread_overhead);
  e.metric("software.context_switches", limit::context_switches, "threads are put to sleep and woken within a call");
  const auto library = f.value("samples.library_share"), gain = f.thread_gain();
  if (library && gain && f.parallel_source && severity(limit::library_waiting, *library) > 0 && severity(limit::thread_gain, *gain * 100) > 0) {
    e.metric("samples.library_share", limit::library_waiting, "the main thread waits in the OpenMP library");
    add_thread_gain(f, e);
  } else if (library && !gain && f.parallel_source && severity(limit::thread_imbalance, f.value_or("software.thread_imbalance", 1)) <= 0) {
    // Where nobody could tell what one thread takes. Waking and putting to sleep is the operating system's; so are new pages.
    const double system = severity(limit::page_faults, f.value_or("software.page_faults", 0)) > 0 ? 0 : f.value_or("samples.system_share", 0), waits = *library + system;
    e.derived("samples.library_share", waits, "%", provenance::measured, severity(limit::library_waiting, waits) * unseen_gain,
              format_number(waits, 0) + "% of the main thread's time is the OpenMP library's and the operating system's, though the threads have equal work");
  } else if (gain && f.parallel_source && *gain * f.in.threads < 1 && !library) {
    add_thread_gain(f, e); // slower than one of them: without samples nobody knows where they wait, but that is most of what they do
  }
  if (f.parallel_source && f.seconds > 0)
    e.derived("seconds_per_call", f.seconds, "s", provenance::measured, severity(limit::parallel_call, f.seconds),
              "one call takes " + format_seconds(f.seconds) + ", and starting and joining " + std::to_string(f.in.threads) + " threads takes some microseconds of it");
  // Woken once a call, and quicker than one of them as far as is known: that is the least that threads cost.
  const bool once = f.value_or("software.context_switches", 0) < woken_again * (f.in.threads - 1), slower = gain && *gain * f.in.threads < 1;
  const bool mostly_waits = f.value_or("samples.library_share", 0) + f.value_or("samples.system_share", 0) > most_of_it;
  if (f.parallel_source && once && !slower && !mostly_waits) e.scale(nothing_to_follow);
  // A thread that has less to do goes to sleep until the others are ready.
  if (severity(limit::thread_imbalance, f.value_or("software.thread_imbalance", 1)) > 0) e.scale(imbalance_first);
  return e.finish("Starting, waking and joining threads takes a noticeable part of each call.",
                  {"Open one parallel region per call and put all loops into it, with `nowait` where they are independent.",
                   "Use fewer threads, or one, where a thread would get less than some 20 us of work: `if(work > limit)` on the pragma.",
                   "Use schedule(static) with large pieces, no critical sections, no atomics in the loop."});
}

std::optional<finding> load_imbalance(const facts& f) {
  if (f.in.threads <= 1) return std::nullopt;
  evidence_for e(f, bottleneck::load_imbalance);
  const double threads = f.in.threads;
  const bool idle_source = !f.in.source.empty() && !f.parallel_source;
  if (idle_source)
    e.derived("source", f.in.threads, "threads", provenance::static_analysis, 1, "the source starts no threads although it may use " + std::to_string(f.in.threads));
  e.metric("software.thread_imbalance", limit::thread_imbalance, "CPU time of the busiest thread over the mean");
  // Beside other work a thread waits for a CPU; where an experiment shows that the threads gain what they can, none waits for another.
  const bool threads_gain = f.thread_gain() && severity(limit::thread_gain, *f.thread_gain() * 100) <= 0;
  if (!idle_source && (f.in.current->time.contended || threads_gain)) e.scale(0.5);
  if (const auto used = f.value("software.cpus_utilized")) {
    const double share = *used / threads * 100;
    e.derived("software.cpus_utilized", *used, "CPUs", provenance::measured, severity(limit::cpus_share, share), short_number(*used) + " of " + std::to_string(f.in.threads) + " CPUs were busy");
  }
  if (idle_source)
    return e.finish("One thread does all the work while the others are idle.",
                    {"Run the outer loop with #pragma omp parallel for schedule(static) num_threads(args->threads), over rows or large blocks.",
                     "For a single long reduction give each thread a contiguous part and combine the partial results."});
  return e.finish("Some threads wait for others: the work is not split evenly.",
                  {"Split into pieces of equal work: collapse outer loops so that there are several times more pieces than threads, or schedule(dynamic) with pieces of at least 10 us.",
                   "Take what only one thread does (setting up, combining) out of the call's way, or split it as well."});
}

std::optional<finding> false_sharing(const facts& f) {
  if (f.in.threads <= 1 || !f.parallel_source) return std::nullopt;
  evidence_for e(f, bottleneck::false_sharing);
  e.metric("topdown.machine_clears", limit::machine_clears, "two threads writing into one line cause these");
  const bool uneven = severity(limit::thread_imbalance, f.value_or("software.thread_imbalance", 1)) > 0 || severity(limit::cpus_share, f.value_or("software.cpus_utilized", f.in.threads) / f.in.threads * 100) > 0;
  // Threads that were put aside for others while all of them had a processor did not wait for each other.
  const bool all_busy = f.value_or("software.cpus_utilized", 0) >= busy_part * f.in.threads;
  const bool waits = severity(limit::library_waiting, f.value_or("samples.library_share", 0)) > 0 || (!all_busy && severity(limit::context_switches, f.value_or("software.context_switches", 0)) > 0);
  const auto* moving = f.longest_loop();
  const bool shares_bandwidth = (f.at_bandwidth && severity(limit::bandwidth_share, f.roof.share * f.traffic_ratio * 100) > 0) ||
                                (moving && moving->by == bound::bandwidth && moving->move_seconds >= moved_part * moving->seconds);
  // Busy, balanced, in their own code, far from the bandwidth that they share: then it is what they write that they share.
  const bool all_work = f.value("samples.library_share") && f.value("software.cpus_utilized") && !uneven && !waits && !shares_bandwidth;
  if (f.thread_gain() && all_work) add_thread_gain(f, e);
  else if (f.processor_gain() && all_work)
    e.derived("experiment.one_processor_time", 100 * *f.processor_gain() * f.in.threads, "%", provenance::measured, severity(limit::thread_gain, *f.processor_gain() * 100),
              "on one processor all " + std::to_string(f.in.threads) + " threads take " + short_number(*f.processor_gain() * f.in.threads) + " times as long as on processors of their own");
  // Where nobody could tell what one thread takes: with its inputs in the first cache the loop still takes far longer than its core needs, and it stores. Numbers that are changed in
  // memory wait for each other in one thread, too.
  else if (const auto rest = f.unmodelled(); all_work && rest && f.value_or("hot_loop.updates_by_value", 0) <= 0 && !f.loops.empty() && f.loops.front().stored_bytes > 0)
    e.derived("experiment.cached_reads_time", 100 * *f.cached, "%", provenance::measured, severity(limit::unmodelled_share, 100 * *rest),
              "with all inputs in the first cache " + whole_percent(*rest) + " of the time is more than the core needs, while all threads work");
  return e.finish("The threads slow each other down while all of them work: they write into the same cache lines, which go back and forth between the cores.",
                  {"Give each thread its own accumulator on a cache line of its own (alignas(64)), or keep it in a register, and combine them once at the end.",
                   "Let each thread write contiguous blocks whose borders are multiples of 64 bytes: schedule(static) over whole rows."});
}

std::optional<finding> redundant_work(const facts& f) {
  evidence_for e(f, bottleneck::redundant_work);
  e.metric("software.page_faults", limit::page_faults, "new pages are touched in every call");
  return e.finish("Every call allocates memory and touches it for the first time: the kernel clears and maps pages that it throws away again.",
                  {"Allocate no large temporaries in the call: keep a small per-thread buffer on the stack or in a static thread_local array.",
                   "Fuse the operations so that no intermediate tensor is needed.",
                   "Write results straight to the output."});
}

} // namespace pragma::rule
