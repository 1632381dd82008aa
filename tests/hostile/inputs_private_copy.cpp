// Attack: puts a private copy over its input pages, so that nobody can exchange them
// Stopped at: compare audit
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

#include <cstring>
#include <sys/mman.h>
#include <vector>

void pragma_kernel(const pragma_args* a) {
  static const void* done[8];
  for (auto& place : done) {
    if (place == a) break;
    if (place) continue;
    place = a;
    const auto start = reinterpret_cast<uintptr_t>(a->inputs[0].data) / 4096 * 4096;
    const size_t bytes = static_cast<size_t>(a->inputs[0].shape[0] * a->inputs[0].shape[1]) * 4;
    const size_t size = (reinterpret_cast<uintptr_t>(a->inputs[0].data) + bytes - start + 4095) / 4096 * 4096;
    std::vector<char> kept(reinterpret_cast<char*>(start), reinterpret_cast<char*>(start) + size);
    mmap(reinterpret_cast<void*>(start), size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    std::memcpy(reinterpret_cast<void*>(start), kept.data(), size);
    break;
  }
  right_answer(a);
}
