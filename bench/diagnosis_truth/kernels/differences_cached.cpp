// task: row_differences
// good: differences_good
// cause: store_bandwidth_bound
// flags: -O3 -march=native -mprefer-vector-width=512
#include "common.hpp"

#include <functional>
#include <algorithm>

extern "C" void pragma_kernel(const pragma_args* args) {
  constexpr int width = 4096;
  const float* x = in(args, 0);
  std::transform(x + width, x + 3073 * width, x, out(args), std::minus<float>());
}
