// task: relu_small
// unspoilt
// flags: -O2 -march=native
#include "common.hpp"

alignas(4096) static float first[4096], second[4096];

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  float *a = first, *b = second + 256 + 16; // far from each other in their pages
  for (int r = 0; r < 256 * 512; r += 512) {
    for (int c = 0; c < 512; c += 16) *reinterpret_cast<v16*>(a + c) = *reinterpret_cast<const v16*>(x + r + c);
    for (int pass = 0; pass < 4; ++pass) { // there and back, as the steps of a longer kernel would
      for (int c = 0; c < 512; c += 16) *reinterpret_cast<v16*>(b + c) = *reinterpret_cast<const v16*>(a + c) * 2.0f;
      for (int c = 0; c < 512; c += 16) *reinterpret_cast<v16*>(a + c) = *reinterpret_cast<const v16*>(b + c) * 0.5f;
    }
    for (int c = 0; c < 512; c += 16) {
      const v16 v = *reinterpret_cast<const v16*>(a + c);
      *reinterpret_cast<v16*>(y + r + c) = v > 0 ? v : v16{};
    }
  }
}
