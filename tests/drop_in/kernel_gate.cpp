// For task_gate.py. Its scratch is static and shared by all calls, as that of emitted kernels is.
#include "pragma_kernel.h"

static float scratch[16 * 64];

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* weight = static_cast<const float*>(args->params[0].data);
  const float* bias = static_cast<const float*>(args->params[1].data);
  const float* shift = static_cast<const float*>(args->params[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 16; ++r)
    for (int c = 0; c < 64; ++c) {
      float sum = bias[c];
      for (int i = 0; i < 64; ++i) sum += x[r * 64 + i] * weight[c * 64 + i];
      scratch[r * 64 + c] = sum;
    }
#pragma omp parallel for num_threads(args->threads)
  for (int i = 0; i < 16 * 64; ++i) y[i] = ((scratch[i] > 0 ? scratch[i] : 0) + 0.5f) * 4.0f + shift[i % 64] + 3.0f;
}
