// task: layer_norm
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -mprefer-vector-width=512
#include "common.hpp"

template <class Term>
static float total(const float* row, Term term) {
  v16 part[4] = {};
  for (const float* end = row + 1024; row != end; row += 64)
    for (int k = 0; k < 4; ++k) part[k] += term(*reinterpret_cast<const v16*>(row + 16 * k));
  const v16 all = (part[0] + part[1]) + (part[2] + part[3]);
  float s = 0;
  for (int lane = 0; lane < 16; ++lane) s += all[lane];
  return s;
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* row = in(args, 0);
  float* __restrict to = out(args);
  for (int r = 0; r < 1024; ++r, row += 1024, to += 1024) {
    const float first = row[0], mean = first + total(row, [first](v16 v) { return v - first; }) / 1024;
    const float variance = total(row, [mean](v16 v) { return (v - mean) * (v - mean); }) / 1024;
    const float scale = 1 / std::sqrt(variance + 1e-5f);
    for (int c = 0; c < 1024; c += 16) *reinterpret_cast<v16*>(to + c) = (*reinterpret_cast<const v16*>(row + c) - mean) * scale;
  }
}
