// task: resonators
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int rows = 1024, n = 512;

/// One comb: its last 32 values stay in two registers. The delay is from 17 to 31.
template <int delay>
struct comb {
  __m512i before = _mm512_setzero_si512(), last = _mm512_setzero_si512();

  [[gnu::always_inline]] __m512 next(__m512 x, float gain) {
    const __m512 y = _mm512_fmadd_ps(_mm512_set1_ps(gain), _mm512_castsi512_ps(_mm512_alignr_epi32(last, before, 32 - delay)), x);
    before = last;
    last = _mm512_castps_si512(y);
    return y;
  }
};

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int r = 0; r < rows; ++r, x += n, y += n) {
    comb<17> a;
    comb<18> b;
    comb<20> c;
    comb<21> d;
    comb<23> e;
    comb<25> f;
    comb<28> g;
    comb<31> h;
    for (int t = 0; t < n; t += 16) {
      const __m512 v = _mm512_load_ps(x + t);
      const __m512 ab = a.next(v, 0.84f) + b.next(v, 0.82f), cd = c.next(v, 0.80f) + d.next(v, 0.78f);
      const __m512 ef = e.next(v, 0.76f) + f.next(v, 0.74f), gh = g.next(v, 0.72f) + h.next(v, 0.70f);
      _mm512_store_ps(y + t, ((ab + cd) + (ef + gh)) * 0.125f);
    }
  }
}
