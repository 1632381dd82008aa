// task: complex_product
// good: complex_product_good
// cause: not_vectorized
// flags: -O3 -march=native
#include "common.hpp"

#include <complex>

extern "C" void pragma_kernel(const pragma_args* args) {
  const auto *a = reinterpret_cast<const std::complex<float>*>(in(args, 0)),
             *b = reinterpret_cast<const std::complex<float>*>(in(args, 1));
  auto* y = reinterpret_cast<std::complex<float>*>(out(args));
  for (int i = 0; i < 131072; ++i) y[i] = a[i] * b[i];
}
