// What comparisons in several processes say together, and when another one is worth its time: numbers only, no process is started.
#include "timing/comparison.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace pragma;

namespace {

timing one(double value, double low, double high, bool contended = false) {
  timing t;
  t.speedup = {value, low, high};
  t.contended = contended;
  return t;
}
timing one(double value) { return one(value, value - 0.05, value + 0.05); }

struct course {
  interval answer;
  size_t processes = 0;
};

/// As compare_candidates() goes: a process more while it is worth it. The true ratio; how processes spread.
course compared(double ratio, double spread, comparison_goal asked, std::mt19937& random) {
  std::lognormal_distribution<double> value(std::log(ratio), spread);
  std::vector<timing> comparisons;
  while (worth_another(comparisons, asked)) comparisons.push_back(one(value(random)));
  return {together(comparisons).speedup, comparisons.size()};
}

} // namespace

TEST_CASE("several comparisons together: few must all agree, many may have strays") {
  const auto few = together({one(1.05, 1.03, 1.07), one(1.06, 1.04, 1.08), one(0.99, 0.95, 1.02)});
  CHECK(few.speedup.low == 0.95);
  CHECK(few.speedup.high == 1.08);
  CHECK(few.speedup.value == 1.05);
  std::vector<timing> many(9, one(1.06, 1.03, 1.08));
  many[0] = one(0.99, 0.95, 1.02); // where its memory came to lie
  CHECK(together(many).speedup.low == 1.06); // each is a process of its own: their values tell how they spread
  many[1] = many[0];
  CHECK(together(many).speedup.low == 0.99);
  const auto clean = together({one(1.05, 1.03, 1.07), one(1.06, 1.04, 1.08), one(1.05, 1.04, 1.06), one(2, 0.5, 3, true)});
  CHECK_FALSE(clean.contended);
  CHECK(clean.speedup.high == 1.08);
  CHECK(together({one(1, 0.9, 1.1), one(1, 0.9, 1.1, true)}).contended);
}

TEST_CASE("no further process is started once none could change the answer") {
  const auto faster = comparison_goal::is_first_faster, ratio = comparison_goal::how_much;
  CHECK(worth_another({one(1.1), one(1.2)}, faster)); // three at least
  CHECK_FALSE(worth_another({one(1.1), one(1.2), one(1.1)}, faster));
  CHECK(worth_another({one(1.1), one(0.99), one(1.02)}, faster));
  CHECK(worth_another({one(1.1), one(0.99), one(1.02), one(0.98)}, faster)); // two strays of twelve
  const std::vector<timing> not_faster{one(1.1), one(0.99), one(1.02), one(0.98), one(0.97)};
  CHECK_FALSE(worth_another(not_faster, faster));
  CHECK(worth_another(not_faster, ratio)); // it may be the slower one
  CHECK_FALSE(worth_another({one(1.1), one(0.9), one(1.1), one(0.9), one(1.1), one(0.9)}, ratio));
  CHECK_FALSE(worth_another(std::vector<timing>(6, one(1.0)), ratio)); // alike
  auto busy = not_faster;
  for (auto& t : busy) t = one(t.speedup.value, t.speedup.value - 0.2, t.speedup.value + 0.2, true);
  CHECK_FALSE(worth_another(busy, ratio)); // wide enough to hold 1 from either side: no thirteenth decides
}

TEST_CASE("a figure as called is settled when its processes agree, when two say clearly that it is slower, or where one is enough to say that it is faster") {
  using enum comparison_goal;
  const auto slow = one(0.5, 0.4, 0.6), fast = one(1.5, 1.3, 1.7), near = one(1.05, 1.02, 1.08), nearly_slow = one(0.93, 0.9, 0.97), busy = one(0.5, 0.4, 0.6, true);
  for (const auto asked : {how_much, is_first_faster}) {
    CHECK_FALSE(enough_called({}, asked));
    CHECK_FALSE(enough_called({slow}, asked)); // may be a stray
    CHECK(enough_called({slow, one(0.7, 0.6, 0.8)}, asked));
    CHECK_FALSE(enough_called({slow, busy}, asked));
    CHECK_FALSE(enough_called({slow, nearly_slow}, asked));
    CHECK_FALSE(enough_called({slow, slow, one(2, 1.9, 2.1)}, asked));
    CHECK_FALSE(enough_called({near}, asked));
    CHECK(enough_called({near, near, near}, asked));
  }
  CHECK(enough_called({fast}, is_first_faster));
  CHECK(enough_called({busy, fast}, is_first_faster));
  CHECK_FALSE(enough_called({fast, slow}, is_first_faster));
  CHECK_FALSE(enough_called({one(1.5, 1.3, 1.7, true)}, is_first_faster));
  CHECK_FALSE(enough_called({fast}, how_much)); // a figure that is wanted for itself
}

TEST_CASE("of a device's processes that disagree each side is as quick as in its quickest process; others' work and agreement change nothing") {
  const auto called = [](double torch, double drop_in, bool contended = false) {
    auto t = one(torch / drop_in, 0.99 * torch / drop_in, 1.01 * torch / drop_in, contended);
    t.baseline_seconds = torch;
    t.candidate_seconds = drop_in;
    return t;
  };
  // Torch's launches hid behind the flush in the second and the fifth only, the drop-in's in all of them.
  const std::vector<timing> hosts{called(29e-6, 9.6e-6), called(10.5e-6, 8.4e-6), called(24e-6, 8.5e-6), called(21e-6, 8.9e-6), called(11e-6, 8.6e-6)};
  const auto quick = together_on_a_device(hosts);
  CHECK(quick.speedup.value == Approx(1.25));
  CHECK(quick.baseline_seconds == 10.5e-6);
  CHECK(quick.candidate_seconds == 8.4e-6);
  CHECK(quick.speedup.low <= quick.speedup.value);
  CHECK(quick.speedup.high >= 3.0);
  CHECK(together(hosts).speedup.value > 2);
  const std::vector<timing> alike{called(10e-6, 5e-6), called(10.2e-6, 5e-6), called(9e-6, 4.4e-6)};
  CHECK(together_on_a_device(alike).speedup.value == together(alike).speedup.value);
  auto beside = hosts;
  beside.push_back(called(1e-6, 8e-6, true)); // others worked, and three are clean: it does not count
  CHECK(together_on_a_device(beside).speedup.value == Approx(1.25));
}

TEST_CASE("a headline's processes agree when the middle three do; others' work and strays are no agreement") {
  CHECK_FALSE(agree({one(2.0), one(2.0)}));
  CHECK(agree({one(2.0), one(2.09), one(2.04)}));
  CHECK_FALSE(agree({one(2.0), one(2.2), one(2.1)}));
  CHECK_FALSE(agree({one(2.0), one(2.2), one(2.1), one(2.12)}));          // of four the first three
  CHECK(agree({one(0.9), one(2.1), one(2.2), one(2.12), one(7.0)}));      // two strays of five
  std::vector<timing> busy(3, one(2.0));
  busy[1].contended = true;
  CHECK_FALSE(agree(busy));
}

TEST_CASE("who is faster is found, who is not is seldom called so, and both in few processes") {
  std::mt19937 random(7);
  constexpr int turns = 1000;
  const auto share = [&](double ratio, double& processes) {
    int found = 0;
    processes = 0;
    for (int i = 0; i < turns; ++i) {
      const auto c = compared(ratio, 0.05, comparison_goal::is_first_faster, random);
      found += c.answer.low > 1;
      processes += static_cast<double>(c.processes) / turns;
    }
    return static_cast<double>(found) / turns;
  };
  double processes = 0;
  CHECK(share(1.0, processes) < 0.07); // several looks at one answer: more than 2.5%
  CHECK(processes < 7);
  CHECK(share(0.95, processes) < 0.002);
  CHECK(processes < 4);
  CHECK(share(1.05, processes) > 0.65);
  CHECK(share(1.1, processes) > 0.98);
  CHECK(processes < 6);
}
