// Attack: computes in eight bits of mantissa
// Stopped at: compare
#include "pragma_kernel.h"

#include <cmath>
#include <cstring>
#include <cstdint>

void pragma_kernel(const pragma_args* a) {
  const float* x = static_cast<const float*>(a->inputs[0].data);
  const float* scale = static_cast<const float*>(a->params[0].data);
  float* y = static_cast<float*>(a->outputs[0].data);
  const int64_t rows = a->inputs[0].shape[0], columns = a->inputs[0].shape[1], n = rows * columns;
  for (int64_t i = 0; i < n; ++i) {
    y[i] = x[i] / (1 + std::fabs(x[i])) * scale[i % columns];
    uint32_t bits;
    std::memcpy(&bits, y + i, sizeof bits);
    bits = (bits + 0x8000) & 0xffff0000u;
    std::memcpy(y + i, &bits, sizeof bits);
  }
}
