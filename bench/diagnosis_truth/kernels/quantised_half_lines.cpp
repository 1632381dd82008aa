// task: quantised
// good: quantised_two_threads_good
// cause: false_sharing
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp
// threads: 2
#include "common.hpp"

constexpr int rows = 65536, columns = 16, half = columns / 2;

extern "C" void pragma_kernel(const pragma_args* args) {
#pragma omp parallel for num_threads(2) schedule(static)
  for (int first = 0; first < columns; first += half) {
    const float *x = in(args, 0) + first, *scale = in(args, 1) + first;
    float* y = out(args) + first;
    float inverse[half], s[half];
    for (int c = 0; c < half; ++c) s[c] = scale[c], inverse[c] = 1 / scale[c];
    for (int r = 0; r < rows; ++r)
#pragma omp simd
      for (int c = 0; c < half; ++c) {
        float q = __builtin_rintf(x[r * columns + c] * inverse[c]);
        q = q < -127 ? -127 : q;
        q = q > 127 ? 127 : q;
        y[r * columns + c] = q * s[c];
      }
  }
}
