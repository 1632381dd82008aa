// task: adam
// unspoilt
// written after the rules
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd -mprefer-vector-width=512
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *p = in(args, 0), *g = in(args, 1), *m = in(args, 2), *v = in(args, 3);
  float* y = out(args);
#pragma omp simd
  for (int i = 0; i < 1 << 20; ++i) {
    const float mean = 0.9f * m[i] + 0.1f * g[i];
    const float square = 0.999f * v[i] + 0.001f * g[i] * g[i];
    const float step = mean * (0.001f / 0.271f) / (__builtin_sqrtf(square * (1 / 0.002997001f)) + 1e-3f);
    y[i] = p[i] - step - 0.00001f * p[i];
  }
}
