// task: reprojection
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int cameras = 512, points = 2048;

/// 1 / w by the estimate of 14 bits and a step of Newton.
static inline v16 reciprocal(v16 w) {
  const v16 r = _mm512_rcp14_ps(w);
  return r * (2.0f - w * r);
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* m = in(args, 0);
  const float* at = in(args, 1);
  const float* seen = in(args, 2);
  float* y = out(args);
  const __m512 near = _mm512_set1_ps(0.5f);
  for (int c = 0; c < cameras; ++c, m += 12) {
    v16 sum[2] = {};
    for (int i = 0; i < points; i += 32)
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const float* p = at + i + 16 * half;
        const float* s = seen + i + 16 * half;
        const v16 px = *reinterpret_cast<const v16*>(p), py = *reinterpret_cast<const v16*>(p + points), pz = *reinterpret_cast<const v16*>(p + 2 * points);
        const v16 u = m[0] * px + (m[1] * py + (m[2] * pz + m[3]));
        const v16 v = m[4] * px + (m[5] * py + (m[6] * pz + m[7]));
        const v16 w = _mm512_max_ps(m[8] * px + (m[9] * py + (m[10] * pz + m[11])), near);
        const v16 r = reciprocal(w);
        const v16 du = u * r - *reinterpret_cast<const v16*>(s);
        const v16 dv = v * r - *reinterpret_cast<const v16*>(s + points);
        sum[half] += du * du;
        sum[half] += dv * dv;
      }
    y[c] = _mm512_reduce_add_ps(sum[0] + sum[1]) * (1.0f / points);
  }
}
