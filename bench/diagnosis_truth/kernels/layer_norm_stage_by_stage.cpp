// task: layer_norm
// good: layer_norm_good
// cause: too_many_passes
// or: memory_bandwidth_bound
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

static float means[1024], scales[1024];

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < 1024; ++r) {
    const float first = x[r * 1024];
    means[r] = first + total(x + r * 1024, [first](v16 v) { return v - first; }) / 1024;
  }
  for (int r = 0; r < 1024; ++r) {
    const float mean = means[r];
    scales[r] = 1 / std::sqrt(total(x + r * 1024, [mean](v16 v) { return (v - mean) * (v - mean); }) / 1024 + 1e-5f);
  }
  for (int r = 0; r < 1024; ++r) { // centred first, then scaled: two more walks through all of it
    const float mean = means[r];
    for (int c = 0; c < 1024; c += 16) *reinterpret_cast<v16*>(y + r * 1024 + c) = *reinterpret_cast<const v16*>(x + r * 1024 + c) - mean;
  }
  for (int r = 0; r < 1024; ++r)
    for (int c = 0; c < 1024; c += 16) *reinterpret_cast<v16*>(y + r * 1024 + c) *= scales[r];
}
