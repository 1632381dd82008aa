// task: nbody
// good: nbody_good
// cause: divider_bound
// written after the rules
// flags: -O3 -march=native -ffp-contract=fast
#include "common.hpp"

#include <immintrin.h>

constexpr int n = 1536;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *y = x + n, *z = y + n, *m = in(args, 1);
  float* a = out(args);
  for (int i = 0; i < n; i += 32) {
    const __m512 xi[2] = {_mm512_loadu_ps(x + i), _mm512_loadu_ps(x + i + 16)};
    const __m512 yi[2] = {_mm512_loadu_ps(y + i), _mm512_loadu_ps(y + i + 16)};
    const __m512 zi[2] = {_mm512_loadu_ps(z + i), _mm512_loadu_ps(z + i + 16)};
    __m512 ax[2] = {}, ay[2] = {}, az[2] = {};
    for (int j = 0; j < n; ++j) {
      const __m512 xj = _mm512_set1_ps(x[j]), yj = _mm512_set1_ps(y[j]), zj = _mm512_set1_ps(z[j]), mj = _mm512_set1_ps(m[j]);
      for (int k = 0; k < 2; ++k) {
        const __m512 dx = xj - xi[k], dy = yj - yi[k], dz = zj - zi[k];
        const __m512 r2 = dx * dx + (dy * dy + (dz * dz + _mm512_set1_ps(0.01f)));
        const __m512 pull = mj / (r2 * _mm512_sqrt_ps(r2));
        ax[k] += dx * pull;
        ay[k] += dy * pull;
        az[k] += dz * pull;
      }
    }
    for (int k = 0; k < 2; ++k) {
      _mm512_storeu_ps(a + i + 16 * k, ax[k]);
      _mm512_storeu_ps(a + n + i + 16 * k, ay[k]);
      _mm512_storeu_ps(a + 2 * n + i + 16 * k, az[k]);
    }
  }
}
