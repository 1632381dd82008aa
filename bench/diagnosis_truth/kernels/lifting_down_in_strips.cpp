// task: lifting
// good: lifting_good
// cause: strided_access
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

constexpr int half = 384, columns = 1040;

static inline v16 at(const float* p) { return *reinterpret_cast<const v16*>(p); }

/// Sixteen columns from the top to the bottom: what the next row needs stays in registers.
static void strip(const float* x, v16 a, v16 b, float* smooth, float* detail) {
  v16 even = at(x), before = {};
  for (int i = 0; i < half; ++i) {
    const v16 after = i + 1 < half ? at(x + (2 * i + 2) * columns) : even;
    const v16 d = at(x + (2 * i + 1) * columns) - a * (even + after);
    if (i == 0) before = d;
    *reinterpret_cast<v16*>(detail + i * columns) = d;
    *reinterpret_cast<v16*>(smooth + i * columns) = even + b * (before + d);
    even = after;
    before = d;
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  for (int c = 0; c < columns; c += 16)
    strip(in(args, 0) + c, at(in(args, 1) + c), at(in(args, 2) + c), out(args) + c, out(args) + half * columns + c);
}
