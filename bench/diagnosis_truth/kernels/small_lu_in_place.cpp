// task: small_lu
// good: small_lu_good
// cause: store_forwarding
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int matrices = 1024, n = 16;

/// The factors are made where they are to be: first the multiplier takes its place, then the rest of its row follows.
static inline void factor(const float* a, const float* shift, float* lu) {
  for (int i = 0; i < n; ++i) {
    _mm512_storeu_ps(lu + n * i, _mm512_loadu_ps(a + n * i));
    lu[n * i + i] += 8 + shift[i];
  }
  for (int k = 0; k < n; ++k) {
    const float r = 1 / lu[n * k + k];
    const __m512 u = _mm512_maskz_loadu_ps(0xfffe << k & 0xffff, lu + n * k);
    for (int i = k + 1; i < n; ++i) {
      float* row = lu + n * i;
      row[k] *= r;
      _mm512_storeu_ps(row, _mm512_fnmadd_ps(_mm512_set1_ps(row[k]), u, _mm512_loadu_ps(row)));
    }
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  for (int m = 0; m < matrices; ++m) factor(in(args, 0) + m * n * n, in(args, 1), out(args) + m * n * n);
}
