// task: product
// good: product_good
// cause: not_vectorized
// or: port_pressure
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

typedef float v4 __attribute__((vector_size(16), aligned(4)));

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict a = in(args, 0);
  const float* __restrict b = in(args, 1);
  float* __restrict c = out(args);
  constexpr int n = 384;
  for (int j = 0; j < n; j += 8)
    for (int i = 0; i < n; i += 12) {
      v4 acc[12][2] = {};
      for (int k = 0; k < n; ++k) {
        const v4 b0 = *reinterpret_cast<const v4*>(b + k * n + j), b1 = *reinterpret_cast<const v4*>(b + k * n + j + 4);
#pragma GCC unroll 12
        for (int r = 0; r < 12; ++r) {
          acc[r][0] += a[(i + r) * n + k] * b0;
          acc[r][1] += a[(i + r) * n + k] * b1;
        }
      }
#pragma GCC unroll 12
      for (int r = 0; r < 12; ++r) {
        *reinterpret_cast<v4*>(c + (i + r) * n + j) = acc[r][0];
        *reinterpret_cast<v4*>(c + (i + r) * n + j + 4) = acc[r][1];
      }
    }
}
