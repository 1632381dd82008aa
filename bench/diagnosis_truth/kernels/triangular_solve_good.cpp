// task: triangular_solve
// unspoilt
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd
#include "common.hpp"

constexpr int n = 64, columns = 8192, block = 128, vectors = block / 16;

struct Solved {
  alignas(64) float x[n * block];
};

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *l = in(args, 0), *b = in(args, 1);
  float* y = out(args);
  float inverse[n], below[n * n];
  for (int i = 0; i < n; ++i) {
    inverse[i] = 1 / (std::fabs(l[i * n + i]) + 1);
    for (int j = 0; j < i; ++j) below[i * n + j] = l[i * n + j] * 0.1f;
  }
  static Solved solved;
  float* x = solved.x;
  for (int c = 0; c < columns; c += block)
    for (int i = 0; i < n; ++i) {
      v16 s[vectors];
      for (int k = 0; k < vectors; ++k) s[k] = *reinterpret_cast<const v16*>(b + i * columns + c + 16 * k);
      for (int j = 0; j < i; ++j)
        for (int k = 0; k < vectors; ++k) s[k] -= below[i * n + j] * *reinterpret_cast<const v16*>(x + j * block + 16 * k);
      for (int k = 0; k < vectors; ++k) {
        s[k] *= inverse[i];
        *reinterpret_cast<v16*>(x + i * block + 16 * k) = s[k];
        *reinterpret_cast<v16*>(y + i * columns + c + 16 * k) = s[k];
      }
    }
}
