#include "kernels/timing_audit.hpp"

#include "base/text.hpp"
#include "kernels/contention.hpp"
#include "kernels/seeds.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <thread>

namespace pragma {

namespace {

constexpr int rounds = 5;                   ///< of single passes; minima are compared, since other work only adds time
constexpr int more_rounds = 15;             ///< before anybody is accused
constexpr int rounds_of_slow = 2;           ///< ... where a call or new inputs take long_call or more: little noise, much to pay
constexpr int rounds_of_costly = 1;         ///< ... where new inputs take costly_inputs or more
constexpr double costly_inputs = 1;         ///< seconds
constexpr double long_call = 0.2;           ///< seconds
constexpr int first_fresh_set = 500;        ///< numbers of input sets below are verify()'s and the timed ones
constexpr double short_call = 5e-3;         ///< seconds: below it a pass covers all slots and caches are warmed up before
constexpr double costly_round = 0.06;       ///< seconds for new inputs in all slots: above it a round uses one slot
constexpr double seen_factor = 1.5;         ///< unseen inputs may take this many times as long as seen ones ...
constexpr double batch_factor = 2.5;        ///< ... a single pass this many times as long as its calls in a batch ...
constexpr double work_factor = 1.5;         ///< ... and its CPU time this many times what a timed call took, with one thread ...
constexpr double work_slack = 4e-6;         ///< ... plus this, for the command
constexpr double stop_seconds = 1;          ///< for all threads to stop
constexpr double slack = 20e-6;             ///< ... plus this, for waking up
constexpr double cold_bytes_per_second = 4e9; ///< what the first touch after a rewrite may cost at worst
constexpr double warm_batch = 0.5e-3;       ///< seconds of calls before each single pass, for caches and clock speed
constexpr double rest_window = 5e-3;        ///< seconds in which an idle candidate must not compute
constexpr double spin_seconds = 20e-3;      ///< OpenMP threads may spin this long after a parallel region (more than one thread)
constexpr int rest_windows = 5;             ///< looked at while most of them were busy
constexpr double rest_share = 0.2;          ///< of one CPU: what the window may show
constexpr double shortest_exchange = 4e-3;  ///< seconds of a batch whose inputs are exchanged: longer than a late wake-up
constexpr double copy_bytes_per_second = 2e9; ///< pessimistic, to leave time for the exchange
constexpr int whole_cycles = 3;             ///< calls that each slot must still get after the exchange
constexpr int exchange_attempts = 5;

using clock = std::chrono::steady_clock;
double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }
void pause_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// Stops a process of ours from another thread than the one that waits for it; true when all of it stands still.
bool stop_process(pid_t pid) {
  ::kill(-pid, SIGSTOP);
  const auto start = clock::now();
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT) == 0 && seconds_since(start) < stop_seconds) {
    if (info.si_pid == pid && info.si_code == CLD_STOPPED) return true;
    pause_for(10e-6);
  }
  ::kill(-pid, SIGCONT);
  return false;
}

/// Writes a byte of each cache line over itself: the same traffic between caches as filling the outputs with garbage.
void rewrite_outputs(const tensor_layout& layout, std::byte* outputs, int first, int count) {
  for (int slot = first; slot < first + count; ++slot)
    for (size_t i = 0; i < layout.specs.size(); ++i) {
      auto* at = outputs + layout.slot_bytes * static_cast<uint64_t>(slot) + layout.offsets[i];
      for (uint64_t b = 0; b < layout.specs[i].bytes(); b += 64) const_cast<volatile std::byte&>(at[b]) = at[b];
    }
}

} // namespace

timing_audit::timing_audit(const task& t, reference& ref, runner_process& runner, slot_checker& checker, uint64_t input_seed,
                           const timing_options& options, std::vector<int> cpus, double call_timeout)
    : task_(t), ref_(ref), runner_(runner), checker_(checker), input_seed_(input_seed), options_(options), cpus_(std::move(cpus)),
      call_timeout_(call_timeout) {}

timing_audit::result timing_audit::call(int first, int count, int64_t calls, const std::string& when) {
  if (options_.cancel && options_.cancel->load()) return fail(ec::interrupted, "the measurement was interrupted");
  auto called = runner_.call(first, count, calls, call_timeout_ * static_cast<double>(std::max<int64_t>(1, std::min<int64_t>(calls, 16))));
  if (called) return std::nullopt;
  const auto& e = called.error();
  if (e.code != ec::candidate_failed && e.code != ec::timeout) return fail(e);
  return finding{verdict_stage::run, e.message + " (" + when + ")", {}};
}

timing_audit::result timing_audit::compare_slots(int first, int count, const fill_probe& before, const std::string& when) {
  if (!runner_.freeze()) return finding{verdict_stage::run, "the candidate " + runner_.end() + " (" + when + ")", {}};
  finding found;
  for (int slot = first; slot < first + count; ++slot) {
    auto outcome = checker_.check(slot, runner_.outputs(), before);
    for (auto& m : outcome.mismatches) found.mismatches.push_back(std::move(m));
  }
  runner_.thaw();
  if (found.mismatches.empty()) return std::nullopt;
  keep_worst(found.mismatches);
  found.reason = when + ": " + sentence(found.mismatches.front());
  return found;
}

expected<void> timing_audit::new_inputs(int slots, const std::string& name) {
  for (int slot = 0; slot < slots; ++slot) {
    const auto seed = seed_of_set(input_seed_, static_cast<int>(input_kind::own), first_fresh_set + fresh_sets_++);
    if (auto made = ref_.make_inputs(slot, seed, input_kind::own, options_.keep_sets); !made) return made;
    checker_.refresh(slot, name);
  }
  return {};
}

std::vector<std::byte> timing_audit::copy_inputs(int slots) const {
  const auto* data = ref_.inputs_data();
  return {data, data + ref_.inputs_layout().slot_bytes * static_cast<uint64_t>(slots)};
}

void timing_audit::put_inputs(const std::vector<std::byte>& bytes) {
  if (!bytes.empty()) std::memcpy(ref_.inputs_data(), bytes.data(), bytes.size());
}

/// What a call touches at most: inputs, parameters, outputs.
double timing_audit::pass_bytes() const {
  double bytes = 0;
  for (const auto* group : {&task_.inputs, &task_.params, &task_.outputs})
    for (const auto& spec : *group) bytes += static_cast<double>(spec.bytes());
  return bytes;
}

timing_audit::result timing_audit::batch_is_right(int64_t calls, const std::string& when) {
  const int slots = ref_.slots();
  fill_outputs(ref_.outputs_layout(), runner_.outputs(), 0, slots);
  const auto before = probe_fill(ref_.outputs_layout(), runner_.outputs());
  if (auto failed = call(0, slots, std::max<int64_t>(calls, slots), when); !failed || *failed) return failed;
  return compare_slots(0, slots, before, when);
}

/// New inputs in the first slots; then single passes: unseen, the same again (seen), the same with the answer left in the outputs.
timing_audit::result timing_audit::one_round(pass_times& times, double call_seconds) {
  const int slots = times.slots;
  const auto old = copy_inputs(slots);
  if (auto made = new_inputs(slots, "unseen inputs after timing"); !made) return fail(made.error());
  const auto unseen = copy_inputs(slots);
  put_inputs(old);

  const stay_on same_core(options_.threads == 1 ? cpus_ : std::vector<int>{});
  const auto batch = static_cast<int64_t>(options_.sample_seconds / std::max(call_seconds, 1e-9));
  if (batch > slots) {
    const double used = cpu_seconds(runner_.pid());
    if (auto failed = call(0, ref_.slots(), batch, "a batch"); !failed || *failed) return failed;
    if (used >= 0) times.batch = std::min(times.batch, (cpu_seconds(runner_.pid()) - used) / static_cast<double>(batch));
  }
  for (auto* best : {&times.unseen, &times.seen, &times.kept}) {
    const auto warm = clock::now(); // on what lies there: the old inputs before the first pass
    while (call_seconds < short_call && seconds_since(warm) < warm_batch) {
      if (auto failed = call(0, slots, slots, "single passes"); !failed || *failed) return failed;
    }
    put_inputs(unseen);
    fill_probe before;
    if (best == &times.kept) {
      rewrite_outputs(ref_.outputs_layout(), runner_.outputs(), 0, slots);
    } else {
      fill_outputs(ref_.outputs_layout(), runner_.outputs(), 0, slots);
      before = probe_fill(ref_.outputs_layout(), runner_.outputs());
    }
    const double used = cpu_seconds(runner_.pid());
    const auto start = clock::now();
    if (auto failed = call(0, slots, slots, "single passes"); !failed || *failed) return failed;
    *best = std::min(*best, seconds_since(start));
    if (best == &times.seen && used >= 0) times.work = std::min(times.work, cpu_seconds(runner_.pid()) - used);
    auto wrong = compare_slots(0, slots, before, best == &times.unseen ? "after timing, on inputs that it had not seen" : "after timing");
    if (!wrong || *wrong) return wrong;
  }
  return std::nullopt;
}

std::optional<timing_audit::finding> timing_audit::judge(const pass_times& times, double call_seconds) const {
  const auto text = [&](double pass) { return format_seconds(pass / times.slots); };
  finding found;
  if (times.unseen > seen_factor * times.seen + slack) {
    found.reason = "a call takes " + text(times.unseen) + " on inputs that it has not seen, but " + text(times.seen) +
                   " on the same inputs again: it caches answers by content";
    return found;
  }
  if (times.seen > seen_factor * times.kept + slack) {
    found.reason = "a call takes " + text(times.seen) + ", but " + text(times.kept) +
                   " where the outputs still hold the answer: it skips work that it finds done";
    return found;
  }
  // All outputs of this pass were garbage before and right after it: with one thread its CPU time is what the work costs.
  const double work = times.work / times.slots, claimed = std::min(call_seconds, times.batch);
  if (options_.threads == 1 && times.work < 1e299 && work > work_factor * claimed + work_slack) {
    found.reason = "a call takes " + format_seconds(claimed) + " in the timed batches, but uses " + format_seconds(work) +
                   " of CPU time in single passes that are checked: it does not do the work on every call of a batch";
    return found;
  }
  // One pass is colder than a batch: the bytes that we have just rewritten come from another cache.
  const double cold = pass_bytes() / cold_bytes_per_second;
  const double one = times.kept / times.slots;
  if (one > batch_factor * call_seconds + slack + cold) {
    found.reason = "a call takes " + format_seconds(call_seconds) + " in the timed batches, but " + format_seconds(one) +
                   " in single passes that are checked: it does not do the work on every call of a batch";
    return found;
  }
  return std::nullopt;
}

timing_audit::result timing_audit::work_is_done_on_every_call(double call_seconds) {
  pass_times times;
  const bool cheap = ref_.make_seconds() * ref_.slots() < costly_round && call_seconds < short_call;
  times.slots = cheap ? ref_.slots() : 1;
  const int enough = ref_.make_seconds() >= costly_inputs                          ? rounds_of_costly
                     : call_seconds < long_call && ref_.make_seconds() < long_call ? rounds
                                                                             : rounds_of_slow;
  for (int round = 1; round <= enough + more_rounds; ++round) {
    if (auto failed = one_round(times, call_seconds); !failed || *failed) return failed;
    if (round >= enough && !judge(times, call_seconds)) return std::nullopt;
  }
  return judge(times, call_seconds);
}

timing_audit::result timing_audit::batch_follows_its_inputs(double call_seconds) {
  const auto& layout = ref_.outputs_layout();
  const double copy_seconds =
      static_cast<double>(ref_.inputs_layout().slot_bytes + layout.slot_bytes) / copy_bytes_per_second;
  int slots = ref_.slots();
  if (call_seconds * slots * (whole_cycles + 1) > 10 * shortest_exchange) slots = 1;
  const auto old = copy_inputs(slots);
  if (auto made = new_inputs(slots, "inputs exchanged during a batch"); !made) return fail(made.error());
  const auto fresh = copy_inputs(slots);
  const std::string when = "in the middle of a batch its inputs were exchanged";
  double per_call = std::max(call_seconds, 1e-9);
  double length = std::max(shortest_exchange, 4 * copy_seconds * slots + (whole_cycles + 2) * per_call * slots);
  int hits = 0, misses = 0;
  for (int attempt = 0; attempt < exchange_attempts && hits < (slots > 1 ? 2 : 1); ++attempt) {
    put_inputs(old);
    fill_outputs(layout, runner_.outputs(), 0, slots);
    const auto before = probe_fill(layout, runner_.outputs());
    const auto calls = std::max<int64_t>((whole_cycles + 2) * slots, static_cast<int64_t>(length / per_call));
    const double started = cpu_seconds(runner_.pid());
    double exchanged = 1e300;
    // It stands still meanwhile, and how far it was is told by its CPU time: that holds on a busy machine, too.
    std::thread exchanger([&] {
      pause_for(length / 4);
      if (!stop_process(runner_.pid())) return;
      exchanged = cpu_seconds(runner_.pid());
      put_inputs(fresh);
      fill_outputs(layout, runner_.outputs(), 0, slots);
      ::kill(-runner_.pid(), SIGCONT);
    });
    auto failed = call(0, slots, calls, when);
    const double ended = cpu_seconds(runner_.pid());
    exchanger.join();
    if (!failed || *failed) return failed;
    // Enough of the batch must have come after it, by the time that the batch itself took per call. Else it came late, or
    // this batch was faster than the timed ones: make the next one longer by what was seen.
    const double seen = std::max(ended - started, 1e-9) / static_cast<double>(calls);
    if ((ended - exchanged) / seen < (whole_cycles - 1) * slots) {
      per_call = std::min(per_call, seen);
      length *= 2;
      continue;
    }
    ++hits;
    auto wrong = compare_slots(0, slots, before, when);
    // A stolen CPU counts as the process's own time, and then less came after the exchange than it seems: once is no proof.
    if (wrong && *wrong && ++misses < 2) {
      --hits;
      length *= 2;
      continue;
    }
    if (wrong && *wrong) (*wrong)->reason += "; it does not compute on every call of a batch";
    if (!wrong || *wrong) return wrong;
  }
  return std::nullopt; // where the machine is too busy to hit the middle of a batch, the other audits stand
}

timing_audit::result timing_audit::rests_between_calls() {
  if (auto failed = call(0, ref_.slots(), ref_.slots(), "between calls"); !failed || *failed) return failed;
  if (options_.threads > 1) pause_for(spin_seconds);
  // One busy window can be the kernel's own work on the process's account (memory that is reclaimed, a stolen CPU).
  double used = 0, passed = 0;
  for (int window = 1, busy = 0; window <= rest_windows; ++window) {
    const double before = cpu_seconds(runner_.pid());
    const auto start = clock::now();
    pause_for(rest_window);
    const double now_used = cpu_seconds(runner_.pid()) - before, now_passed = seconds_since(start);
    if (before < 0) return std::nullopt;
    used += now_used;
    passed += now_passed;
    busy += now_used > rest_share * now_passed;
    if (2 * (window - busy) >= window) return std::nullopt;
  }
  finding found;
  found.reason = "it used " + format_seconds(used) + " of CPU time in " + format_seconds(passed) +
                 " in which no call was running: it works in the background, outside the measured time";
  return found;
}

} // namespace pragma
