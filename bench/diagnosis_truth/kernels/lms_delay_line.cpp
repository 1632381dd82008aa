// task: lms
// good: lms_good
// cause: store_forwarding
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <algorithm>
#include <immintrin.h>

constexpr int signals = 64, samples = 1024, taps = 16, together = 4;

/// The newest samples of a signal, each kept twice, so that they always lie in a row.
struct delay_line {
  float kept[2 * taps] = {};
  int at = 0;
  void push(float v) {
    kept[at] = kept[at + taps] = std::clamp(v, -3.0f, 3.0f);
    at = (at + 1) % taps;
  }
  const float* oldest() const { return kept + at; }
};

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *wanted = in(args, 1);
  float* left = out(args);
  for (int s = 0; s < signals; s += together) {
    __m512 w[together] = {};
    delay_line lines[together];
    for (int k = 0; k < together; ++k)
      for (int t = 0; t < taps - 1; ++t) lines[k].push(x[(s + k) * (samples + taps - 1) + t]);
    for (int t = 0; t < samples; ++t)
      for (int k = 0; k < together; ++k) {
        lines[k].push(x[(s + k) * (samples + taps - 1) + t + taps - 1]);
        const __m512 v = _mm512_loadu_ps(lines[k].oldest());
        const float e = wanted[(s + k) * samples + t] - _mm512_reduce_add_ps(w[k] * v);
        w[k] += _mm512_set1_ps(0.01f * e) * v;
        left[(s + k) * samples + t] = e;
      }
  }
}
