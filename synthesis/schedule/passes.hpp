// In which pass over the reduced axes each value of a region is computed. Shared by the emitters and the schedule.
#pragma once

#include "synthesis/schedule/schedule.hpp"

#include <map>
#include <set>

namespace pragma::synthesis {

/// A variance found beside its mean: the reduction of squared distances, and the sum that its mean comes from.
struct merged_moments {
  int squares = -1, sum = -1, source = -1; ///< expressions; source is the value whose moments these are
};

/// A peak that is looked for in the same pass as the sums over exp(x - peak) and x - peak: they are taken relative to a level that follows it (decisions/0042).
struct followed_peak {
  int peak = -1, difference = -1; ///< expressions; -1: none is followed
};

struct pass_plan {
  int passes = 0;
  std::vector<int> ready;                 ///< per expression: the pass after which it is known (0: before the first)
  std::map<int, std::vector<int>> reduces; ///< pass -> reductions
  std::map<int, std::vector<int>> stores;  ///< pass -> stores of elements (indices into region::stores)
  std::vector<int> row_stores;             ///< stores of one value per row, at the end
  std::map<int, merged_moments> moments;   ///< by the expression of the sum
  followed_peak followed;                  ///< passes 1 and 2 are one

  bool merges() const { return !moments.empty() || followed.peak >= 0; }
};

/// `elements`: bits of the axes that passes run over (the reduced ones, or the last one of a pointwise region).
pass_plan plan_passes(const region& r, uint32_t elements, bool merge);

/// Spreads over element values: which of them several passes need and are worth keeping.
std::set<int> values_worth_keeping(const region& r, const pass_plan& plan, uint32_t element_mask);

} // namespace pragma::synthesis
