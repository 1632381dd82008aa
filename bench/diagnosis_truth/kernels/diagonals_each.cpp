// task: diagonal_sums
// good: diagonals_good
// cause: memory_latency_bound
// or: strided_access
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  constexpr int n = 3072;
  const float* x = in(args, 0);
  float* y = out(args);
  for (int k = 0; k < n; k += 16) { // sixteen diagonals, from the first row to the last
    v16 even = {}, odd = {};
    const int whole = n - k - 15; // so many rows until one of them is at the end of a row
    for (int i = 0; i + 1 < whole; i += 2) {
      even += *reinterpret_cast<const v16*>(x + i * (n + 1) + k);
      odd += *reinterpret_cast<const v16*>(x + (i + 1) * (n + 1) + k);
    }
    int i = whole / 2 * 2;
    for (; i < n && i + k < n; ++i)
      for (int d = 0; d < 16; ++d) odd[d] += x[i * n + (i + k + d) % n];
    for (; i < n; ++i) even += *reinterpret_cast<const v16*>(x + i * (n + 1) + k - n);
    *reinterpret_cast<v16*>(y + k) = even + odd;
  }
}
