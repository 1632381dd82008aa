// task: rms_residual
// good: rms_residual_good
// cause: too_many_passes
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd
#include "common.hpp"

constexpr int rows = 512, width = 2048;

/// The factor that brings a row to a root mean square of 1.
static inline float factor_of(const float* x) {
  v16 s[8] = {};
  for (int c = 0; c < width; c += 128)
    for (int k = 0; k < 8; ++k) {
      const v16 v = *reinterpret_cast<const v16*>(x + c + 16 * k);
      s[k] += v * v;
    }
  const v16 all = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
  float sum = 0;
  for (int l = 0; l < 16; ++l) sum += all[l];
  return 1 / std::sqrt(sum / width + 1e-5f);
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *__restrict x = in(args, 0), *__restrict residual = in(args, 1), *__restrict weight = in(args, 2);
  float* __restrict y = out(args);
  for (int r = 0; r < rows; ++r) {
    const float factor = factor_of(x + r * width);
    for (int c = 0; c < width; ++c) y[r * width + c] = x[r * width + c] * factor;
  }
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < width; ++c) y[r * width + c] *= weight[c];
  for (int i = 0; i < rows * width; ++i) y[i] += residual[i];
}
