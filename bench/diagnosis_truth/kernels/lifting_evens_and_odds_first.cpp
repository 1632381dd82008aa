// task: lifting
// good: lifting_good
// cause: too_many_passes
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

constexpr int half = 384, columns = 1040;

static inline v16 at(const float* p) { return *reinterpret_cast<const v16*>(p); }

/// The textbook's three stages: split into even and odd rows, predict the odd ones, update the even ones.
extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *a = in(args, 1), *b = in(args, 2);
  float *smooth = out(args), *detail = smooth + half * columns;
  for (int i = 0; i < half; ++i) {
    std::memcpy(smooth + i * columns, x + 2 * i * columns, columns * 4);
    std::memcpy(detail + i * columns, x + (2 * i + 1) * columns, columns * 4);
  }
  for (int i = 0; i < half; ++i) {
    const float *even = smooth + i * columns, *after = i + 1 < half ? even + columns : even;
    float* d = detail + i * columns;
#pragma GCC unroll 5
    for (int c = 0; c < columns; c += 16) *reinterpret_cast<v16*>(d + c) = at(d + c) - at(a + c) * (at(even + c) + at(after + c));
  }
  for (int i = 0; i < half; ++i) {
    const float *d = detail + i * columns, *before = i ? d - columns : d;
    float* s = smooth + i * columns;
#pragma GCC unroll 5
    for (int c = 0; c < columns; c += 16) *reinterpret_cast<v16*>(s + c) = at(s + c) + at(b + c) * (at(before + c) + at(d + c));
  }
}
