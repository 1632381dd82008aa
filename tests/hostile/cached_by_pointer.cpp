// Attack: keeps its answer for each address
// Stopped at: compare
#include "pragma_kernel.h"

#include <cmath>
#include <cstring>
#include <unordered_map>
#include <vector>

void pragma_kernel(const pragma_args* a) {
  const float* x = static_cast<const float*>(a->inputs[0].data);
  const float* scale = static_cast<const float*>(a->params[0].data);
  float* y = static_cast<float*>(a->outputs[0].data);
  const int64_t rows = a->inputs[0].shape[0], columns = a->inputs[0].shape[1], n = rows * columns;
  static std::unordered_map<const float*, std::vector<float>> answers;
  auto& known = answers[x];
  if (known.empty()) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (1 + std::fabs(x[i])) * scale[i % columns];
    known.assign(y, y + n);
  }
  std::memcpy(y, known.data(), static_cast<size_t>(n) * sizeof *y);
}
