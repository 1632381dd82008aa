// task: chebyshev
// good: chebyshev_good
// cause: dependency_chain
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int n = 65536, terms = 128;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  const float* c = in(args, 1);
  float* y = out(args);
  const __m512 least = _mm512_set1_ps(-0.95f), most = _mm512_set1_ps(0.95f);
  for (int i = 0; i < n; i += 16) {
    const v16 at = _mm512_min_ps(_mm512_max_ps(_mm512_load_ps(x + i), least), most);
    const v16 twice = at + at;
    v16 b1 = v16{} + c[terms - 1], b2 = {};
    for (int k = terms - 2; k > 0; k -= 2) {
      b2 = twice * b1 + (c[k] - b2);
      b1 = twice * b2 + (c[k - 1] - b1);
    }
    _mm512_store_ps(y + i, at * b1 + (c[0] - b2));
  }
}
