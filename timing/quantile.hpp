// Quantiles of small samples, for timing.
#pragma once

#include "diagnosis/profile.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pragma {

/// The `share` quantile with linear interpolation between neighbours; reorders `values`; 0 of nothing.
inline double quantile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const double place = share * static_cast<double>(values.size() - 1);
  const auto at = static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), values.begin() + at, values.end());
  const double low = values[static_cast<size_t>(at)];
  const double rest = place - static_cast<double>(at);
  if (rest <= 0 || static_cast<size_t>(at) + 1 >= values.size()) return low;
  return low + rest * (*std::min_element(values.begin() + at + 1, values.end()) - low);
}
inline double median_of(std::vector<double> values) { return quantile(values, 0.5); }

/// bootstrap_ratio() for another quantile than the median (the lower quartile, where other work disturbs the machine).
interval bootstrap_quantile_ratio(const std::vector<double>& baseline, const std::vector<double>& candidate, double share,
                                  uint64_t seed, int resamples);

} // namespace pragma
