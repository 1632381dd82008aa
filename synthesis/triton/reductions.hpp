// Reductions in Triton: identities, accumulators of a loop, partial results of chunks, and what joins them. A reduction has
// one to three components (a value; a value and its place; mean, squares and count; maximum and sum of exponentials).
// Used by triton_region.cpp.
#pragma once

#include "synthesis/triton/values.hpp"

namespace pragma::synthesis {

enum class reduction_kind {
  plain,       ///< sum, prod, max, min
  place,       ///< argmax, argmin: the value and its position
  moments,     ///< a sum and the squared distances from its mean, found together
  exponentials ///< a maximum and the sum of exponentials of the distances from it, found together
};

struct triton_reduction {
  reduction_kind kind = reduction_kind::plain;
  int e = -1;       ///< the reduction; of pairs the first: the sum, the maximum
  int second = -1;  ///< of pairs: the squares, the sum of exponentials
  std::string name; ///< "sum7"

  struct component {
    std::string suffix; ///< "", "_place"
    pragma::dtype dtype = pragma::dtype::float32;
    std::string identity;
  };
  std::vector<component> components;
};

/// What a reduction or a scan begins with, as a literal.
std::string triton_identity(operation op, dtype type);

/// In which pass over the reduced axes each value is known; pairs count as one where `pairs` are wanted.
struct triton_plan {
  int passes = 0;
  std::vector<int> ready;                                ///< by expression: the pass after which it is known
  std::map<int, std::vector<triton_reduction>> reduces;  ///< by pass
  std::map<int, std::vector<int>> stores;                ///< by pass: of elements
  std::vector<int> row_stores;                           ///< of one value per row
};

triton_plan plan_triton(const region& r, bool pairs);

/// What one reduction writes into a kernel. `shape`: of its tiles, "[LANES, STEPS]"; `axis`: the one that is reduced in them.
class reduction_writer {
public:
  reduction_writer(triton_values& v, const region& r, std::string shape, int axis) : v_(v), r_(r), shape_(std::move(shape)), axis_(axis) {}

  /// Accumulators NAME_lanes before a loop.
  void begin(const triton_reduction& x);
  /// One step of the loop; `valid`: mask of the elements that count, or empty.
  void update(const triton_reduction& x, const std::string& valid);
  /// NAME, of one value per row, from accumulators; the results are bound.
  void finish(const triton_reduction& x);
  /// The same for a tile that holds the whole row.
  void whole(const triton_reduction& x, const std::string& valid);
  /// Binds accumulators that need no joining (windows: every lane has its own).
  void finish_lanes(const triton_reduction& x);
  /// Rows' components to and from memory: NAME_partials + index.
  void store_partials(const triton_reduction& x, const std::string& index, const std::string& mask);
  void load_partials(const triton_reduction& x, const std::string& index, const std::string& mask);

private:
  std::string element(const triton_reduction& x, const std::string& valid);
  void join(const triton_reduction& x, const std::string& from);
  void bind_results(const triton_reduction& x);

  triton_values& v_;
  const region& r_;
  std::string shape_;
  int axis_;
};

} // namespace pragma::synthesis
