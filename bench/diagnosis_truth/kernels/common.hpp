// What the kernels share: the runner puts this text where a kernel includes it.
#include "pragma_kernel.h"
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

typedef float v16 __attribute__((vector_size(64), aligned(4)));
typedef float v8 __attribute__((vector_size(32), aligned(4)));

static inline const float* in(const pragma_args* a, int i) { return static_cast<const float*>(a->inputs[i].data); }
static inline float* out(const pragma_args* a) { return static_cast<float*>(a->outputs[0].data); }

/// exp() of a float by 2^n * polynomial, as a compiler can vectorise it; arguments are clamped to what float32 can hold.
static inline float fast_exp(float x) {
  x = x < -87.3f ? -87.3f : x > 88.7f ? 88.7f : x;
  const float n = __builtin_floorf(x * 1.44269504f + 0.5f);
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float scale;
  std::memcpy(&scale, &bits, 4);
  return p * scale;
}

/// The largest of n values, n a multiple of 64, in four vectors: compilers keep a plain loop's order where NaN matters.
static inline float largest_of(const float* x, int n) {
  v16 m[4];
  for (int k = 0; k < 4; ++k) m[k] = *reinterpret_cast<const v16*>(x + 16 * k);
  for (int c = 64; c < n; c += 64)
    for (int k = 0; k < 4; ++k) {
      const v16 v = *reinterpret_cast<const v16*>(x + c + 16 * k);
      m[k] = v > m[k] ? v : m[k];
    }
  float most = m[0][0];
  for (int k = 0; k < 4; ++k)
    for (int l = 0; l < 16; ++l) most = m[k][l] > most ? m[k][l] : most;
  return most;
}
