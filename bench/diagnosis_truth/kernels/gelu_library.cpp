// task: gelu
// good: gelu_good
// cause: not_vectorized
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -mprefer-vector-width=512
#include "common.hpp"

#include <algorithm>

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  std::transform(x, x + 256 * 2048, out(args), [](float v) { return 0.5f * v * (1 + std::erf(v * 0.70710678f)); });
}
