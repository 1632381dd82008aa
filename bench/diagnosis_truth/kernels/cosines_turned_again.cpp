// task: cosines
// good: cosines_good
// cause: redundant_work
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

constexpr int vectors = 384, length = 64;
alignas(64) static float turned[length][vectors]; // the second factor's unit vectors, one a column
static float inverse[vectors];

static float inverse_norm(const float* v) {
  v16 squares = {};
  for (int k = 0; k < length; k += 16) squares += *reinterpret_cast<const v16*>(v + k) * *reinterpret_cast<const v16*>(v + k);
  float s = 0;
  for (int lane = 0; lane < 16; ++lane) s += squares[lane];
  const float norm = std::sqrt(s);
  return 1 / (norm > 1e-12f ? norm : 1e-12f);
}

static void turn(const float* z) {
  for (int j = 0; j < vectors; ++j) inverse[j] = inverse_norm(z + j * length);
  for (int j = 0; j < vectors; ++j)
    for (int k = 0; k < length; ++k) turned[k][j] = z[j * length + k] * inverse[j];
}

static void block(const float* x, float* y) { // six rows
  float scale[6];
  for (int i = 0; i < 6; ++i) scale[i] = inverse_norm(x + i * length);
  for (int j = 0; j < vectors; j += 64) {
    v16 sum[6][4] = {};
    for (int k = 0; k < length; ++k) {
      const v16* column = reinterpret_cast<const v16*>(&turned[k][j]);
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
        const float factor = x[i * length + k];
        sum[i][0] += factor * column[0];
        sum[i][1] += factor * column[1];
        sum[i][2] += factor * column[2];
        sum[i][3] += factor * column[3];
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i)
#pragma GCC unroll 4
      for (int l = 0; l < 4; ++l) reinterpret_cast<v16*>(y + i * vectors + j)[l] = sum[i][l] * scale[i];
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *z = in(args, 1);
  float* y = out(args);
  for (int from = 0; from < vectors; from += 48) {
    turn(z); // for each forty-eight rows once more
    for (int i = from; i < from + 48; i += 6) block(x + i * length, y + i * vectors);
  }
}
