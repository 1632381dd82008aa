// task: bit_reversal
// good: bit_reversal_good
// cause: memory_latency_bound
// or: strided_access
// flags: -O3 -march=native
#include "common.hpp"

constexpr int bits = 20, half = bits / 2;

static inline uint32_t reversed(uint32_t i, int n) {
  uint32_t r = 0;
  for (int b = 0; b < n; ++b) r |= (i >> b & 1) << (n - 1 - b);
  return r;
}

struct Table {
  uint32_t of[1 << half];
  Table() {
    for (int i = 0; i < 1 << half; ++i) of[i] = reversed(i, half);
  }
};
static const Table table;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int high = 0; high < 1 << half; ++high) {
    const float* from = x + table.of[high];
    for (int low = 0; low < 1 << half; ++low) y[high << half | low] = from[table.of[low] << half];
  }
}
