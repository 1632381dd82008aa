// Attack: computes half of the columns and leaves what the last call on other memory gave in the rest
// Stopped at: compare
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

#include <vector>

void pragma_kernel(const pragma_args* a) {
  static std::vector<float> last;
  float* y = static_cast<float*>(a->outputs[0].data);
  const int64_t rows = a->outputs[0].shape[0], columns = a->outputs[0].shape[1];
  if (last.empty()) {
    right_answer(a);
    last.assign(y, y + rows * columns);
    return;
  }
  const float* x = static_cast<const float*>(a->inputs[0].data);
  const float* scale = static_cast<const float*>(a->params[0].data);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      y[r * columns + c] = c < columns / 2 ? x[r * columns + c] / (1 + std::fabs(x[r * columns + c])) * scale[c] : last[r * columns + c];
}
