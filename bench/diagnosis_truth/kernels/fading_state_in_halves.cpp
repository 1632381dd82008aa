// task: fading
// good: fading_good
// cause: store_forwarding
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
    alignas(64) float state[together][channels] = {};
    for (int t = 0; t < steps; ++t)
      for (int k = 0; k < together; ++k) {
        const int at = ((s + k) * steps + t) * channels;
        const v16 next = keep * *reinterpret_cast<volatile v16*>(state[k]) + *reinterpret_cast<const v16*>(x + at);
        for (int half = 0; half < channels; half += 8) {
          v8 part;
          std::memcpy(&part, reinterpret_cast<const char*>(&next) + 4 * half, sizeof part);
          *reinterpret_cast<volatile v8*>(state[k] + half) = part;
        }
        *reinterpret_cast<v16*>(y + at) = next;
      }
  }
  _mm_setcsr(before);
}
