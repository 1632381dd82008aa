// task: group_norm
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

constexpr int pixels = 1024, channels = 8, size = channels * pixels;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *weight = in(args, 1), *bias = in(args, 2);
  float* y = out(args);
  for (int g = 0; g < 64; ++g, x += size, y += size) {
    v8 sums[4] = {}, squares[4] = {};
    for (int i = 0; i < size; i += 32)
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const v8 v = *reinterpret_cast<const v8*>(x + i + 8 * k);
        sums[k] += v;
        squares[k] += v * v;
      }
    const v8 s = (sums[0] + sums[1]) + (sums[2] + sums[3]), q = (squares[0] + squares[1]) + (squares[2] + squares[3]);
    float sum = 0, square = 0;
    for (int l = 0; l < 8; ++l) sum += s[l], square += q[l];
    const float mean = sum / size, scale = 1 / std::sqrt(square / size - mean * mean + 1e-5f);
    for (int c = 0; c < channels; ++c) {
      const float w = weight[g % 8 * channels + c] * scale, b = bias[g % 8 * channels + c] - mean * w;
#pragma GCC ivdep
      for (int i = 0; i < pixels; ++i) y[c * pixels + i] = x[c * pixels + i] * w + b;
    }
  }
}
