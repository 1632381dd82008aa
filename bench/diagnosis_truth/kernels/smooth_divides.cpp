// task: smoothing
// good: smooth_good
// cause: divider_bound
// flags: -O3 -march=native -mprefer-vector-width=512
#include "common.hpp"

constexpr int width = 1024;
alignas(4096) static float memory[3 * width];

/// Means of three; what lies beyond an end is as the end.
static inline void step(float* __restrict to, float* __restrict from) {
  from[-1] = from[0];
  from[width] = from[width - 1];
  for (int c = 0; c < width; ++c) to[c] = (from[c - 1] + from[c] + from[c + 1]) / 3;
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  float *here = memory + 16, *there = memory + width + 512 + 16;
  for (int r = 0; r < 256; ++r, x += width, y += width) {
    std::memcpy(here, x, width * sizeof(float));
    for (int twice = 0; twice < 4; ++twice) {
      step(there, here);
      step(here, there);
    }
    std::memcpy(y, here, width * sizeof(float));
  }
}
