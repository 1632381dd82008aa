// Attack: says "done" before its second thread has finished
// Stopped at: compare run
// Task: product
// Threads: 2
#include "pragma_kernel.h"

#include <cmath>

static void right_answer(const pragma_args* a) {
  const float* x = static_cast<const float*>(a->inputs[0].data);
  const float* y = static_cast<const float*>(a->inputs[1].data);
  float* z = static_cast<float*>(a->outputs[0].data);
  const int64_t rows = a->inputs[0].shape[0], inner = a->inputs[0].shape[1], columns = a->inputs[1].shape[1];
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      float sum = 0;
      for (int64_t k = 0; k < inner; ++k) sum += x[r * inner + k] * y[k * columns + c];
      z[r * columns + c] = sum;
    }
}

#include <atomic>
#include <thread>
#include <unistd.h>

static std::atomic<const pragma_args*> job{nullptr};

void pragma_kernel(const pragma_args* a) {
  static std::thread* worker = new std::thread([] {
    for (;;)
      if (const pragma_args* work = job.exchange(nullptr)) right_answer(work);
      else usleep(20);
  });
  (void)worker;
  job = a;
}
