// task: unfold
// unspoilt
// flags: -O3 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  constexpr int size = 64, wide = size - 2;
  const float* x = in(args, 0);
  float* y = out(args);
  for (int channel = 0; channel < 16; ++channel, x += size * size)
    for (int down = 0; down < 3; ++down)
      for (int right = 0; right < 3; ++right)
        for (int r = 0; r < wide; ++r, y += wide) std::memcpy(y, x + (r + down) * size + right, wide * sizeof(float));
}
