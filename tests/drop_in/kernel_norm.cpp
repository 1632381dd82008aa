// For task_norm.py: the result, then the new running mean and variance.
#include "pragma_kernel.h"

#include <cmath>

extern "C" void pragma_kernel(const pragma_args* args) {
  const auto in = [&](int i) { return static_cast<const float*>(args->params[i].data); };
  const auto out = [&](int i) { return static_cast<float*>(args->outputs[i].data); };
  const float* x = static_cast<const float*>(args->inputs[0].data);
  for (int c = 0; c < 32; ++c) {
    float sum = 0, squares = 0;
    for (int r = 0; r < 64; ++r) sum += x[r * 32 + c];
    const float mean = sum / 64;
    for (int r = 0; r < 64; ++r) squares += (x[r * 32 + c] - mean) * (x[r * 32 + c] - mean);
    const float scale = in(0)[c] / std::sqrt(squares / 64 + 1e-5f);
    for (int r = 0; r < 64; ++r) {
      const float y = (x[r * 32 + c] - mean) * scale + in(1)[c];
      out(0)[r * 32 + c] = y > 0 ? y : 0;
    }
    out(1)[c] = 0.9f * in(2)[c] + 0.1f * mean;
    out(2)[c] = 0.9f * in(3)[c] + 0.1f * (squares / UNBIASED);
  }
}
