// task: unfold
// good: unfold_good
// cause: strided_access
// or: not_vectorized, memory_latency_bound
// flags: -O3 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  constexpr int size = 64, wide = size - 2;
  const float* x = in(args, 0);
  float* y = out(args);
  for (int r = 0; r < wide; ++r)
    for (int c = 0; c < wide; ++c)
      for (int channel = 0; channel < 16; ++channel)
        for (int down = 0; down < 3; ++down)
          for (int right = 0; right < 3; ++right)
            y[((channel * 3 + down) * 3 + right) * wide * wide + r * wide + c] =
                x[(channel * size + r + down) * size + c + right];
}
