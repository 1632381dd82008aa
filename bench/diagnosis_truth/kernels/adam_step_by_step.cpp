// task: adam
// good: adam_good
// cause: too_many_passes
// or: memory_bandwidth_bound
// written after the rules
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd -mprefer-vector-width=512
#include "common.hpp"

#include <algorithm>

constexpr int n = 1 << 20;

/// A value of every parameter, as an array library has them.
struct values {
  float of[n];
};

template <class F>
static void each(values& to, F f) {
#pragma omp simd
  for (int i = 0; i < n; ++i) to.of[i] = f(i);
}

extern "C" void pragma_kernel(const pragma_args* args) {
  alignas(64) static values mean, square, root, step;
  const float *p = in(args, 0), *g = in(args, 1), *m = in(args, 2), *v = in(args, 3);
  float* y = out(args);
  each(mean, [=](int i) { return 0.9f * m[i] + 0.1f * g[i]; });
  each(square, [=](int i) { return 0.999f * v[i] + 0.001f * g[i] * g[i]; });
  each(mean, [](int i) { return mean.of[i] * (1 / 0.271f); });
  each(square, [](int i) { return square.of[i] * (1 / 0.002997001f); });
  each(root, [](int i) { return __builtin_sqrtf(square.of[i]) + 1e-3f; });
  each(step, [](int i) { return 0.001f * mean.of[i] / root.of[i]; });
  std::transform(p, p + n, step.of, y, [](float a, float b) { return a - b - 0.00001f * a; });
}
