// task: ray_weights
// good: ray_weights_good
// cause: too_many_passes
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int samples = 512, rays = 1024;

extern "C" void pragma_kernel(const pragma_args* args) {
  alignas(4096) static float through[samples][rays]; // what reaches each sample, of each ray
  const float* alpha = in(args, 0);
  float* y = out(args);
  const __m512 zero = _mm512_setzero_ps(), one = _mm512_set1_ps(1), nothing = _mm512_set1_ps(1e-30f);
  for (int j = 0; j < rays; j += 16) _mm512_store_ps(through[0] + j, one);
  for (int s = 0; s + 1 < samples; ++s)
#pragma GCC unroll 4
    for (int j = 0; j < rays; j += 16) {
      const __m512 a = _mm512_min_ps(_mm512_max_ps(_mm512_load_ps(alpha + s * rays + j), zero), one), t = _mm512_load_ps(through[s] + j);
      // A ray that is used up stays at 0.
      const __mmask16 lives = _mm512_cmp_ps_mask(t, nothing, _CMP_GE_OQ);
      _mm512_store_ps(through[s + 1] + j, _mm512_maskz_mul_ps(lives, t, _mm512_sub_ps(one, a)));
    }
  for (int s = 0; s < samples; ++s)
#pragma GCC unroll 4
    for (int j = 0; j < rays; j += 16) {
      const __m512 a = _mm512_min_ps(_mm512_max_ps(_mm512_load_ps(alpha + s * rays + j), zero), one);
      _mm512_store_ps(y + s * rays + j, _mm512_mul_ps(a, _mm512_load_ps(through[s] + j)));
    }
}
