// task: box_blur
// good: box_blur_good
// cause: redundant_work
// or: port_pressure
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd
#include "common.hpp"

constexpr int size = 1024, side = 9, pitch = size + side - 1;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < size; ++r)
    for (int c = 0; c < size; c += 64) {
      v16 s[4] = {};
      for (int dr = 0; dr < side; ++dr)
        for (int dc = 0; dc < side; ++dc)
          for (int k = 0; k < 4; ++k) s[k] += *reinterpret_cast<const v16*>(x + (r + dr) * pitch + c + dc + 16 * k);
      for (int k = 0; k < 4; ++k) *reinterpret_cast<v16*>(y + r * size + c + 16 * k) = s[k] * (1.0f / (side * side));
    }
}
