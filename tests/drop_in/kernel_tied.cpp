// For task_tied.py.
#include "pragma_kernel.h"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const bool weight_first = args->params[0].ndim == 2; // parameters are in the order of the model's
  const float* weight = static_cast<const float*>(args->params[weight_first ? 0 : 1].data);
  const float* limit = static_cast<const float*>(args->params[weight_first ? 1 : 0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  float* above = static_cast<float*>(args->outputs[1].data);
  for (int r = 0; r < 8; ++r) {
    float inner[32];
    for (int c = 0; c < 32; ++c) {
      float sum = 0;
      for (int i = 0; i < 32; ++i) sum += x[r * 32 + i] * weight[c * 32 + i];
      inner[c] = sum > 0 ? sum : 0;
    }
    for (int c = 0; c < 32; ++c) {
      float sum = 0;
      for (int i = 0; i < 32; ++i) sum += inner[i] * weight[c * 32 + i];
      y[r * 32 + c] = sum;
      above[r * 32 + c] = sum > limit[c] ? 1 : 0;
    }
  }
}
