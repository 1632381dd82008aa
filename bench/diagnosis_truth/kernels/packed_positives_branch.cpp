// task: packed_positives
// good: packed_positives_good
// cause: bad_speculation
// or: not_vectorized
// flags: -O3 -march=native
#include "common.hpp"

constexpr int rows = 512, columns = 1024;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int r = 0; r < rows; ++r, x += columns, y += columns) {
    int n = 0;
    for (int c = 0; c < columns; ++c)
      if (x[c] > 0) y[n++] = x[c];
    std::memset(y + n, 0, (columns - n) * sizeof(float));
  }
}
