// Attack: computes every slot once when it is continued after a stop, and copies in all calls
// Stopped at: audit compare
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

#include <csignal>
#include <cstring>
#include <vector>

static const pragma_args* met[8];
static std::vector<float> answers[8];

static void compute_all(int) {
  for (int i = 0; i < 8; ++i) {
    if (!met[i]) continue;
    pragma_tensor out = met[i]->outputs[0];
    pragma_args mine = *met[i];
    out.data = answers[i].data();
    mine.outputs = &out;
    right_answer(&mine);
  }
}

void pragma_kernel(const pragma_args* a) {
  std::signal(SIGCONT, compute_all);
  int at = 0;
  while (at < 7 && met[at] && met[at] != a) ++at;
  if (!met[at]) {
    answers[at].resize(static_cast<size_t>(a->outputs[0].shape[0] * a->outputs[0].shape[1]));
    right_answer(a);
    std::memcpy(answers[at].data(), a->outputs[0].data, answers[at].size() * 4);
    met[at] = a;
    return;
  }
  std::memcpy(a->outputs[0].data, answers[at].data(), answers[at].size() * 4);
}
