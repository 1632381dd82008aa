// Attack: computes one row and repeats it
// Stopped at: compare
#include "pragma_kernel.h"

#include <cmath>
#include <cstring>

void pragma_kernel(const pragma_args* a) {
  const float* x = static_cast<const float*>(a->inputs[0].data);
  const float* scale = static_cast<const float*>(a->params[0].data);
  float* y = static_cast<float*>(a->outputs[0].data);
  const int64_t rows = a->inputs[0].shape[0], columns = a->inputs[0].shape[1], n = rows * columns;
  for (int64_t i = 0; i < columns; ++i) y[i] = x[i] / (1 + std::fabs(x[i])) * scale[i % columns];
  for (int64_t r = 1; r < rows; ++r) std::memcpy(y + r * columns, y, static_cast<size_t>(columns) * sizeof *y);
}
