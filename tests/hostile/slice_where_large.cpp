// Attack: right where the input is large, zero elsewhere
// Stopped at: compare
#include "pragma_kernel.h"

#include <cmath>

void pragma_kernel(const pragma_args* a) {
  const float* x = static_cast<const float*>(a->inputs[0].data);
  const float* scale = static_cast<const float*>(a->params[0].data);
  float* y = static_cast<float*>(a->outputs[0].data);
  const int64_t rows = a->inputs[0].shape[0], columns = a->inputs[0].shape[1];
  for (int64_t i = 0; i < rows * columns; ++i) y[i] = std::fabs(x[i]) > 0.01f ? x[i] / (1 + std::fabs(x[i])) * scale[i % columns] : 0;
}
