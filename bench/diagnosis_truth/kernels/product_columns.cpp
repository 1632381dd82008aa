// task: product
// good: product_good
// cause: strided_access
// or: not_vectorized
// flags: -O2 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict a = in(args, 0);
  const float* __restrict b = in(args, 1);
  float* __restrict c = out(args);
  constexpr int n = 384;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      float s = 0;
      for (int k = 0; k < n; ++k) s += a[i * n + k] * b[k * n + j];
      c[i * n + j] = s;
    }
}
