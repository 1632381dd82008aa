// task: lifting
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

constexpr int half = 384, columns = 1040;

static inline v16 at(const float* p) { return *reinterpret_cast<const v16*>(p); }

/// One detail row and one smooth row; the details before it are still in the cache.
static void step(const float* even, const float* odd, const float* after, const float* a, const float* b, const float* before, float* smooth,
                 float* detail) {
#pragma GCC unroll 5
  for (int c = 0; c < columns; c += 16) {
    const v16 e = at(even + c);
    const v16 d = at(odd + c) - at(a + c) * (e + at(after + c));
    const v16 d0 = before ? at(before + c) : d;
    *reinterpret_cast<v16*>(detail + c) = d;
    *reinterpret_cast<v16*>(smooth + c) = e + at(b + c) * (d0 + d);
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *a = in(args, 1), *b = in(args, 2);
  float *smooth = out(args), *detail = smooth + half * columns;
  for (int i = 0; i < half; ++i) {
    const float* even = x + 2 * i * columns;
    step(even, even + columns, i + 1 < half ? even + 2 * columns : even, a, b, i ? detail + (i - 1) * columns : nullptr,
         smooth + i * columns, detail + i * columns);
  }
}
