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
