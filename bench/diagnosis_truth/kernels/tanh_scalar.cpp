// task: tanh_rows
// good: tanh_good
// cause: not_vectorized
// flags: -O3 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int64_t i = 0; i < 128 * 4096; ++i) y[i] = std::tanh(x[i]);
}
