// task: bilinear
// good: bilinear_good
// cause: redundant_work
// or: too_many_passes
// flags: -O3 -march=native
#include "common.hpp"

#include <sys/mman.h>

constexpr int size = 128, wide = 2 * size;

/// A row at twice its width.
static inline void widen(const float* __restrict x, float* __restrict y) {
  y[0] = x[0];
  for (int c = 0; c < size - 1; ++c) {
    y[2 * c + 1] = 0.75f * x[c] + 0.25f * x[c + 1];
    y[2 * c + 2] = 0.25f * x[c] + 0.75f * x[c + 1];
  }
  y[wide - 1] = x[size - 1];
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int plane = 0; plane < 8; ++plane) {
    // The plane at twice its width, in pages of its own.
    constexpr size_t bytes = size * wide * sizeof(float);
    float* scratch =
        static_cast<float*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    widen(x, scratch);
    std::memcpy(y, scratch, wide * sizeof(float));
    for (int r = 1; r < size; ++r) {
      const float* above = scratch + (r - 1) * wide;
      float* below = scratch + r * wide;
      widen(x + r * size, below);
      float *one = y + (2 * r - 1) * wide, *two = one + wide;
#pragma GCC ivdep
      for (int c = 0; c < wide; ++c) {
        one[c] = 0.75f * above[c] + 0.25f * below[c];
        two[c] = 0.25f * above[c] + 0.75f * below[c];
      }
    }
    std::memcpy(y + (wide - 1) * wide, scratch + (size - 1) * wide, wide * sizeof(float));
    munmap(scratch, bytes);
    x += size * size;
    y += wide * wide;
  }
}
