// task: diagonal_sums
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -mprefer-vector-width=512
#include "common.hpp"

#include <algorithm>

/// sums[k] += row[k], for n of them.
static inline void add(float* __restrict sums, const float* __restrict row, int n) {
  for (int k = 0; k < n; ++k) sums[k] += row[k];
}

extern "C" void pragma_kernel(const pragma_args* args) {
  constexpr int n = 3072;
  const float* x = in(args, 0);
  float* y = out(args);
  std::fill_n(y, n, 0.0f);
  for (int i = 0; i < n; ++i, x += n) { // what lies left of the diagonal belongs to the last sums
    add(y, x + i, n - i);
    add(y + n - i, x, i);
  }
}
