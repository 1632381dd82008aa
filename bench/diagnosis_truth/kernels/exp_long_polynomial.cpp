// task: exp_rows
// good: exp_good
// cause: port_pressure
// or: dependency_chain
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  const int64_t n = 128 * 4096;
  for (int64_t i = 0; i < n; ++i) {
    float v = x[i] * 0.5f;
    v = v < -87.3f ? -87.3f : v > 88.7f ? 88.7f : v;
    const float k = __builtin_floorf(v * 1.44269504f + 0.5f);
    const float r = (v - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1; // Taylor's series as far as 40 terms, where six would do
#pragma GCC unroll 40
    for (int t = 40; t > 0; --t) p = p * (r * (1.0f / t)) + 1.0f;
    const int32_t bits = (static_cast<int32_t>(k) + 127) << 23;
    float scale;
    std::memcpy(&scale, &bits, 4);
    y[i] = p * scale;
  }
}
