// task: resonators
// good: resonators_good
// cause: not_vectorized
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

constexpr int rows = 1024, n = 512, combs = 8;
constexpr int delays[combs] = {17, 18, 20, 21, 23, 25, 28, 31};
constexpr float gains[combs] = {0.84f, 0.82f, 0.80f, 0.78f, 0.76f, 0.74f, 0.72f, 0.70f};

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int r = 0; r < rows; ++r, x += n, y += n) {
    for (int t = 0; t < n; ++t) y[t] = 0;
    for (int c = 0; c < combs; ++c) {
      float line[32] = {}; // a ring of the comb's last values
      int at = 0;
      for (int t = 0; t < n; ++t) {
        const float now = x[t] + gains[c] * line[at];
        line[at] = now;
        at = at + 1 == delays[c] ? 0 : at + 1;
        y[t] += now * 0.125f;
      }
    }
  }
}
