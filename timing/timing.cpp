#include "timing/timing.hpp"

#include "base/text.hpp"
#include "execution/contention.hpp"
#include "timing/quantile.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace pragma {

namespace {

constexpr int round_trips = 15;              ///< empty requests per side, to know what the protocol costs
constexpr double subtract_above = 0.005;     ///< of a sample: below this the protocol's cost is left in
constexpr double max_round_trip = 50e-6;     ///< never subtract more: a candidate could answer empty requests slowly on purpose
constexpr double warmup_seconds = 0.5;       ///< of one side, at most (one call at least)
constexpr int64_t max_calls = 5'000'000;     ///< of one sample
constexpr int64_t lead_share = 4;            ///< of a sample's calls, one in so many runs before it, untimed, and one cycle at least
constexpr double longest_lead = 5e-3;        ///< seconds of a call that needs none: a processor's own caches are filled in a tenth of it
constexpr double precise_enough = 0.02;      ///< half the interval's width over its value: no need for `repetitions` calls of a slow task
constexpr double overtime = 4;               ///< times max_seconds: not even min_accepted_blocks pairs are waited for
constexpr double longest_pair = 120;         ///< seconds: up to it there is a second pair whatever the limit, since one alone is no measurement
constexpr double contended_margin = 0.07;    ///< spread of lower quartiles under load (docs/measuring.md): widens the interval

struct sample {
  double seconds = 0; ///< net of the protocol, of one call
  double wall = 0;    ///< of the whole sample
  double waited = 0;  ///< run delay during it
};

struct pair_of_samples {
  sample candidate, baseline;
  double stolen = 0;
  bool many_threads = false; ///< Torch's wait for one another then: its pools hold more of them than a call uses
  bool quiet() const {
    const double limit = defaults::max_run_delay_share;
    return candidate.waited <= limit * candidate.wall && (many_threads || baseline.waited <= limit * baseline.wall) &&
           stolen <= limit * (candidate.wall + baseline.wall);
  }
};

int64_t in_whole(int64_t calls, int64_t cycle) { return (calls + cycle - 1) / cycle * cycle; }

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// One comparison under way: two sides, what was calibrated for them, the pairs so far.
class session {
public:
  session(timed_side candidate, timed_side baseline, const timing_options& options)
      : sides_{std::move(candidate), std::move(baseline)}, options_(options) {
    if (!options_.clock) options_.clock = steady_seconds;
    if (!options_.steal) options_.steal = [cpus = measuring_cpus(options.threads)] { return steal_seconds(cpus); };
    for (auto& side : sides_)
      if (!side.run_delay) side.run_delay = [pid = side.pid] { return run_delay_seconds(pid); };
  }

  expected<timing> measure() {
    for (int side : {candidate_, baseline_})
      if (auto ok = prepare(side); !ok) return fail(ok.error());
    start_ = options_.clock();
    if (!options_.others)
      options_.others = [watch = std::make_shared<others_watch>(std::vector<pid_t>{sides_[0].pid, sides_[1].pid}), start = steady_seconds()] {
        return watch->seconds() / std::max(steady_seconds() - start, 1e-9);
      };
    if (auto ok = collect(options_.blocks, options_.max_seconds); !ok) return fail(ok.error());
    const bool disturbed = accepted() < static_cast<int>(pairs_.size());
    if (accepted() < defaults::min_accepted_blocks && disturbed) // once more: other work may be over
      if (auto ok = collect(defaults::min_accepted_blocks, options_.max_seconds); !ok) return fail(ok.error());
    return conclude();
  }

private:
  static constexpr int candidate_ = 0, baseline_ = 1;

  /// `waited`: run delay meanwhile, where it is wanted.
  expected<double> wall_of(int side, int64_t calls, double* waited = nullptr) {
    if (options_.cancel && options_.cancel->load()) return fail(ec::interrupted, "the measurement was interrupted");
    const auto& one = sides_[side];
    if (one.wake)
      if (auto awake = one.wake(); !awake) return fail(awake.error());
    const double delay = waited ? one.run_delay() : 0;
    const double begin = options_.clock();
    auto ran = one.run(calls);
    const double outside = options_.clock() - begin;
    if (!ran) return fail(ran.error());
    const double wall = one.seconds ? one.seconds() : outside;
    if (waited) *waited = std::max(0.0, one.run_delay() - delay);
    if (one.rest) one.rest();
    return wall;
  }

  /// Warms up, measures the empty round trip, finds how many calls fill a sample.
  expected<void> prepare(int side) {
    auto first = wall_of(side, 1);
    if (!first) return fail(first.error());
    const double affordable = *first > 0 ? warmup_seconds / *first : options_.warmups;
    const auto more = static_cast<int64_t>(std::min<double>(options_.warmups - 1, affordable));
    if (more > 0)
      if (auto warm = wall_of(side, more); !warm) return fail(warm.error());

    std::vector<double> trips;
    for (int i = 0; i < round_trips; ++i) {
      auto trip = wall_of(side, 0);
      if (!trip) return fail(trip.error());
      trips.push_back(*trip);
    }
    round_trip_[side] = std::clamp(quantile(trips, 0.5), 0.0, max_round_trip);

    int64_t calls = 1;
    for (;;) {
      auto wall = wall_of(side, calls);
      if (!wall) return fail(wall.error());
      const double net = *wall - round_trip_[side];
      if (net >= options_.sample_seconds || calls >= max_calls) {
        if (net < longest_lead * static_cast<double>(calls) && !sides_[side].flushed) {
          const int64_t cycle = sides_[side].cycle;
          calls = in_whole(calls, cycle);
          lead_[side] = in_whole((calls + lead_share - 1) / lead_share, cycle);
        }
        break;
      }
      // Aim a tenth above the goal, but trust a short sample for a factor of 16 only.
      const double growth = std::min(16.0, 1.1 * options_.sample_seconds / std::max(net, 1e-9));
      calls = std::min(max_calls, std::max(calls + 1, static_cast<int64_t>(std::ceil(static_cast<double>(calls) * growth))));
    }
    calls_[side] = calls;
    return {};
  }

  expected<sample> take(int side) {
    sample s;
    // The other side has pushed its memory out of the caches: the first calls are slower, and how much of a sample they are depends on its length.
    if (lead_[side] > 0)
      if (auto led = wall_of(side, lead_[side]); !led) return fail(led.error());
    auto wall = wall_of(side, calls_[side], &s.waited);
    if (!wall) return fail(wall.error());
    s.wall = *wall;
    const double protocol = round_trip_[side] > subtract_above * s.wall ? round_trip_[side] : 0;
    s.seconds = std::max(s.wall - protocol, 1e-3 * s.wall) / static_cast<double>(calls_[side]);
    return s;
  }

  expected<pair_of_samples> take_pair(bool candidate_first) {
    pair_of_samples p;
    const double stolen = options_.steal();
    for (int side : {candidate_first ? candidate_ : baseline_, candidate_first ? baseline_ : candidate_}) {
      auto s = take(side);
      if (!s) return fail(s.error());
      (side == candidate_ ? p.candidate : p.baseline) = *s;
    }
    p.stolen = std::max(0.0, options_.steal() - stolen);
    p.many_threads = options_.threads > 1 && sides_[baseline_].reference;
    return p;
  }

  /// Adds pairs until `wanted` are accepted and the calls suffice, or `seconds` have passed.
  expected<void> collect(int wanted, double seconds) {
    const double begin = options_.clock();
    for (;;) {
      const int quiet = accepted();
      const double now = options_.clock();
      if (quiet >= wanted && (enough_calls() || precise())) return {};
      const bool few = static_cast<int>(pairs_.size()) < defaults::min_accepted_blocks;
      const bool single = pairs_.size() == 1 && now - start_ <= longest_pair;
      if (now - begin > seconds && !single && !(few && now - start_ < overtime * options_.max_seconds)) return {};
      auto p = take_pair(pairs_.size() % 2 == 0);
      if (!p) return fail(p.error());
      pairs_.push_back(*p);
    }
  }

  int accepted() const {
    return static_cast<int>(std::count_if(pairs_.begin(), pairs_.end(), [](const auto& p) { return p.quiet(); }));
  }
  bool enough_calls() const {
    return accepted() * std::min(calls_[candidate_], calls_[baseline_]) >= options_.repetitions;
  }
  bool precise() const {
    const auto r = ratio(true, 0.5, 400);
    return r.value > 0 && (r.high - r.low) / 2 < precise_enough * r.value;
  }

  std::vector<double> seconds_of(int side, bool quiet_only) const {
    std::vector<double> values;
    for (const auto& p : pairs_)
      if (!quiet_only || p.quiet()) values.push_back((side == candidate_ ? p.candidate : p.baseline).seconds);
    return values;
  }
  interval ratio(bool quiet_only, double share, int resamples) const {
    return bootstrap_quantile_ratio(seconds_of(baseline_, quiet_only), seconds_of(candidate_, quiet_only), share,
                                    options_.seed, resamples);
  }

  expected<timing> conclude() const {
    timing result;
    result.baseline = sides_[baseline_].name;
    result.threads = options_.threads;
    result.blocks_accepted = accepted();
    result.blocks_tried = static_cast<int>(pairs_.size());
    const int dropped = result.blocks_tried - result.blocks_accepted;
    const bool enough = result.blocks_accepted >= std::min(defaults::min_accepted_blocks, options_.blocks);
    const bool quiet = enough || dropped == 0;
    if (result.blocks_tried < 2)
      return fail(ec::measurement_failed,
                  "only " + std::to_string(result.blocks_tried) + " pair(s) of samples could be taken in " +
                      format_seconds(options_.clock() - start_),
                  "raise the time limit, or choose smaller shapes");
    // Under load the fast samples are the truthful ones: other work only ever adds time.
    const double share = quiet ? 0.5 : 0.25;
    auto candidate = seconds_of(candidate_, quiet), baseline = seconds_of(baseline_, quiet);
    result.candidate_seconds = quantile(candidate, share);
    result.baseline_seconds = quantile(baseline, share);
    result.speedup = ratio(quiet, share, defaults::bootstrap_resamples);
    result.calls = static_cast<int64_t>(candidate.size()) * calls_[candidate_];
    if (!quiet) {
      result.contended = true;
      result.speedup.low *= 1 - contended_margin;
      result.speedup.high *= 1 + contended_margin;
      result.note = "other work ran on these CPUs in " + std::to_string(dropped) + " of " +
                    std::to_string(result.blocks_tried) + " pairs of samples: lower quartiles instead of medians, interval widened by 7%";
    } else if (!enough) {
      result.note = "only " + std::to_string(result.blocks_tried) + " pairs of samples: one call takes " + format_seconds(result.baseline_seconds);
    } else if (dropped > 0) {
      result.note = std::to_string(dropped) + " of " + std::to_string(result.blocks_tried) +
                    " pairs of samples were dropped because other work ran on these CPUs";
    }
    const double others = options_.others();
    if (others > (options_.most_others > 0 ? options_.most_others : most_others(options_.threads))) {
      result.contended = true;
      result.note += (result.note.empty() ? "" : "; ") + of_others(others);
    }
    if (!(result.candidate_seconds > 0) || !(result.baseline_seconds > 0) || !std::isfinite(result.speedup.value))
      return fail(ec::measurement_failed, "the clock did not advance during the samples of " + sides_[candidate_].name);
    return result;
  }

  timed_side sides_[2];
  timing_options options_;
  double round_trip_[2] = {0, 0};
  int64_t calls_[2] = {1, 1}, lead_[2] = {0, 0};
  std::vector<pair_of_samples> pairs_;
  double start_ = 0;
};

} // namespace

expected<timing> compare_times(timed_side candidate_side, timed_side baseline_side, const timing_options& options) {
  if (options.blocks < 1 || options.sample_seconds <= 0)
    return fail(ec::invalid_argument, "timing needs at least one block and a positive sample length");
  return session(std::move(candidate_side), std::move(baseline_side), options).measure();
}

} // namespace pragma
