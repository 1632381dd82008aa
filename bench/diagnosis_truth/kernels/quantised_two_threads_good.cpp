// task: quantised
// unspoilt
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp
// threads: 2
#include "common.hpp"

constexpr int rows = 65536, columns = 16;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *scale = in(args, 1);
  float* y = out(args);
#pragma omp parallel num_threads(2)
  {
    float inverse[columns], s[columns];
    for (int c = 0; c < columns; ++c) s[c] = scale[c], inverse[c] = 1 / scale[c];
#pragma omp for schedule(static)
    for (int r = 0; r < rows; ++r)
#pragma omp simd
      for (int c = 0; c < columns; ++c) {
        float q = __builtin_rintf(x[r * columns + c] * inverse[c]);
        q = q < -127 ? -127 : q;
        q = q > 127 ? 127 : q;
        y[r * columns + c] = q * s[c];
      }
  }
}
