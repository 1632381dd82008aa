// task: window_max
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

constexpr int rows = 128, width = 4096, window = 32, columns = width + window - 1;

static inline v16 larger(const float* a, const float* b) {
  const v16 x = *reinterpret_cast<const v16*>(a), y = *reinterpret_cast<const v16*>(b);
  return x > y ? x : y;
}

/// As window_max_good, without its copy of each row: the first step reads the row itself.
extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  alignas(64) float most[columns + 65] = {}; // of 2, 4, 8 and 16 neighbours
  for (int r = 0; r < rows; ++r, x += columns, y += width) {
    constexpr int whole = (columns - 16) / 16 * 16;
    for (int c = 0; c < whole; c += 16) *reinterpret_cast<v16*>(most + c) = larger(x + c, x + c + 1);
    for (int c = whole; c < columns - 1; ++c) most[c] = x[c] > x[c + 1] ? x[c] : x[c + 1];
    most[columns - 1] = x[columns - 1];
    for (int step = 2; step < 16; step *= 2)
      for (int c = 0; c < width + 32; c += 16) *reinterpret_cast<v16*>(most + c) = larger(most + c, most + c + step);
    for (int c = 0; c < width; c += 16) *reinterpret_cast<v16*>(y + c) = larger(most + c, most + c + 16);
  }
}
