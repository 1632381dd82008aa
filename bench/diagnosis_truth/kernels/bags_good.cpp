// task: bags
// unspoilt
// faster: bags_two_rows_at_once
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -mprefer-vector-width=512
#include "common.hpp"

struct embedding {
  int32_t columns = 64, count = 64;
  alignas(64) float rows[64][64];
};
alignas(64) static embedding kept;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* u = in(args, 0);
  float* y = out(args);
  std::memcpy(kept.rows, in(args, 1), sizeof kept.rows);
  for (int bag = 0; bag < 4096; ++bag, u += 32, y += 64) {
    int32_t picked[32];
    for (int i = 0; i < 32; ++i) {
      const float at = u[i] * 64;
      picked[i] = static_cast<int32_t>(at > 0 ? at < 63 ? at : 63 : 0);
    }
    v16 a = {}, b = {}, c = {}, d = {};
    for (int32_t row : picked) {
      const float* from = kept.rows[row];
      a += *reinterpret_cast<const v16*>(from);
      b += *reinterpret_cast<const v16*>(from + 16);
      c += *reinterpret_cast<const v16*>(from + 32);
      d += *reinterpret_cast<const v16*>(from + 48);
    }
    *reinterpret_cast<v16*>(y) = a;
    *reinterpret_cast<v16*>(y + 16) = b;
    *reinterpret_cast<v16*>(y + 32) = c;
    *reinterpret_cast<v16*>(y + 48) = d;
  }
}
