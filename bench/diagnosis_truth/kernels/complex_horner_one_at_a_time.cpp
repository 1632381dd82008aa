// task: complex_horner
// good: complex_horner_good
// cause: dependency_chain
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd
#include "common.hpp"

constexpr int points = 65536, terms = 48, block = 1;
typedef int32_t i16 __attribute__((vector_size(64)));

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *z = in(args, 0), *c = in(args, 1);
  float* y = out(args);
  const i16 even = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30}, odd = even + 1;
  const i16 low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23}, high = low + 8;
  for (int p = 0; p < points; p += 16 * block) {
    v16 zr[block], zi[block], r[block], i[block];
    for (int k = 0; k < block; ++k) {
      const v16 a = *reinterpret_cast<const v16*>(z + 2 * p + 32 * k), b = *reinterpret_cast<const v16*>(z + 2 * p + 32 * k + 16);
      zr[k] = __builtin_shuffle(a, b, even);
      zi[k] = __builtin_shuffle(a, b, odd);
      r[k] = i[k] = v16{};
    }
    for (int t = terms - 1; t >= 0; --t)
      for (int k = 0; k < block; ++k) {
        const v16 real = r[k] * zr[k] + (c[2 * t] - i[k] * zi[k]);
        i[k] = r[k] * zi[k] + (c[2 * t + 1] + i[k] * zr[k]);
        r[k] = real;
      }
    for (int k = 0; k < block; ++k) {
      *reinterpret_cast<v16*>(y + 2 * p + 32 * k) = __builtin_shuffle(r[k], i[k], low);
      *reinterpret_cast<v16*>(y + 2 * p + 32 * k + 16) = __builtin_shuffle(r[k], i[k], high);
    }
  }
}
