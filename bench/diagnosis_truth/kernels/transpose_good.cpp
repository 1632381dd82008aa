// task: transpose
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

#include <immintrin.h>

// In registers: pairs, quarters, halves of lines change places, as in any transposition by powers of two.
static inline void tile(const float* x, float* y) {
  __m512 r[16], t[16];
  for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_ps(x + i * 1024);
  for (int i = 0; i < 16; i += 2) t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]), t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44), r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44), r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88), t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88), t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 8; ++i) {
    const __m512 low = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88), high = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
    _mm512_storeu_ps(y + i * 1024, _mm512_add_ps(low, low));
    _mm512_storeu_ps(y + (i + 8) * 1024, _mm512_add_ps(high, high));
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < 1024; r += 16)
    for (int c = 0; c < 1024; c += 16) tile(x + r * 1024 + c, y + c * 1024 + r);
}
