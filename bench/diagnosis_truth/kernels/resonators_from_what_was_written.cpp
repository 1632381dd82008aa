// task: resonators
// good: resonators_good
// cause: store_forwarding
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int rows = 1024, n = 512;

/// One comb: its values of this row, behind 32 zeros. The delay is from 17 to 31.
template <int delay>
struct comb {
  alignas(64) float y[32 + n] = {};

  [[gnu::always_inline]] __m512 next(__m512 x, float gain, int t) {
    const __m512 now = _mm512_fmadd_ps(_mm512_set1_ps(gain), _mm512_loadu_ps(y + 32 + t - delay), x);
    _mm512_store_ps(y + 32 + t, now);
    return now;
  }
};

extern "C" void pragma_kernel(const pragma_args* args) {
  static comb<17> a;
  static comb<18> b;
  static comb<20> c;
  static comb<21> d;
  static comb<23> e;
  static comb<25> f;
  static comb<28> g;
  static comb<31> h;
  const float* x = in(args, 0);
  float* y = out(args);
  for (int r = 0; r < rows; ++r, x += n, y += n)
    for (int t = 0; t < n; t += 16) {
      const __m512 v = _mm512_load_ps(x + t);
      const __m512 ab = a.next(v, 0.84f, t) + b.next(v, 0.82f, t), cd = c.next(v, 0.80f, t) + d.next(v, 0.78f, t);
      const __m512 ef = e.next(v, 0.76f, t) + f.next(v, 0.74f, t), gh = g.next(v, 0.72f, t) + h.next(v, 0.70f, t);
      _mm512_store_ps(y + t, ((ab + cd) + (ef + gh)) * 0.125f);
    }
}
