// task: small_products
// good: small_products_good
// cause: store_forwarding
// flags: -O3 -march=native -ffp-contract=fast
#include "common.hpp"

typedef float quad __attribute__((vector_size(16), aligned(4)));

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *a = in(args, 0), *b = in(args, 1);
  float* y = out(args);
  for (int product = 0; product < 8192; ++product, a += 64, b += 64, y += 64) {
    alignas(32) volatile float tile[64]; // filled by halves of rows, and read by whole ones
    for (int k = 0; k < 64; k += 4) *reinterpret_cast<volatile quad*>(tile + k) = *reinterpret_cast<const quad*>(b + k);
    v8 row[8];
    for (int k = 0; k < 8; ++k) row[k] = *reinterpret_cast<volatile v8*>(tile + k * 8);
    for (int i = 0; i < 8; ++i) {
      v8 even = a[i * 8] * row[0], odd = a[i * 8 + 1] * row[1];
      for (int k = 2; k < 8; k += 2) {
        even += a[i * 8 + k] * row[k];
        odd += a[i * 8 + k + 1] * row[k + 1];
      }
      *reinterpret_cast<v8*>(y + i * 8) = even + odd;
    }
  }
}
