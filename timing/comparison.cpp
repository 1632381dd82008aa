#include "timing/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace pragma {

namespace {

constexpr double alike = 0.02;              ///< an interval within this of 1 has decided, too: neither is better
constexpr double confidence = 0.95;
constexpr double agreement = 1.05;          ///< ratios within this factor say the same
constexpr double clearly = 1.1;             ///< times faster, at least, by the whole interval of one process: as far as processes lie apart (docs/measuring.md)
constexpr long slower_processes = 2;        ///< a stray is not taken for a verdict

/// The place k (from 1) such that the k-th smallest and the k-th largest of n values hold their median with the confidence; 0: too few values.
size_t order_of_interval(size_t n) {
  double below = 0, one = 1; // P(exactly i of n lie below the median) = one / 2^n
  size_t k = 0;
  const double all = std::pow(2.0, static_cast<double>(n));
  for (size_t i = 0; i < n / 2; ++i) {
    below += one / all;
    if (2 * below > 1 - confidence) break;
    k = i + 1;
    one = one * static_cast<double>(n - i) / static_cast<double>(i + 1);
  }
  return k;
}

/// Those that count.
std::vector<timing> kept(std::vector<timing> comparisons) {
  const auto clean = std::count_if(comparisons.begin(), comparisons.end(), [](const timing& t) { return !t.contended; });
  if (static_cast<size_t>(clean) >= fresh_processes) std::erase_if(comparisons, [](const timing& t) { return t.contended; });
  return comparisons;
}

/// What each of them says at least and at most, ascending.
struct bounds {
  std::vector<double> lows, highs;

  bounds(const std::vector<timing>& comparisons, bool by_value) {
    for (const auto& t : comparisons) {
      lows.push_back(by_value ? t.speedup.value : t.speedup.low);
      highs.push_back(by_value ? t.speedup.value : t.speedup.high);
    }
    std::sort(lows.begin(), lows.end());
    std::sort(highs.begin(), highs.end());
  }
};

bool any_contended(const std::vector<timing>& comparisons) {
  return std::any_of(comparisons.begin(), comparisons.end(), [](const timing& t) { return t.contended; });
}

} // namespace

timing together(std::vector<timing> comparisons) {
  comparisons = kept(std::move(comparisons));
  std::sort(comparisons.begin(), comparisons.end(), [](const timing& a, const timing& b) { return a.speedup.value < b.speedup.value; });
  auto result = comparisons[comparisons.size() / 2];
  result.blocks_accepted = result.blocks_tried = 0;
  result.calls = 0;
  result.contended = any_contended(comparisons);
  for (const auto& t : comparisons) {
    result.blocks_accepted += t.blocks_accepted;
    result.blocks_tried += t.blocks_tried;
    result.calls += t.calls;
  }
  const size_t n = comparisons.size(), order = order_of_interval(n), k = std::max<size_t>(1, order); // of few: all of them
  const bounds all(comparisons, order > 0 && !result.contended);
  result.speedup.low = std::min(all.lows[k - 1], result.speedup.value);
  result.speedup.high = std::max(all.highs[n - k], result.speedup.value);
  return result;
}

timing together_on_a_device(std::vector<timing> comparisons) {
  auto result = together(comparisons);
  if (agree(comparisons)) return result;
  comparisons = kept(std::move(comparisons));
  for (const auto& t : comparisons) {
    result.baseline_seconds = std::min(result.baseline_seconds, t.baseline_seconds);
    result.candidate_seconds = std::min(result.candidate_seconds, t.candidate_seconds);
  }
  if (!(result.candidate_seconds > 0)) return result;
  result.speedup.value = result.baseline_seconds / result.candidate_seconds;
  result.speedup.low = std::min(result.speedup.low, result.speedup.value);
  result.speedup.high = std::max(result.speedup.high, result.speedup.value);
  return result;
}

bool agree(const std::vector<timing>& comparisons) {
  std::vector<double> ratios;
  for (const auto& t : comparisons)
    if (!t.contended) ratios.push_back(t.speedup.value);
  if (ratios.size() < fresh_processes) return false;
  std::sort(ratios.begin(), ratios.end());
  const auto first = (ratios.size() - fresh_processes) / 2;
  return ratios[first + fresh_processes - 1] <= agreement * ratios[first];
}

bool enough_called(const std::vector<timing>& called, comparison_goal asked) {
  if (agree(called)) return true;
  long slower = 0, faster = 0, clean = 0;
  for (const auto& t : called) {
    if (t.contended) continue;
    ++clean;
    if (t.speedup.high * clearly < 1) ++slower;
    if (t.speedup.low > clearly) ++faster;
  }
  return (slower == clean && slower >= slower_processes) || (asked == comparison_goal::is_first_faster && faster == clean && faster > 0);
}

void note_processes(timing& t, size_t count) {
  t.note += (t.note.empty() ? "" : "; ") + std::string("measured in ") + std::to_string(count) + (count == 1 ? " process" : " fresh processes");
}

bool decided(const interval& i) { return i.low > 1 || i.high < 1 || (i.low > 1 - alike && i.high < 1 + alike); }

bool worth_another(const std::vector<timing>& comparisons, comparison_goal asked) {
  if (comparisons.size() < fresh_processes) return true;
  if (comparisons.size() >= most_processes || decided(together(comparisons).speedup)) return false;
  const auto counted = kept(comparisons);
  const bounds all(counted, !any_contended(counted));
  const auto strays = static_cast<long>(order_of_interval(most_processes)) - 1; // what all processes together may have on the other side
  const auto reachable = [&](const std::vector<double>& of, const std::function<bool(double)>& against) { return std::count_if(of.begin(), of.end(), against) <= strays; };
  const bool faster = reachable(all.lows, [](double low) { return low <= 1; });
  if (asked == comparison_goal::is_first_faster) return faster;
  const bool slower = reachable(all.highs, [](double high) { return high >= 1; });
  const bool same = reachable(all.lows, [](double low) { return low <= 1 - alike; }) && reachable(all.highs, [](double high) { return high >= 1 + alike; });
  return faster || slower || same;
}

} // namespace pragma
