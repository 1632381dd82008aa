// Attack: uses up the compiler's time and memory
// Stopped at: build
// Build seconds: 5
#include "pragma_kernel.h"

#include <cmath>

static void right_answer(const pragma_args* a) {
  const float* x = static_cast<const float*>(a->inputs[0].data);
  const float* scale = static_cast<const float*>(a->params[0].data);
  float* y = static_cast<float*>(a->outputs[0].data);
  const int64_t rows = a->inputs[0].shape[0], columns = a->inputs[0].shape[1];
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) y[r * columns + c] = x[r * columns + c] / (1 + std::fabs(x[r * columns + c])) * scale[c];
}

template <long N, long M> struct bomb { static constexpr long value = bomb<N - 1, 2 * M>::value + bomb<N - 1, 2 * M + 1>::value; };
template <long M> struct bomb<0, M> { static constexpr long value = 1; };
static_assert(bomb<40, 1>::value > 0);

void pragma_kernel(const pragma_args* a) {
  right_answer(a);
}
