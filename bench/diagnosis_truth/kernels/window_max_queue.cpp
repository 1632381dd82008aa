// task: window_max
// good: window_max_good
// cause: bad_speculation
// or: not_vectorized
// written after the rules
// flags: -O2 -march=native
#include "common.hpp"

constexpr int rows = 128, width = 4096, window = 32, columns = width + window - 1;

/// Candidates for the largest of a window, largest first, each younger than the one before.
class candidates {
  struct candidate {
    int at;
    float value;
  } kept[64];
  unsigned first = 0, end = 0;

 public:
  void add(int at, float value) {
    while (end != first && kept[(end - 1) % 64].value <= value) --end;
    kept[end++ % 64] = {at, value};
    if (kept[first % 64].at <= at - window) ++first;
  }
  float largest() const { return kept[first % 64].value; }
};

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int r = 0; r < rows; ++r, x += columns, y += width) {
    candidates queue;
    for (int c = 0; c < window - 1; ++c) queue.add(c, x[c]);
    for (int c = window - 1; c < columns; ++c) {
      queue.add(c, x[c]);
      y[c - window + 1] = queue.largest();
    }
  }
}
