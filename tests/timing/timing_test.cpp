// Timing on an injected clock: what alternates, what is dropped, what is said when the machine is busy; the bootstrap.
#include "execution/contention.hpp"
#include "timing/quantile.hpp"
#include "timing/repeated_look.hpp"
#include "kernels/seeds.hpp"
#include "timing/timing.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <cmath>
#include <csignal>
#include <map>
#include <numeric>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace pragma;

namespace {

/// A machine whose clock only our lambdas move.
struct machine {
  double now = 0, candidate_delay = 0, baseline_delay = 0, stolen = 0, others_share = 0;
  seed_source random{7};
  std::string order;

  double noise(double spread) { return 1 + spread * (static_cast<double>(random.next()) * 0x1p-53 - 0.5); }
  timed_side side(std::string name, double call, double spread, double& delay, double protocol = 8e-6) {
    timed_side s;
    s.name = name;
    s.run = [this, tag = name[0], call, spread, protocol](int64_t calls) -> expected<void> {
      order += calls == 0 ? '.' : tag;
      now += protocol + call * static_cast<double>(calls) * noise(spread);
      return {};
    };
    s.run_delay = [&delay] { return delay; };
    return s;
  }
  timing_options options() {
    timing_options o;
    o.clock = [this] { return now; };
    o.steal = [this] { return stolen; };
    o.others = [this] { return others_share; };
    return o;
  }
};

} // namespace

TEST_CASE("calls that refill the caches after the other side belong to nobody's figure; where each call is flushed none are led") {
  machine m;
  const auto chilled = [&m](std::string name, double call, double refill, double& delay) {
    auto s = m.side(name, call, 0.02, delay);
    s.run = [&m, run = s.run, name, refill](int64_t calls) -> expected<void> {
      if (calls > 0 && !m.order.empty() && m.order.find_last_not_of('.') != std::string::npos && m.order[m.order.find_last_not_of('.')] != name[0]) m.now += refill;
      return run(calls);
    };
    return s;
  };
  const auto candidate = chilled("candidate", 100e-6, 1e-3, m.candidate_delay), baseline = chilled("baseline", 250e-6, 0, m.baseline_delay);
  const auto time = compare_times(candidate, baseline, m.options());
  REQUIRE(time);
  CHECK(time->speedup.value == Approx(2.5).epsilon(0.02)); // 1.7 with the calls that refill

  auto flushed = candidate, other = baseline;
  flushed.flushed = other.flushed = true;
  m.order.clear();
  REQUIRE(compare_times(flushed, other, m.options()));
  CHECK(m.order.find("ccc", 60) == std::string::npos); // its samples follow one another in pairs at most
}

TEST_CASE("the ratio of two quiet sides is found, in about the time that was planned") {
  machine m;
  auto time = compare_times(m.side("candidate", 20e-6, 0.02, m.candidate_delay), m.side("baseline", 50e-6, 0.02, m.baseline_delay), m.options());
  REQUIRE(time);
  CHECK(time->speedup.value == Approx(2.5).epsilon(0.02));
  CHECK(time->speedup.low <= 2.5);
  CHECK(time->speedup.high >= 2.5);
  CHECK(time->speedup.high - time->speedup.low < 0.1);
  CHECK(time->candidate_seconds == Approx(20e-6).epsilon(0.02));
  CHECK(time->baseline == "baseline");
  CHECK(time->blocks_accepted == defaults::blocks);
  CHECK(time->blocks_tried == defaults::blocks);
  CHECK(time->calls >= defaults::repetitions);
  CHECK_FALSE(time->contended);
  CHECK(time->note.empty());
  CHECK(m.now < 0.3);
}

TEST_CASE("who measures beside others says so, although nobody took his CPU") {
  for (const double share : {0.0, 0.2, 0.3, 0.9}) {
    machine m;
    m.others_share = share;
    auto time = compare_times(m.side("candidate", 20e-6, 0.02, m.candidate_delay), m.side("baseline", 50e-6, 0.02, m.baseline_delay), m.options());
    REQUIRE(time);
    CHECK(time->contended == (share > most_others(1)));
    CHECK((time->note.find("other processes used") != std::string::npos) == time->contended);
    auto of_a_device = m.options();
    of_a_device.most_others = 0.75;
    time = compare_times(m.side("candidate", 20e-6, 0.02, m.candidate_delay), m.side("baseline", 50e-6, 0.02, m.baseline_delay), of_a_device);
    REQUIRE(time);
    CHECK(time->contended == (share > 0.75));
  }
  for (const auto& [processors, most] : std::map<unsigned, double>{{2, 0.25}, {4, 0.25}, {8, 0.5}, {16, 0.75}, {64, 0.75}}) CHECK(most_others_of_a_device(processors) == most);
  // A second task would keep one of two processors busy, while no more than a quarter of them may be.
  for (const auto& [processors, tasks] : std::map<unsigned, int>{{1, 1}, {2, 1}, {3, 1}, {4, 2}, {16, 5}}) CHECK(tasks_at_once(most_others(1), processors, 1) == tasks);
  CHECK(tasks_at_once(0.03, 32, 32) == 1);
  CHECK(tasks_at_once(most_others_of_a_device(16), 16, 1) == 13);
}

TEST_CASE("what others used is a share of the time that passed, whatever a device's clock shows of it") {
  const pid_t other = fork();
  REQUIRE(other >= 0);
  while (other == 0) {}
  machine m;
  auto options = m.options();
  options.others = {};
  options.most_others = 2; // two machines are never used, however coarse the ticks of a full one are
  const auto slow = [&m](std::string name, double call, double& delay) {
    auto s = m.side(std::move(name), call, 0.02, delay);
    s.run = [run = s.run](int64_t calls) -> expected<void> {
      if (calls > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return run(calls);
    };
    return s;
  };
  const auto time = compare_times(slow("candidate", 2e-6, m.candidate_delay), slow("baseline", 5e-6, m.baseline_delay), options);
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  REQUIRE(time);
  CHECK_FALSE(time->contended);
}

TEST_CASE("the sides alternate as A B B A") {
  machine m;
  REQUIRE(compare_times(m.side("a", 3e-3, 0, m.candidate_delay), m.side("b", 3e-3, 0, m.baseline_delay), m.options()));
  const auto pairs = m.order.substr(m.order.rfind('.') + 2); // after the empty round trips and the calibration of b
  CHECK(pairs.substr(0, 24) == "aabbbbaaaabbbbaaaabbbbaa"); // each sample after calls that nobody times
}

TEST_CASE("a side against itself is worth 1") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    machine m;
    m.random = seed_source(seed);
    auto time = compare_times(m.side("candidate", 100e-6, 0.1, m.candidate_delay), m.side("baseline", 100e-6, 0.1, m.baseline_delay), m.options());
    REQUIRE(time);
    CHECK(time->speedup.value == Approx(1).epsilon(0.04));
    CHECK(time->speedup.low < 1.02);
    CHECK(time->speedup.high > 0.98);
  }
}

TEST_CASE("the cost of the protocol is not charged to fast kernels") {
  machine m;
  auto time = compare_times(m.side("candidate", 2.2e-3, 0.001, m.candidate_delay, 40e-6), m.side("baseline", 2.2e-3, 0.001, m.baseline_delay, 1e-6), m.options());
  REQUIRE(time);
  CHECK(time->speedup.value == Approx(1).epsilon(0.003));
}

TEST_CASE("answering empty requests slowly buys a candidate next to nothing") {
  machine m;
  auto slow_when_empty = m.side("candidate", 100e-6, 0.001, m.candidate_delay);
  slow_when_empty.run = [&m](int64_t calls) -> expected<void> {
    m.now += calls == 0 ? 1e-3 : 100e-6 * static_cast<double>(calls);
    return {};
  };
  auto time = compare_times(slow_when_empty, m.side("baseline", 100e-6, 0.001, m.baseline_delay), m.options());
  REQUIRE(time);
  CHECK(time->speedup.value < 1.05);
}

TEST_CASE("pairs in which a side waited for a CPU are dropped") {
  machine m;
  int samples = 0;
  auto disturbed = m.side("candidate", 20e-6, 0.01, m.candidate_delay);
  disturbed.run = [&m, &samples, inner = disturbed.run](int64_t calls) {
    auto ran = inner(calls);
    if (calls > 50 && ++samples % 3 == 0) { // another program had the CPU for 6 ms
      m.now += 6e-3;
      m.candidate_delay += 6e-3;
    }
    return ran;
  };
  auto time = compare_times(disturbed, m.side("baseline", 50e-6, 0.01, m.baseline_delay), m.options());
  REQUIRE(time);
  CHECK(time->speedup.value == Approx(2.5).epsilon(0.02));
  CHECK(time->blocks_accepted == defaults::blocks);
  CHECK(time->blocks_tried > defaults::blocks + 8);
  CHECK_FALSE(time->contended);
  CHECK(time->note.find("dropped") != std::string::npos);
}

TEST_CASE("pairs in which the hypervisor took the CPU are dropped") {
  machine m;
  int samples = 0;
  auto stolen = m.side("baseline", 50e-6, 0.01, m.baseline_delay);
  stolen.run = [&m, &samples, inner = stolen.run](int64_t calls) {
    auto ran = inner(calls);
    if (calls > 20 && ++samples % 4 == 0) {
      m.now += 10e-3;
      m.stolen += 10e-3;
    }
    return ran;
  };
  auto time = compare_times(m.side("candidate", 20e-6, 0.01, m.candidate_delay), stolen, m.options());
  REQUIRE(time);
  CHECK(time->speedup.value == Approx(2.5).epsilon(0.02));
  CHECK(time->blocks_tried > time->blocks_accepted);
}

TEST_CASE("on a machine that is never quiet the figure is marked, and its interval is wider") {
  machine m;
  const auto busy = [&m](timed_side side, double& delay) {
    side.run = [&m, &delay, inner = side.run](int64_t calls) {
      auto ran = inner(calls);
      const double wait = 3e-3 * static_cast<double>(m.random.next()) * 0x1p-53 * (calls > 0);
      m.now += wait;
      delay += wait + 1e-3 * (calls > 0);
      return ran;
    };
    return side;
  };
  auto options = m.options();
  options.max_seconds = 1;
  auto time = compare_times(busy(m.side("candidate", 20e-6, 0.01, m.candidate_delay), m.candidate_delay),
                            busy(m.side("baseline", 50e-6, 0.01, m.baseline_delay), m.baseline_delay), options);
  REQUIRE(time);
  CHECK(time->contended);
  CHECK(time->blocks_accepted < defaults::min_accepted_blocks);
  CHECK(time->note.find("other work ran") != std::string::npos);
  CHECK(time->speedup.low <= time->speedup.value * 0.95);
  CHECK(time->speedup.high >= time->speedup.value * 1.05);
  CHECK(m.now < 3);
}

TEST_CASE("slow tasks: a sample is one call, and the time limit holds") {
  machine m;
  auto options = m.options();
  options.max_seconds = 10;
  auto time = compare_times(m.side("candidate", 0.5, 0.01, m.candidate_delay), m.side("baseline", 1, 0.01, m.baseline_delay), options);
  REQUIRE(time);
  CHECK(time->speedup.value == Approx(2).epsilon(0.02));
  CHECK(time->calls == time->blocks_accepted);
  CHECK(time->blocks_accepted >= defaults::min_accepted_blocks);
  CHECK(m.now < 20);
}

TEST_CASE("what runs too long for two pairs is no measurement") {
  machine m;
  auto options = m.options();
  options.max_seconds = 1;
  auto time = compare_times(m.side("candidate", 100, 0.01, m.candidate_delay), m.side("baseline", 100, 0.01, m.baseline_delay), options);
  REQUIRE_FALSE(time);
  CHECK(time.error().code == ec::measurement_failed);
  time = compare_times(m.side("candidate", 10, 0.01, m.candidate_delay), m.side("baseline", 30, 0.01, m.baseline_delay), options); // two whatever the limit
  REQUIRE(time);
  CHECK(time->blocks_tried == 2);
  CHECK(time->note.find("only 2 pairs") != std::string::npos);
  options.max_seconds = 40; // three pairs fit: a figure, and a word about it
  time = compare_times(m.side("candidate", 25, 0.01, m.candidate_delay), m.side("baseline", 50, 0.01, m.baseline_delay), options);
  REQUIRE(time);
  CHECK(time->speedup.value == Approx(2).epsilon(0.02));
  CHECK_FALSE(time->contended);
  CHECK(time->note.find("only 3 pairs") != std::string::npos);
}

TEST_CASE("a failing side and Ctrl-C are handed on") {
  machine m;
  auto broken = m.side("candidate", 1e-3, 0, m.candidate_delay);
  broken.run = [](int64_t) -> expected<void> { return fail(ec::candidate_failed, "it crashed"); };
  auto time = compare_times(broken, m.side("baseline", 1e-3, 0, m.baseline_delay), m.options());
  REQUIRE_FALSE(time);
  CHECK(time.error().code == ec::candidate_failed);
  std::atomic<bool> cancel = true;
  auto options = m.options();
  options.cancel = &cancel;
  time = compare_times(m.side("candidate", 1e-3, 0, m.candidate_delay), m.side("baseline", 1e-3, 0, m.baseline_delay), options);
  REQUIRE_FALSE(time);
  CHECK(time.error().code == ec::interrupted);
}

TEST_CASE("bootstrap: deterministic, around the value, narrow where the samples agree") {
  seed_source random(3);
  std::vector<double> baseline, candidate;
  for (int i = 0; i < 25; ++i) {
    baseline.push_back(3 + 0.2 * static_cast<double>(random.next()) * 0x1p-53);
    candidate.push_back(1 + 0.2 * static_cast<double>(random.next()) * 0x1p-53);
  }
  const auto a = bootstrap_ratio(baseline, candidate, 1), b = bootstrap_ratio(baseline, candidate, 1);
  CHECK(a.low == b.low);
  CHECK(a.high == b.high);
  CHECK(a.low <= a.value);
  CHECK(a.value <= a.high);
  CHECK(a.low < 3.1 / 1.1);
  CHECK(a.high > 3.1 / 1.1);
  const auto same = bootstrap_ratio(std::vector<double>(25, 4.0), std::vector<double>(25, 2.0), 1);
  CHECK(same.value == 2);
  CHECK(same.low == 2);
  CHECK(same.high == 2);
  CHECK(bootstrap_ratio({}, {}, 1).value == 0);
}

TEST_CASE("bootstrap: the interval covers the true ratio about as often as it says") {
  seed_source random(11);
  const auto sample = [&] { // skewed to the right, as times are
    const double u = (static_cast<double>(random.next()) + 1) * 0x1p-53;
    return 1 - 0.1 * std::log(u);
  };
  const double truth = 1.5;
  int covered = 0;
  constexpr int trials = 200;
  for (int t = 0; t < trials; ++t) {
    std::vector<double> baseline, candidate;
    for (int i = 0; i < 25; ++i) {
      baseline.push_back(truth * sample());
      candidate.push_back(sample());
    }
    const auto r = bootstrap_ratio(baseline, candidate, 1, 400);
    covered += r.low <= truth && truth <= r.high;
  }
  CHECK(covered >= trials * 88 / 100);
}

TEST_CASE("bootstrap keeps pairs together: what slows both sides alike cancels") {
  seed_source random(5);
  std::vector<double> baseline, candidate, shuffled;
  for (int i = 0; i < 25; ++i) {
    const double load = 1 + static_cast<double>(random.next()) * 0x1p-53;
    baseline.push_back(2 * load);
    candidate.push_back(load);
  }
  shuffled = candidate;
  std::rotate(shuffled.begin(), shuffled.begin() + 7, shuffled.end());
  const auto paired = bootstrap_ratio(baseline, candidate, 1), apart = bootstrap_ratio(baseline, shuffled, 1);
  CHECK(paired.high - paired.low < 0.05);
  CHECK(apart.high - apart.low > 0.2);
}

TEST_CASE("quantiles interpolate") {
  std::vector<double> v{4, 1, 3, 2};
  CHECK(quantile(v, 0.5) == 2.5);
  CHECK(quantile(v, 0) == 1);
  CHECK(quantile(v, 1) == 4);
  CHECK(median_of({5}) == 5);
  CHECK(median_of({}) == 0);
}

TEST_CASE("steal is read for the CPUs that we measure on") {
  const std::string text = "cpu  10 0 10 100 0 0 0 700 0 0\ncpu0 5 0 5 50 0 0 0 300 0 0\ncpu1 5 0 5 50 0 0 0 400 0 0\nintr 1 2 3\n";
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  CHECK(steal_seconds_in(text, {}) == Approx(700 * tick));
  CHECK(steal_seconds_in(text, {1}) == Approx(400 * tick));
  CHECK(steal_seconds_in(text, {0, 1}) == Approx(700 * tick));
  CHECK(steal_seconds_in("", {0}) == 0);
  CHECK(machine_busy_seconds_in("cpu  10 20 30 1000 500 4 5 6 7 8\ncpu0 5 10 15 500 250 2 2 3 3 4\ncpu1 5 10 15 500 250 2 3 3 4 4\nintr 1\n") == Approx(75 * tick / 2));
  CHECK(machine_busy_seconds_in("") == 0);
  others_watch watch;
  const double seconds = watch.seconds();
  CHECK(seconds >= 0);
  CHECK(watch.seconds() >= seconds);
  CHECK(steal_seconds({0}) >= 0);
}

TEST_CASE("our own process's CPU time and run delay can be read") {
  const double before = cpu_seconds(getpid());
  volatile double sum = 0;
  for (int i = 0; i < 2'000'000; ++i) sum = sum + 1;
  CHECK(cpu_seconds(getpid()) > before);
  CHECK(run_delay_seconds(getpid()) >= 0);
  CHECK(cpu_seconds(-1) < 0);
  CHECK(run_delay_seconds(0) == 0);
}

TEST_CASE("measuring CPUs: as many as threads, of those that we may use") {
  const auto one = measuring_cpus(1), many = measuring_cpus(1 << 20);
  REQUIRE(one.size() == 1);
  REQUIRE_FALSE(many.empty());
  CHECK(one.back() == many.back());
}

namespace {

/// Rounds of two things that take one_seconds and other_seconds where nothing else is in the way; other work makes them longer.
repeated_look look_under_load(uint64_t seed, double one_seconds, double other_seconds, double load) {
  seed_source chance(seed);
  const auto longer = [&](double seconds) { return seconds - seconds * load * std::log(1 - static_cast<double>(chance.next()) * 0x1p-64); };
  repeated_look look(1.5, 0);
  for (int round = 1; round <= repeated_look::most_rounds; ++round) {
    look.add(longer(one_seconds), longer(other_seconds));
    if (round >= 5 && look.innocent()) break;
  }
  return look;
}

} // namespace

TEST_CASE("a look accuses nobody who takes as long, however busy the machine is, and finds who takes twice as long") {
  int shown = 0, undecided = 0, missed = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    for (const double load : {0.1, 1.0, 3.0}) {
      const auto honest = look_under_load(seed, 1, 1, load);
      shown += honest.shown();
      undecided += honest.undecided();
      missed += look_under_load(seed, 4, 1, load).innocent();
    }
    CHECK(look_under_load(seed, 2, 1, 0.1).shown());
  }
  CHECK(shown == 0);
  CHECK(undecided < 60);
  CHECK(missed < 60);
}

TEST_CASE("one round in which nobody was in the way is enough not to be accused, and none to be believed") {
  repeated_look busy(1.5, 0), always(1.5, 0), burst(1.5, 0), nothing(1.5, 0);
  for (int round = 0; round < repeated_look::most_rounds; ++round) {
    CHECK_FALSE(always.shown());
    busy.add(round == 7 ? 1.1 : 2, 1);
    always.add(2, 1);
    burst.add(4, round < 4 ? 4 : 1); // the known inputs took as long in a moment in which the machine was busy
    if (round >= 4) CHECK_FALSE(burst.innocent());
  }
  CHECK(always.shown());
  CHECK_FALSE(busy.shown());
  CHECK(busy.innocent());
  CHECK(burst.undecided());
  CHECK(nothing.innocent());
}

TEST_CASE("the other side stands still while one is timed, and waking it is nobody's time") {
  machine m;
  int awake = 0, most = 0, calls = 0;
  const auto resting = [&](timed_side side) {
    side.wake = [&]() -> expected<void> {
      m.now += 1e-3;
      most = std::max(most, ++awake);
      return {};
    };
    side.rest = [&] { --awake; };
    side.run = [&, inner = side.run](int64_t n) {
      ++calls;
      return inner(n);
    };
    return side;
  };
  auto time = compare_times(resting(m.side("candidate", 20e-6, 0.01, m.candidate_delay)), resting(m.side("baseline", 50e-6, 0.01, m.baseline_delay)), m.options());
  REQUIRE(time);
  CHECK(most == 1);
  CHECK(awake == 0);
  CHECK(calls > 50);
  CHECK(time->speedup.value == Approx(2.5).epsilon(0.02));
}

TEST_CASE("an interval over a factor of three, taken under contention, is no figure") {
  timing t;
  t.speedup = {0.9, 0.29, 2.07};
  CHECK_FALSE(says_nothing(t)); // on a quiet machine it is the kernel that varies
  t.contended = true;
  CHECK(says_nothing(t));
  t.speedup = {1.03, 0.91, 1.04};
  CHECK_FALSE(says_nothing(t));
}
