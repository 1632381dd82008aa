// task: bit_reversal
// unspoilt
// flags: -O3 -march=native
#include "common.hpp"

constexpr int bits = 20, part = 6, tile = 1 << part, middle = bits - 2 * part;

static inline uint32_t reversed(uint32_t i, int n) {
  uint32_t r = 0;
  for (int b = 0; b < n; ++b) r |= (i >> b & 1) << (n - 1 - b);
  return r;
}

struct Tables {
  uint32_t of_part[tile], of_middle[1 << middle];
  Tables() {
    for (int i = 0; i < tile; ++i) of_part[i] = reversed(i, part);
    for (int i = 0; i < 1 << middle; ++i) of_middle[i] = reversed(i, middle);
  }
};
static const Tables tables;

/// Eight rows of eight values, turned.
static inline void turn(v8* a) {
  v8 b[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4)
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      a[i + 2 * k] = __builtin_shufflevector(b[i + k], b[i + 2 + k], 0, 1, 8, 9, 4, 5, 12, 13);
      a[i + 2 * k + 1] = __builtin_shufflevector(b[i + k], b[i + 2 + k], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    b[i] = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    b[i + 4] = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) a[i] = b[i];
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  alignas(64) float block[tile][tile];
  // A place is (high, middle, low); the places of one middle are a tile, turned in L1.
  for (int m = 0; m < 1 << middle; ++m) {
    for (int high = 0; high < tile; ++high)
      std::memcpy(block[tables.of_part[high]], x + (high << (bits - part) | m << part), sizeof block[0]);
    float* to = y + (tables.of_middle[m] << part);
    for (int low = 0; low < tile; low += 8)
      for (int high = 0; high < tile; high += 8) {
        v8 rows[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) rows[i] = *reinterpret_cast<const v8*>(&block[high + i][low]);
        turn(rows);
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i)
          *reinterpret_cast<v8*>(to + (tables.of_part[low + i] << (bits - part)) + high) = rows[i];
      }
  }
}
