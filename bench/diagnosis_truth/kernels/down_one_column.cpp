// task: running_sum_down
// good: down_good
// cause: strided_access
// or: not_vectorized, memory_latency_bound
// flags: -O2 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int column = 0; column < 960; ++column) {
    float sum = 0;
    for (int at = column; at < 1024 * 960; at += 960) y[at] = sum += x[at];
  }
}
