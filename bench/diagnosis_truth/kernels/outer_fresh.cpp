// task: outer_products
// good: outer_good
// cause: redundant_work
// or: too_many_passes
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

#include <immintrin.h>
#include <memory>

extern "C" void pragma_kernel(const pragma_args* args) {
  constexpr int batch = 384 * 512;
  const float *u = in(args, 0), *v = in(args, 1);
  const std::unique_ptr<float[]> products(new float[48 * batch]); // pages that no call has touched
  float* to = products.get();
  for (int b = 0; b < 48; ++b, v += 512)
    for (int i = 0; i < 384; ++i)
      for (int j = 0; j < 512; j += 16, to += 16) *reinterpret_cast<v16*>(to) = u[b * 384 + i] * *reinterpret_cast<const v16*>(v + j);
  float* y = out(args);
  for (int k = 0; k < 48 * batch; k += 16) _mm512_stream_ps(y + k, _mm512_loadu_ps(products.get() + k));
  _mm_sfence();
}
