// task: product
// good: product_good
// cause: dependency_chain
// flags: -O2 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict a = in(args, 0);
  const float* __restrict b = in(args, 1);
  float* __restrict c = out(args);
  constexpr int n = 384;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; j += 16) {
      v16 acc = {};
      for (int k = 0; k < n; ++k) acc += a[i * n + k] * *reinterpret_cast<const v16*>(b + k * n + j);
      *reinterpret_cast<v16*>(c + i * n + j) = acc;
    }
}
