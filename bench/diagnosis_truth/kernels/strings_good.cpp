// task: strings
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int strings = 16, points = 992, steps = 256;
constexpr int row = 1360;  // the three rows start at different places of a page

alignas(4096) static float rows[3][row];

/// A step of time; what comes next takes the place of what was before. Each vector of u is loaded once: its neighbours
/// are shifted in from the vectors beside it.
static inline void step(const float* u, float* before, const float* c) {
  __m512i last = _mm512_setzero_si512(), here = _mm512_loadu_si512(u);
#pragma GCC unroll 2
  for (int i = 0; i < points; i += 16) {
    const __m512i next = _mm512_loadu_si512(u + i + 16);
    const __m512 left = _mm512_castsi512_ps(_mm512_alignr_epi32(here, last, 15));
    const __m512 right = _mm512_castsi512_ps(_mm512_alignr_epi32(next, here, 1));
    const __m512 middle = _mm512_castsi512_ps(here), twice = _mm512_add_ps(middle, middle);
    const __m512 bent = _mm512_sub_ps(_mm512_add_ps(left, right), twice);
    const __m512 kept = _mm512_sub_ps(twice, _mm512_loadu_ps(before + i));
    _mm512_storeu_ps(before + i, _mm512_fmadd_ps(_mm512_loadu_ps(c + i), bent, kept));
    last = here;
    here = next;
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  float *u = rows[0], *before = rows[1], *c = rows[2];
  std::memcpy(c, in(args, 2), points * 4);
  for (int s = 0; s < strings; ++s) {
    const float *at_first = in(args, 0) + s * points, *speed = in(args, 1) + s * points;
    for (int i = 0; i < points; ++i) {
      u[i] = at_first[i];
      before[i] = at_first[i] - 0.05f * speed[i];
    }
    for (int t = 0; t < steps; t += 2) {
      step(u, before, c);
      step(before, u, c);
    }
    std::memcpy(out(args) + s * points, u, points * 4);
  }
}
