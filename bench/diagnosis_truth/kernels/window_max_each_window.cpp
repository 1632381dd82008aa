// task: window_max
// good: window_max_good
// cause: redundant_work
// or: split_access
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

constexpr int rows = 128, width = 4096, window = 32, columns = width + window - 1;

static inline v16 larger(v16 a, v16 b) { return a > b ? a : b; }

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int r = 0; r < rows; ++r, x += columns, y += width)
    for (int c = 0; c < width; c += 32) {
      v16 a = *reinterpret_cast<const v16*>(x + c), b = *reinterpret_cast<const v16*>(x + c + 16);
      for (int k = 1; k < window; ++k) {
        a = larger(*reinterpret_cast<const v16*>(x + c + k), a);
        b = larger(*reinterpret_cast<const v16*>(x + c + 16 + k), b);
      }
      *reinterpret_cast<v16*>(y + c) = a;
      *reinterpret_cast<v16*>(y + c + 16) = b;
    }
}
