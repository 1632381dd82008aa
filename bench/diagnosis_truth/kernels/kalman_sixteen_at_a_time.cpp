// task: kalman
// good: kalman_good
// cause: dependency_chain
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

constexpr int filters = 256, times = 2048;

static inline v16 within(v16 x, float least, float most) {
  x = x < least ? v16{} + least : x;
  return x > most ? v16{} + most : x;
}

/// Filters side by side, in N vectors.
template <int N>
static void run(const float* z, const float* q_of, const float* r_of, float* y) {
  v16 m[N] = {}, p[N], q[N], r[N];
  for (int k = 0; k < N; ++k) {
    p[k] = v16{} + 1;
    q[k] = within(*reinterpret_cast<const v16*>(q_of + 16 * k), 0.001f, 10);
    r[k] = within(*reinterpret_cast<const v16*>(r_of + 16 * k), 0.01f, 10);
  }
  for (int t = 0; t < times; ++t, z += filters, y += filters)
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k) {
      const v16 before = p[k] + q[k];
      const v16 gain = before / (before + r[k]);
      m[k] += gain * (*reinterpret_cast<const v16*>(z + 16 * k) - m[k]);
      p[k] = gain * r[k];
      *reinterpret_cast<v16*>(y + 16 * k) = m[k];
    }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  for (int f = 0; f < filters; f += 16) run<1>(in(args, 0) + f, in(args, 1) + f, in(args, 2) + f, out(args) + f);
}
