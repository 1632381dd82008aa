#include "cli/suite.hpp"

#include <cmath>
#include <set>

namespace pragma::cli {

suite_figures figures_of(const std::string& category, const std::vector<task_outcome>& tasks) {
  suite_figures f;
  f.category = category;
  double sum = 0, logs = 0;
  double logs_before = 0, logs_after = 0;
  int placed = 0;
  int faster = 0, faster_1_5 = 0, faster_2 = 0;
  for (const auto& t : tasks) {
    if (category != "all" && t.category != category) continue;
    ++f.n;
    if (t.status != "ok" || t.speedup.value <= 0) continue;
    ++f.success;
    // The ratio says what the kernel gains, not what Python costs: a mean must not be made by the latter.
    if (t.dispatch_bound) ++f.dispatch_bound;
    else {
      sum += t.speedup.value;
      logs += std::log(t.speedup.value);
    }
    if (t.roofline_share > 0 && t.baseline_seconds > 0 && t.candidate_seconds > 0) {
      ++placed;
      logs_after += std::log(t.roofline_share);
      logs_before += std::log(t.roofline_share * t.candidate_seconds / t.baseline_seconds);
    }
    faster += t.speedup.value > 1;
    faster_1_5 += t.speedup.value > 1.5;
    faster_2 += t.speedup.value > 2;
  }
  if (const int counted = f.success - f.dispatch_bound; counted > 0) {
    f.arithmetic_mean = sum / counted;
    f.geometric_mean = std::exp(logs / counted);
  }
  if (placed > 0) {
    f.limit_before = std::exp(logs_before / placed);
    f.limit_after = std::exp(logs_after / placed);
  }
  if (f.n > 0) {
    f.fast_1 = static_cast<double>(faster) / f.n;
    f.fast_1_5 = static_cast<double>(faster_1_5) / f.n;
    f.fast_2 = static_cast<double>(faster_2) / f.n;
  }
  return f;
}

std::vector<suite_figures> suite_table(const std::vector<task_outcome>& tasks) {
  std::vector<std::string> order = {"matmul", "activation", "normalization", "pooling/reduction", "conv", "others"};
  std::set<std::string> known(order.begin(), order.end());
  for (const auto& t : tasks)
    if (known.insert(t.category).second) order.push_back(t.category);
  std::vector<suite_figures> table;
  for (const auto& category : order)
    if (auto f = figures_of(category, tasks); f.n > 0) table.push_back(f);
  table.push_back(figures_of("all", tasks));
  return table;
}

} // namespace pragma::cli
