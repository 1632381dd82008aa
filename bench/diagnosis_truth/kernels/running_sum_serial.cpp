// task: running_sum
// good: running_sum_good
// cause: dependency_chain
// or: not_vectorized
// flags: -O3 -march=native
#include "common.hpp"

#include <numeric>

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int r = 0; r < 512; ++r) std::partial_sum(x + r * 2048, x + (r + 1) * 2048, y + r * 2048);
}
