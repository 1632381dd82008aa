// task: fading
// unspoilt
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd
#include "common.hpp"
#include <immintrin.h>

constexpr int sequences = 96, steps = 1024, channels = 16, together = 4;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  const v16 keep = *reinterpret_cast<const v16*>(in(args, 1));
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  for (int s = 0; s < sequences; s += together) {
    v16 state[together] = {};
    for (int t = 0; t < steps; ++t)
      for (int k = 0; k < together; ++k) {
        const int at = ((s + k) * steps + t) * channels;
        state[k] = keep * state[k] + *reinterpret_cast<const v16*>(x + at);
        *reinterpret_cast<v16*>(y + at) = state[k];
      }
  }
  _mm_setcsr(before);
}
