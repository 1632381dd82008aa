// task: polynomials
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

#include <array>

/// 1, z, z^2, ... z^15
static v16 powers_of(float z) {
  const float z2 = z * z, z4 = z2 * z2, z8 = z4 * z4;
  v16 p;
  for (int lane = 0; lane < 16; ++lane) p[lane] = (lane & 1 ? z : 1) * (lane & 2 ? z2 : 1) * ((lane & 4 ? z4 : 1) * (lane & 8 ? z8 : 1));
  return p;
}

static float sixteenth_power(float z) {
  double p = z; // what is lost here is lost a hundred times
  for (int twice = 0; twice < 4; ++twice) p *= p;
  return static_cast<float>(p);
}

static float inner(v16 a, v16 b) {
  const v16 product = a * b;
  float s = 0;
  for (int lane = 0; lane < 16; ++lane) s += product[lane];
  return s;
}

extern "C" void pragma_kernel(const pragma_args* args) {
  constexpr int degree = 2048, points = 8;
  const float *c = in(args, 0), *z = in(args, 1);
  float* y = out(args);
  for (int r = 0; r < 256; ++r, c += degree, z += points, y += points) {
    std::array<v16, points> sum{}, step;
    for (int p = 0; p < points; ++p) step[p] = v16{} + sixteenth_power(z[p]);
    for (int k = degree - 16; k >= 0; k -= 16) {
      const v16 next = *reinterpret_cast<const v16*>(c + k);
#pragma GCC unroll 8
      for (int p = 0; p < points; ++p) sum[p] = sum[p] * step[p] + next; // eight sums that do not wait for each other
    }
    for (int p = 0; p < points; ++p) y[p] = inner(sum[p], powers_of(z[p]));
  }
}
