// task: gram
// good: gram_good
// cause: strided_access
// or: not_vectorized, memory_latency_bound
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <numeric>

namespace {
/// A column of a row-major matrix of 64 columns.
struct column {
  const float* of;
  float operator[](int row) const { return of[row * 64]; }
};

float product(column a, column b) {
  float s[4] = {};
  for (int r = 0; r < 4096; r += 4)
    for (int k = 0; k < 4; ++k) s[k] += a[r + k] * b[r + k];
  return std::accumulate(s, s + 4, 0.0f);
}
} // namespace

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* g = out(args);
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j <= i; ++j) g[i * 64 + j] = g[j * 64 + i] = product({x + i}, {x + j});
}
