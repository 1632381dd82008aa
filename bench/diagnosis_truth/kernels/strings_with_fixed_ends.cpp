// task: strings
// good: strings_good
// cause: split_access
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

constexpr int strings = 16, points = 992, steps = 256, margin = 1;
constexpr int row = points + 2 * margin;  // with the fixed point at each end

alignas(64) static float rows[3][row];

static inline v16 at(const float* p) { return *reinterpret_cast<const v16*>(p); }

/// A step of time; what comes next takes the place of what was before.
static inline void step(const float* u, float* before, const float* c) {
#pragma GCC unroll 2
  for (int i = 0; i < points; i += 16) {
    const v16 here = at(u + i), twice = here + here;
    *reinterpret_cast<v16*>(before + i) = twice - at(before + i) + at(c + i) * (at(u + i - 1) - twice + at(u + i + 1));
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  float *u = rows[0] + margin, *before = rows[1] + margin, *c = rows[2] + margin;
  std::memcpy(c, in(args, 2), points * 4);
  for (int s = 0; s < strings; ++s) {
    const float *at_first = in(args, 0) + s * points, *speed = in(args, 1) + s * points;
    for (int i = 0; i < points; ++i) {
      u[i] = at_first[i];
      before[i] = at_first[i] - 0.05f * speed[i];
    }
    for (int t = 0; t < steps; t += 2) {
      step(u, before, c);
      step(before, u, c);
    }
    std::memcpy(out(args) + s * points, u, points * 4);
  }
}
