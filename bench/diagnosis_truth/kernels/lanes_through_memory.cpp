// task: relu_small
// good: relu_small_good
// cause: store_forwarding
// or: dependency_chain
// flags: -O2 -march=native -fno-tree-slp-vectorize
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  alignas(64) volatile float lanes[16];
  for (int i = 0; i < 256 * 512; i += 16) {
#pragma GCC unroll 16
    for (int k = 0; k < 16; ++k) lanes[k] = x[i + k]; // sixteen narrow stores, and a wide load of them at once
    const v16 v = *reinterpret_cast<const v16*>(const_cast<const float*>(lanes));
    __asm__ volatile("" ::: "memory");
    *reinterpret_cast<v16*>(y + i) = v > 0 ? v : v16{};
  }
}
