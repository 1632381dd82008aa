// task: spectrum
// good: spectrum_good
// cause: denormals
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -mprefer-vector-width=512
#include "common.hpp"

/// Of lengths: the width of a line, in metres.
constexpr float unit = 1e-20f;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  const float* __restrict lines = in(args, 1);
  float* __restrict y = out(args);
  constexpr float square = unit * unit;
  float at[6];
  for (int k = 0; k < 6; ++k) at[k] = lines[k] * unit;
  for (int i = 0; i < 256 * 1024; ++i) {
    const float here = x[i] * unit;
    float sum = 0;
#pragma GCC unroll 6
    for (int k = 0; k < 6; ++k) sum += square / ((here - at[k]) * (here - at[k]) + square);
    y[i] = sum;
  }
}
