#include "timing/timing_audit.hpp"

#include "base/seconds.hpp"
#include "base/text.hpp"
#include "execution/contention.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>

namespace pragma {

namespace {

constexpr int rounds = 5;                   ///< of passes; more, up to repeated_look::most_rounds, while one kind is slower in most of them
constexpr int rounds_of_slow = 2;           ///< ... where a call or new inputs take long_call or more: little noise, much to pay
constexpr int rounds_of_costly = 1;         ///< ... where new inputs take costly_inputs or more
constexpr double costly_inputs = 1;         ///< seconds
constexpr double long_call = 0.2;           ///< seconds
constexpr int first_fresh_set = 500;        ///< numbers of input sets below are verify()'s and the timed ones
constexpr double quick_call = 5e-3;         ///< seconds: below it a pass covers all slots
constexpr double costly_round = 0.06;       ///< seconds for new inputs in all slots: above it a round uses fewer
constexpr double warm_batch = 0.5e-3;       ///< seconds of calls before each pass, for caches and clock speed
constexpr double slower_factor = 1.5;       ///< one pass over another of the same preparation: what less would save is no gain ...
constexpr double slower_slack = 2e-6;       ///< ... plus this, by CPU time
constexpr double waking_slack = 10e-6;      ///< ... by the clock, with several threads
constexpr double waking_a_thread = 15e-6;   ///< ... and for each of them over a batch's first calls: all were stopped, and 16 take some 120 us to meet (Xeon)
constexpr double shared_processor = 0.05;   ///< of a batch spent waiting for one: somebody else works there, also while the candidate stands still, and takes its caches
constexpr double usual_slack = 20e-6;       ///< of a call while it was timed over one that was checked
constexpr double batch_factor_of_many = 2.5; ///< ... with several threads, which wake one after the other
constexpr uint64_t worth_staging = 256 << 20; ///< bytes: no cache keeps anything of what is larger
constexpr double shortest_exchange = 4e-3;  ///< seconds of a batch whose inputs are exchanged: longer than a late wake-up
constexpr double copy_bytes_per_second = 2e9; ///< pessimistic, to leave time for the exchange
constexpr int whole_cycles = 3;             ///< calls that each slot must still get after the exchange
constexpr int whole_cycles_of_long = 1;     ///< ... where a call takes long_call or more: far longer than any delay of ours
constexpr int exchange_attempts = 5;
constexpr double exchange_share = 0.25;     ///< of a batch, by the fewest seconds that its calls can take: later is too late to tell

using clock = std::chrono::steady_clock;

/// A candidate that crashed or hung; any other failure is handed on.
timing_audit::result blame_call(const error& e, const std::string& when) {
  if (e.code != ec::candidate_failed && e.code != ec::timeout) return fail(e);
  return finding_of_audit{verdict_stage::run, doubt::none, false, e.message + " (" + when + ")", {}};
}

} // namespace

timing_audit::timing_audit(const task& t, reference& ref, runner_process& runner, slot_checker& checker, uint64_t input_seed,
                           const timing_options& options, std::vector<int> cpus, double call_timeout)
    : task_(t), ref_(ref), runner_(runner), checker_(checker), input_seed_(input_seed), options_(options), cpus_(std::move(cpus)),
      call_timeout_(call_timeout) {}

/// It runs from the first moment of the call's clock to the last: whatever wakes it does so in time that is counted.
timing_audit::result timing_audit::call(int first, int count, int64_t calls, const std::string& when, cost* spent, const interruption* inside) {
  if (options_.cancel && options_.cancel->load()) return fail(ec::interrupted, "the measurement was interrupted");
  const double limit = call_timeout_ * static_cast<double>(std::max<int64_t>(1, std::min<int64_t>(calls, 16)));
  auto called = inside ? runner_.call(first, count, calls, limit, *inside) : runner_.call(first, count, calls, limit);
  if (!called) return blame_call(called.error(), when);
  const auto& took = runner_.last_call();
  if (spent) *spent = {took.seconds, took.cpu_seconds};
  return std::nullopt;
}

timing_audit::result timing_audit::compare_slots(int first, int count, const fill_probe& before, const std::string& when) {
  finding_of_audit found;
  for (int slot = first; slot < first + count; ++slot) {
    auto outcome = checker_.check(slot, runner_.outputs(), before);
    for (auto& m : outcome.mismatches) found.mismatches.push_back(std::move(m));
  }
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

timing_audit::buffer timing_audit::copy_inputs(int slots) const {
  const auto* data = ref_.inputs_data();
  return {data, data + ref_.inputs_layout().slot_bytes * static_cast<uint64_t>(slots)};
}

void timing_audit::put_inputs(const buffer& bytes) {
  if (!bytes.empty()) std::memcpy(ref_.inputs_data(), bytes.data(), bytes.size());
}

timing_audit::buffer timing_audit::copy_outputs(int slots) const {
  const auto* data = runner_.outputs();
  return {data, data + ref_.outputs_layout().slot_bytes * static_cast<uint64_t>(slots)};
}

double timing_audit::time_of(const cost& spent) const {
  const bool by_cpu = options_.threads == 1 && spent.cpu >= 0;
  return std::max(by_cpu ? spent.cpu - empty_.cpu : spent.wall - empty_.wall, 1e-9);
}

timing_audit::result timing_audit::batch_is_right(int64_t calls, const std::string& when) {
  const int slots = ref_.slots();
  fill_outputs(ref_.outputs_layout(), runner_.outputs(), 0, slots);
  const auto before = probe_fill(ref_.outputs_layout(), runner_.outputs());
  if (auto failed = call(0, slots, std::max<int64_t>(calls, slots), when); !failed || *failed) return failed;
  return compare_slots(0, slots, before, when);
}

// -- passes that differ in nothing but their content -----------------------------------------------------------------

/// Remembers what lies in the slots, and its answers.
void timing_audit::learn_known_set(int slots) {
  known_.inputs = copy_inputs(slots);
  known_.answers = copy_outputs(slots);
  known_.scales.clear();
  for (int slot = 0; slot < slots; ++slot) known_.scales.push_back(checker_.scales(slot));
}

/// The outputs of the known inputs are what they were, within twice the tolerance (threads may add in another order).
timing_audit::result timing_audit::answers_as_before(int slots, const std::string& when) {
  finding_of_audit found;
  const auto& layout = ref_.outputs_layout();
  for (int slot = 0; slot < slots; ++slot)
    for (size_t i = 0; i < layout.specs.size(); ++i) {
      const auto at = layout.slot_bytes * static_cast<uint64_t>(slot) + layout.offsets[i];
      const std::span<const std::byte> before(known_.answers.data() + at, layout.specs[i].bytes());
      const auto* got = runner_.outputs() + at;
      if (std::memcmp(before.data(), got, before.size()) == 0) continue;
      const auto outcome = compare_output(layout.specs[i], before, {}, known_.scales[static_cast<size_t>(slot)][i], got, 2 * checker_.tolerance(i));
      if (outcome.wrong > 0) found.mismatches.push_back(describe_mismatch(layout.specs[i], before, {}, got, outcome, "inputs that it had answered rightly"));
    }
  if (found.mismatches.empty()) return std::nullopt;
  keep_worst(found.mismatches);
  found.reason = when + ": " + sentence(found.mismatches.front());
  return found;
}

/// One verified pass. Whatever its kind, the same goes before it: a pass over the known inputs, and as many bytes written to inputs and outputs
/// from the same places. So a kernel that computes takes equally long, whatever caches hold.
timing_audit::result timing_audit::one_pass(pass kind, const buffer& unseen, int slots, double call_seconds, cost& spent) {
  const auto& layout = ref_.outputs_layout();
  put_inputs(known_.inputs);
  const auto warm = clock::now();
  do {
    if (call_seconds >= quick_call) break;
    if (auto failed = call(0, slots, slots, "passes after timing"); !failed || *failed) return failed;
  } while (seconds_since(warm) < warm_batch);

  const auto start = clock::now();
  const auto& inputs = kind == pass::unseen ? unseen : known_.inputs;
  const bool staged = inputs.size() + known_.answers.size() <= worth_staging;
  if (staged) staged_inputs_ = inputs, staged_outputs_ = known_.answers;
  put_inputs(staged ? staged_inputs_ : inputs);
  auto* outputs = staged ? staged_outputs_.data() : runner_.outputs();
  if (!staged) std::memcpy(outputs, known_.answers.data(), known_.answers.size());
  if (kind != pass::kept) fill_outputs(layout, outputs, 0, slots);
  if (staged) std::memcpy(runner_.outputs(), outputs, staged_outputs_.size());
  const auto before = probe_fill(layout, runner_.outputs());
  preparing_ = seconds_since(start);
  if (auto failed = call(0, slots, kind == pass::none ? 0 : slots, "passes after timing", &spent); !failed || *failed) return failed;
  if (kind == pass::none) return std::nullopt;
  return kind == pass::unseen ? compare_slots(0, slots, before, "after timing, on inputs that it had not seen") : answers_as_before(slots, "after timing");
}

timing_audit::result timing_audit::one_round(looks& seen, int slots, double call_seconds) {
  if (auto made = new_inputs(slots, "unseen inputs after timing"); !made) return fail(made.error());
  known_set next;
  next.inputs = copy_inputs(slots);
  const stay_on same_core(options_.threads == 1 ? cpus_ : std::vector<int>{});
  std::array<pass, 4> order{pass::unseen, pass::seen, pass::kept, pass::none};
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[order_.next() % i]);
  std::array<cost, 4> took{};
  for (const auto kind : order) {
    if (auto wrong = one_pass(kind, next.inputs, slots, call_seconds, took[static_cast<size_t>(kind)]); !wrong || *wrong) return wrong;
    if (kind == pass::unseen) next.answers = copy_outputs(slots);
  }
  const auto& empty = took[static_cast<size_t>(pass::none)];
  empty_ = {std::min(empty_.wall, empty.wall), empty.cpu < 0 ? empty_.cpu : std::min(empty_.cpu, empty.cpu)};
  const auto time = [&](pass kind) { return time_of(took[static_cast<size_t>(kind)]); };
  seen.content.add(time(pass::unseen), time(pass::seen));
  seen.done.add(time(pass::seen), time(pass::kept));
  for (int slot = 0; slot < slots; ++slot) next.scales.push_back(checker_.scales(slot));
  known_ = std::move(next);
  put_inputs(known_.inputs);
  return batch_round(seen, slots, call_seconds);
}

/// The first calls of a batch against a batch as long as the timed ones: nothing is touched in between, so that caches hold the same.
timing_audit::result timing_audit::batch_round(looks& seen, int slots, double call_seconds) {
  const auto calls = std::max<int64_t>(slots, static_cast<int64_t>(options_.sample_seconds / std::max(call_seconds, 1e-9)));
  cost whole, first;
  if (calls <= slots) { // a timed batch is one call of each slot as well: it has no first calls that could differ from its others
    if (auto failed = call(0, slots, slots, "a batch", &whole); !failed || *failed) return failed;
    seen.usual = std::min(seen.usual, time_of(whole) / slots);
    return std::nullopt;
  }
  const double waited = run_delay_seconds(runner_.pid());
  const auto began = clock::now();
  for (auto* spent : {static_cast<cost*>(nullptr), &whole})
    if (auto failed = call(0, slots, calls, "a batch", spent); !failed || *failed) return failed;
  // As long as a pass is prepared, or at once: who tells batches by the time between calls knows neither. A core that idled would be slower.
  const double spin = order_.next() % 2 ? preparing_ : 0;
  const auto start = clock::now();
  while (seconds_since(start) < spin) {
  }
  if (auto failed = call(0, slots, slots, "the first calls of a batch", &first); !failed || *failed) return failed;
  seen.waited += run_delay_seconds(runner_.pid()) - waited;
  seen.lasted += seconds_since(began);
  const double usual = time_of(whole) / static_cast<double>(calls);
  seen.batch.add(time_of(first), usual * slots);
  seen.usual = std::min(seen.usual, usual);
  return std::nullopt;
}

std::optional<finding_of_audit> timing_audit::judge(const looks& seen, int slots, double call_seconds) const {
  const auto a_call = [&](double of_a_pass) { return of_a_pass / slots; };
  const auto of = [&](const repeated_look& look, const std::string& what, const std::string& trick, bool tells = true) -> std::optional<finding_of_audit> {
    if (look.innocent()) return std::nullopt;
    finding_of_audit found;
    found.by_time = true;
    found.reason = what + (!tells ? ", on a processor that other work shares" : look.shown() ? ": " + trick : ", not often enough to tell a trick from other work on this machine");
    if (!tells || !look.shown()) {
      found.stage = verdict_stage::not_established;
      found.why_not = doubt::machine_busy;
    }
    return found;
  };
  if (auto found = of(seen.content, "a call takes " + format_seconds(a_call(seen.content.one())) + " on inputs that it has not seen, but " + format_seconds(a_call(seen.content.other())) + " on inputs that it knows",
                      "it caches answers by content"))
    return found;
  if (auto found = of(seen.done, "a call takes " + format_seconds(a_call(seen.done.one())) + ", but " + format_seconds(a_call(seen.done.other())) + " where the outputs still hold the answer",
                      "it skips work that it finds done"))
    return found;
  if (auto found = of(seen.batch, "the first calls of a batch take " + format_seconds(a_call(seen.batch.one())) + " each, the whole batch " + format_seconds(a_call(seen.batch.other())) + " a call",
                      "it does not do the work on every call of a batch", seen.waited <= shared_processor * seen.lasted))
    return found;
  // All these calls were checked. Were the timed ones like them?
  if (seen.usual < 1e299 && seen.usual > slower_factor * call_seconds + usual_slack) {
    finding_of_audit found{verdict_stage::not_established, doubt::machine_busy, true, "", {}};
    found.reason = "a call took " + format_seconds(call_seconds) + " while it was timed, and " + format_seconds(seen.usual) +
                   " in batches of the same length that were checked afterwards";
    return found;
  }
  return std::nullopt;
}

timing_audit::result timing_audit::work_is_done_on_every_call(double call_seconds) {
  const bool one = options_.threads == 1;
  const double slack = one ? slower_slack : waking_slack;
  looks seen{{slower_factor, slack}, {slower_factor, slack}, {one ? slower_factor : batch_factor_of_many, one ? slack : waking_a_thread * options_.threads}};
  double affordable = call_seconds < quick_call ? costly_round / std::max(ref_.make_seconds(), 1e-9) : 1;
  if (ref_.slots() > reference::usual_slots) affordable = ref_.slots(); // many because they are small: of fewer, a processor learns the branches by heart
  const int slots = static_cast<int>(std::clamp<double>(affordable, 1, ref_.slots()));
  const bool slow = call_seconds >= long_call || ref_.make_seconds() >= long_call;
  const int enough = ref_.make_seconds() >= costly_inputs ? rounds_of_costly : slow ? rounds_of_slow : rounds;
  learn_known_set(slots);
  for (int round = 1; round <= repeated_look::most_rounds; ++round) {
    if (auto failed = one_round(seen, slots, call_seconds); !failed || *failed) return failed;
    const bool clear = seen.content.innocent() && seen.done.innocent() && seen.batch.innocent();
    if (round >= enough && clear) break;
  }
  if (seen.usual < 1e299) usual_ = seen.usual;
  return judge(seen, slots, call_seconds);
}

// -- other inputs in the middle of a batch ---------------------------------------------------------------------------

timing_audit::result timing_audit::batch_follows_its_inputs(double call_seconds) {
  const auto& layout = ref_.outputs_layout();
  const double copy_seconds =
      static_cast<double>(ref_.inputs_layout().slot_bytes + layout.slot_bytes) / copy_bytes_per_second;
  int slots = ref_.slots();
  const bool slow = call_seconds >= long_call;
  const int whole = slow ? whole_cycles_of_long : whole_cycles;
  if (slow || call_seconds * slots * (whole + 1) > 10 * shortest_exchange) slots = 1;
  const auto old = copy_inputs(slots);
  if (auto made = new_inputs(slots, "inputs exchanged during a batch"); !made) return fail(made.error());
  const auto fresh = copy_inputs(slots);
  const std::string when = "in the middle of a batch its inputs were exchanged";
  const double per_call = std::max(call_seconds, 1e-9);
  double cpu_of_call = options_.threads == 1 ? per_call : 1e300; ///< the least that was seen
  double length = std::max(shortest_exchange, 4 * copy_seconds * slots + (whole + 2) * per_call * slots);
  int hits = 0, misses = 0;
  for (int attempt = 0; attempt < exchange_attempts && hits < (slots > 1 ? 2 : 1); ++attempt) {
    put_inputs(old);
    fill_outputs(layout, runner_.outputs(), 0, slots);
    const auto before = probe_fill(layout, runner_.outputs());
    const auto calls = std::max<int64_t>(4 * (slow ? 1 : whole + 1) * slots, static_cast<int64_t>(length / per_call));
    const double started = cpu_seconds(runner_.pid());
    double exchanged = 1e300;
    // How far it was at most is told by its CPU time: that holds on a busy machine, too.
    const interruption exchange{exchange_share * static_cast<double>(calls) * per_call, [&] {
                                  exchanged = cpu_seconds(runner_.pid());
                                  put_inputs(fresh); // the outputs are left alone: a call may work in them, and holds the old answers until it is done again
                                }};
    cost spent;
    auto failed = call(0, slots, calls, when, &spent, &exchange);
    if (failed && *failed) { // who reads a thing twice and relies on finding the same may crash, and did nothing wrong
      (*failed)->stage = verdict_stage::not_established;
      (*failed)->why_not = doubt::our_limit;
    }
    if (!failed || *failed) return failed;
    // Where a timed batch is one call this is the first one of several: whoever leaves out the others is done before anything can be exchanged.
    const double a_call = time_of(spent) / static_cast<double>(calls);
    if (slow && a_call * (options_.threads == 1 ? slower_factor : batch_factor_of_many) < usual_) {
      finding_of_audit found;
      found.by_time = true;
      found.reason = "a call takes " + format_seconds(usual_) + " by itself, and " + format_seconds(a_call) + " in a batch of " + std::to_string(calls) + ": it does not do the work on every call of a batch";
      put_inputs(fresh);
      return found;
    }
    const double ended = cpu_seconds(runner_.pid());
    // A call takes at least half of the least that was seen of it, so that at most this many came before the exchange. CPU time that the
    // hypervisor took counts as the candidate's, and can only make this attempt one that does not count.
    cpu_of_call = std::min(cpu_of_call, std::max(ended - started, 1e-9) / static_cast<double>(calls));
    const double most_before = (exchanged - started) / (cpu_of_call / 2);
    if (most_before > static_cast<double>(calls) - whole * slots) {
      length *= 2;
      continue;
    }
    ++hits;
    auto wrong = compare_slots(0, slots, before, when);
    if (wrong && *wrong && ++misses < 2) { // once more
      --hits;
      continue;
    }
    if (wrong && *wrong) (*wrong)->reason += "; it does not compute on every call of a batch";
    if (!wrong || *wrong) return wrong;
  }
  put_inputs(fresh); // what the checker expects, whoever is looked at next
  return std::nullopt; // where the machine is too busy to hit the middle of a batch, the other audits stand
}

} // namespace pragma
