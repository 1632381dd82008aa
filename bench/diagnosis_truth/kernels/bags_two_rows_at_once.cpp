// task: bags
// unspoilt
// written after the rules
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -mprefer-vector-width=512
#include "common.hpp"

struct embedding {
  int32_t columns = 64, count = 64;
  alignas(64) float rows[64][64];
};
alignas(64) static embedding kept;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* u = in(args, 0);
  float* y = out(args);
  std::memcpy(kept.rows, in(args, 1), sizeof kept.rows);
  for (int bag = 0; bag < 4096; ++bag, u += 32, y += 64) {
    int32_t picked[32];
    for (int i = 0; i < 32; ++i) {
      const float at = u[i] * 64;
      picked[i] = static_cast<int32_t>(at > 0 ? at < 63 ? at : 63 : 0);
    }
    v16 sums[2][4] = {};
    for (int i = 0; i < 32; i += 2)
#pragma GCC unroll 2
      for (int k = 0; k < 2; ++k)
#pragma GCC unroll 4
        for (int c = 0; c < 4; ++c) sums[k][c] += *reinterpret_cast<const v16*>(kept.rows[picked[i + k]] + 16 * c);
    for (int c = 0; c < 4; ++c) *reinterpret_cast<v16*>(y + 16 * c) = sums[0][c] + sums[1][c];
  }
}
