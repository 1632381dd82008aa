// task: rms_residual
// good: rms_residual_good
// cause: dependency_chain
// or: not_vectorized
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd
#include "common.hpp"

constexpr int rows = 512, width = 2048;

/// The factor that brings a row to a root mean square of 1.
static inline float factor_of(const float* x) {
  float sum = 0;
  for (int c = 0; c < width; ++c) sum += x[c] * x[c];
  return 1 / std::sqrt(sum / width + 1e-5f);
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *__restrict x = in(args, 0), *__restrict residual = in(args, 1), *__restrict weight = in(args, 2);
  float* __restrict y = out(args);
  for (int r = 0; r < rows; ++r) {
    const int at = r * width;
    const float factor = factor_of(x + at);
    for (int c = 0; c < width; ++c) y[at + c] = residual[at + c] + x[at + c] * factor * weight[c];
  }
}
