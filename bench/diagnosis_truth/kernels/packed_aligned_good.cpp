// task: product
// unspoilt
// faster: product_good
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

alignas(64) static float packed[384 * 32];

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict a = in(args, 0);
  const float* __restrict b = in(args, 1);
  float* __restrict c = out(args);
  constexpr int n = 384;
  for (int j = 0; j < n; j += 32) {
    for (int k = 0; k < n; ++k) std::memcpy(packed + k * 32, b + k * n + j, 32 * sizeof(float));
    for (int i = 0; i < n; i += 4) {
      v16 acc[4][2] = {};
      for (int k = 0; k < n; ++k) {
        const v16 b0 = *reinterpret_cast<const v16*>(packed + k * 32), b1 = *reinterpret_cast<const v16*>(packed + k * 32 + 16);
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) {
          acc[r][0] += a[(i + r) * n + k] * b0;
          acc[r][1] += a[(i + r) * n + k] * b1;
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        *reinterpret_cast<v16*>(c + (i + r) * n + j) = acc[r][0];
        *reinterpret_cast<v16*>(c + (i + r) * n + j + 16) = acc[r][1];
      }
    }
  }
}
