// task: product
// good: product_good
// cause: port_pressure
// or: memory_bandwidth_bound
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -mprefer-vector-width=512
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict a = in(args, 0);
  const float* __restrict b = in(args, 1);
  float* __restrict c = out(args);
  constexpr int n = 384;
  std::memset(c, 0, sizeof(float) * n * n);
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j]; // a load and a store of c for each multiply-add
}
