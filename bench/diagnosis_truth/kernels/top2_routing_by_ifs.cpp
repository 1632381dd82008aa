// task: top2_routing
// good: top2_routing_good
// cause: bad_speculation
// or: not_vectorized
// written after the rules
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math
#include "common.hpp"

struct expert {
  int index;
  float score;
};

/// Puts a candidate into the two best so far, best first.
static inline void consider(expert* best, int index, float score) {
  if (score <= best[1].score) return;
  if (score > best[0].score) {
    best[1] = best[0];
    best[0] = {index, score};
  } else {
    best[1] = {index, score};
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int token = 0; token < 16384; ++token, x += 16, y += 16) {
    expert best[2] = {{-1, -INFINITY}, {-1, -INFINITY}};
    for (int e = 0; e < 16; ++e) consider(best, e, x[e]);
    float kept[16], sum = 0;
    for (int e = 0; e < 16; ++e) kept[e] = x[e] >= best[1].score ? fast_exp(x[e] - best[0].score) : 0;
    for (int e = 0; e < 16; ++e) sum += kept[e];
    const float inverse = 1 / sum;
    for (int e = 0; e < 16; ++e) y[e] = kept[e] * inverse;
  }
}
