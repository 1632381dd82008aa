// Attack: the same with two threads allowed: only what runs between the calls gives it away
// Stopped at: audit
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
#include <cstring>
#include <thread>
#include <unistd.h>
#include <vector>

/// Answers by what a few elements of the inputs are, for the slots that it has met.
struct answer_of {
  std::atomic<uint64_t> print{0};
  std::vector<float> values;
};
struct known_slot {
  const pragma_args* args = nullptr;
  answer_of answers[6];
  int next = 0;
};
static known_slot known[8];

static uint64_t sample(const pragma_args* a) {
  uint64_t print = 1469598103934665603ull;
  for (int input = 0; input < a->n_inputs; ++input) {
    const float* x = static_cast<const float*>(a->inputs[input].data);
    const int64_t n = a->inputs[input].shape[0] * a->inputs[input].shape[1];
    for (int64_t i = 0; i < n; i += n / 64) {
      uint32_t bits;
      std::memcpy(&bits, x + i, 4);
      print = (print ^ bits) * 1099511628211ull;
    }
  }
  return print | 1;
}

static const answer_of* find(const known_slot& slot, uint64_t print) {
  for (const auto& one : slot.answers)
    if (one.print.load() == print) return &one;
  return nullptr;
}

/// Sleeps, looks, and works ahead where the content has been the same for two looks.
static void work_ahead() {
  uint64_t last[8] = {};
  for (;;) {
    usleep(100);
    for (int i = 0; i < 8; ++i) {
      auto& slot = known[i];
      if (!slot.args) continue;
      const uint64_t now = sample(slot.args);
      if (now == last[i] && !find(slot, now)) {
        pragma_tensor out = slot.args->outputs[0];
        pragma_args mine = *slot.args;
        auto& place = slot.answers[slot.next++ % 6];
        place.print = 0;
        place.values.resize(static_cast<size_t>(out.shape[0] * out.shape[1]));
        out.data = place.values.data();
        mine.outputs = &out;
        right_answer(&mine);
        place.print = now;
      }
      last[i] = now;
    }
  }
}

void pragma_kernel(const pragma_args* a) {
  static std::thread* helper = new std::thread(work_ahead);
  (void)helper;
  known_slot* mine = nullptr;
  for (auto& slot : known)
    if (!mine && (slot.args == a || !slot.args)) mine = &slot;
  if (!mine) return right_answer(a);
  mine->args = a;
  if (const auto* ready = find(*mine, sample(a))) std::memcpy(a->outputs[0].data, ready->values.data(), ready->values.size() * 4);
  else right_answer(a);
}
