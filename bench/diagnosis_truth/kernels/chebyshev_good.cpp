// task: chebyshev
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int n = 65536, terms = 128, side_by_side = 8;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  const float* c = in(args, 1);
  float* y = out(args);
  const __m512 least = _mm512_set1_ps(-0.95f), most = _mm512_set1_ps(0.95f);
  for (int i = 0; i < n; i += 16 * side_by_side) {
    v16 twice[side_by_side], b1[side_by_side], b2[side_by_side];
#pragma GCC unroll 8
    for (int v = 0; v < side_by_side; ++v) {
      const v16 at = _mm512_min_ps(_mm512_max_ps(_mm512_load_ps(x + i + 16 * v), least), most);
      twice[v] = at + at;
      b1[v] = v16{} + c[terms - 1];
      b2[v] = v16{};
    }
    for (int k = terms - 2; k > 0; k -= 2) {
#pragma GCC unroll 8
      for (int v = 0; v < side_by_side; ++v) b2[v] = twice[v] * b1[v] + (c[k] - b2[v]);
#pragma GCC unroll 8
      for (int v = 0; v < side_by_side; ++v) b1[v] = twice[v] * b2[v] + (c[k - 1] - b1[v]);
    }
#pragma GCC unroll 8
    for (int v = 0; v < side_by_side; ++v) _mm512_store_ps(y + i + 16 * v, 0.5f * twice[v] * b1[v] + (c[0] - b2[v]));
  }
}
