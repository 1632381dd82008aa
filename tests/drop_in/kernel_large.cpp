// For task_large.py.
#include "pragma_kernel.h"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 640; ++i)
    for (int k = 0; k < 64 * 256; ++k) y[i * 64 * 256 + k] = x[k] + static_cast<float>(i);
}
