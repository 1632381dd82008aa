// task: heat_steps
// unspoilt
// faster: heat_steps_wide
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp
// threads: 2
#include "common.hpp"

constexpr int grids = 96, side = 64, steps = 16, pitch = 80, margin = 16;

/// One step of one row of a grid with a margin around it.
static inline void step_row(const float* __restrict from, float* __restrict to) {
#pragma GCC ivdep
  for (int c = 0; c < side; ++c) to[c] = from[c] * 0.6f + 0.1f * ((from[c - pitch] + from[c + pitch]) + (from[c - 1] + from[c + 1]));
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
#pragma omp parallel num_threads(2)
  {
    alignas(64) float buffers[2][(side + 2) * pitch + margin] = {};
#pragma omp for schedule(static)
    for (int g = 0; g < grids; ++g) {
      for (int r = 0; r < side; ++r) std::memcpy(buffers[0] + (r + 1) * pitch + margin, x + (g * side + r) * side, side * 4);
      for (int s = 0; s < steps; ++s) {
        const float* from = buffers[s % 2] + pitch + margin;
        float* to = buffers[1 - s % 2] + pitch + margin;
        for (int r = 0; r < side; ++r) step_row(from + r * pitch, to + r * pitch);
      }
      for (int r = 0; r < side; ++r) std::memcpy(y + (g * side + r) * side, buffers[steps % 2] + (r + 1) * pitch + margin, side * 4);
    }
  }
}
