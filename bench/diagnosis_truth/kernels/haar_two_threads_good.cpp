// task: haar
// unspoilt
// written after the rules
// flags: -O3 -march=native -fopenmp
// threads: 2
#include "common.hpp"

constexpr int rows = 512, columns = 2048, levels = 11;
constexpr float half_root = 0.70710678f;

typedef int i16 __attribute__((vector_size(64)));
static const i16 evens = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
static const i16 odds = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};

/// Sixteen pairs at x: their sums and their differences.
static inline void pairs(const float* x, float gain, float* sum, float* difference) {
  const v16 p = *reinterpret_cast<const v16*>(x), q = *reinterpret_cast<const v16*>(x + 16);
  const v16 e = __builtin_shuffle(p, q, evens), o = __builtin_shuffle(p, q, odds);
  *reinterpret_cast<v16*>(sum) = (e + o) * half_root;
  *reinterpret_cast<v16*>(difference) = (e - o) * (half_root * gain);
}

/// A row through all its levels: the sums go to and fro between two short rows.
static void transform(const float* x, const float* gain, float* y) {
  alignas(64) float kept[2][columns / 2];
  int level = 0, n = columns / 2;
  for (; n >= 16; n /= 2, ++level) {
    float* sums = kept[level & 1];
#pragma GCC unroll 2
    for (int i = 0; i < n; i += 16) pairs(x + 2 * i, gain[level], sums + i, y + n + i);
    x = sums;
  }
  for (; n >= 1; n /= 2, ++level) {
    float* sums = kept[level & 1];
    for (int i = 0; i < n; ++i) {
      const float e = x[2 * i], o = x[2 * i + 1];
      sums[i] = (e + o) * half_root;
      y[n + i] = (e - o) * (half_root * gain[level]);
    }
    x = sums;
  }
  y[0] = x[0];
}

extern "C" void pragma_kernel(const pragma_args* args) {
#pragma omp parallel for num_threads(2) schedule(static)
  for (int r = 0; r < rows; ++r) transform(in(args, 0) + r * columns, in(args, 1), out(args) + r * columns);
}
