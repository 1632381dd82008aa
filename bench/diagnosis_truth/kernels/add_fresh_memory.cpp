// task: add_large
// good: add_streamed_good
// cause: redundant_work
// or: too_many_passes
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  const float* __restrict z = in(args, 1);
  float* __restrict y = out(args);
  std::vector<float> sum(4096 * 2048);
  for (int64_t i = 0; i < 4096 * 2048; ++i) sum[i] = x[i] + z[i];
  std::memcpy(y, sum.data(), sizeof(float) * 4096 * 2048);
}
