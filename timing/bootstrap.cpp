// The interval of a ratio of medians, by resampling pairs (percentile bootstrap: Efron and Tibshirani, An Introduction
// to the Bootstrap, 1993, chapter 13). Pairs stay together, so that what disturbed both sides cancels.
#include "timing/timing.hpp"
#include "timing/quantile.hpp"
#include "kernels/seeds.hpp"

#include <algorithm>

namespace pragma {

interval bootstrap_quantile_ratio(const std::vector<double>& baseline, const std::vector<double>& candidate, double share,
                                  uint64_t seed, int resamples) {
  const size_t n = std::min(baseline.size(), candidate.size());
  if (n == 0) return {};
  std::vector<double> top(baseline.begin(), baseline.begin() + static_cast<std::ptrdiff_t>(n));
  std::vector<double> bottom(candidate.begin(), candidate.begin() + static_cast<std::ptrdiff_t>(n));
  const auto ratio = [&] {
    const double b = quantile(bottom, share);
    return b > 0 ? quantile(top, share) / b : 0;
  };
  interval result;
  result.value = result.low = result.high = ratio();
  if (n < 2 || resamples < 1) return result;
  seed_source random(seed == 0 ? 1 : seed);
  std::vector<double> ratios(static_cast<size_t>(resamples));
  for (auto& r : ratios) {
    for (size_t i = 0; i < n; ++i) {
      const auto pick = static_cast<size_t>(((random.mix() >> 32) * n) >> 32);
      top[i] = baseline[pick];
      bottom[i] = candidate[pick];
    }
    r = ratio();
  }
  result.low = std::min(result.value, quantile(ratios, 0.025));
  result.high = std::max(result.value, quantile(ratios, 0.975));
  return result;
}

interval bootstrap_ratio(const std::vector<double>& baseline, const std::vector<double>& candidate, uint64_t seed,
                         int resamples) {
  return bootstrap_quantile_ratio(baseline, candidate, 0.5, seed, resamples);
}

} // namespace pragma
