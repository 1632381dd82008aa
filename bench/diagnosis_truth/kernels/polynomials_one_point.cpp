// task: polynomials
// good: polynomials_good
// cause: dependency_chain
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"


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
  for (int r = 0; r < 256; ++r, c += degree)
    for (int p = 0; p < points; ++p) {
      const float at = z[r * points + p];
      const v16 step = v16{} + sixteenth_power(at);
      v16 sum = {};
      for (int k = degree - 16; k >= 0; k -= 16) sum = sum * step + *reinterpret_cast<const v16*>(c + k);
      y[r * points + p] = inner(sum, powers_of(at));
    }
}
