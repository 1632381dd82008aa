// task: lms
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int signals = 64, samples = 1024, taps = 16, together = 4;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *wanted = in(args, 1);
  float* left = out(args);
  for (int s = 0; s < signals; s += together) {
    __m512 w[together] = {};
    for (int t = 0; t < samples; ++t)
      for (int k = 0; k < together; ++k) {
        const __m512 raw = _mm512_loadu_ps(x + (s + k) * (samples + taps - 1) + t);
        const __m512 v = _mm512_max_ps(_mm512_min_ps(raw, _mm512_set1_ps(3)), _mm512_set1_ps(-3));
        const float e = wanted[(s + k) * samples + t] - _mm512_reduce_add_ps(w[k] * v);
        w[k] += _mm512_set1_ps(0.01f * e) * v;
        left[(s + k) * samples + t] = e;
      }
  }
}
