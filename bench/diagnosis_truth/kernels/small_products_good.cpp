// task: small_products
// unspoilt
// flags: -O3 -march=native -ffp-contract=fast
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *a = in(args, 0), *b = in(args, 1);
  float* y = out(args);
  for (int product = 0; product < 8192; ++product, a += 64, b += 64, y += 64) {
    v8 row[8];
    std::memcpy(row, b, sizeof row);
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
