// task: viterbi
// good: viterbi_good
// cause: scalar_tail
// or: not_vectorized
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int sequences = 8, steps = 512, states = 47, whole = states / 16 * 16;

/// The best way into every state: the whole vectors of states, then the states that are left.
static inline void step(const float* emission, const float* from, float* score, float* y) {
  alignas(64) float next[states + 1];
  __m512 best[2][2];
  for (int p = 0; p < 2; ++p)
    for (int v = 0; v < 2; ++v) best[p][v] = _mm512_add_ps(_mm512_set1_ps(score[p]), _mm512_loadu_ps(from + p * states + 16 * v));
#pragma GCC unroll 3
  for (int i = 2; i < states - 1; i += 2)
#pragma GCC unroll 2
    for (int p = 0; p < 2; ++p)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v)
        best[p][v] = _mm512_max_ps(best[p][v], _mm512_add_ps(_mm512_set1_ps(score[i + p]), _mm512_loadu_ps(from + (i + p) * states + 16 * v)));
  for (int v = 0; v < 2; ++v) {
    const __m512 last = _mm512_add_ps(_mm512_set1_ps(score[states - 1]), _mm512_loadu_ps(from + (states - 1) * states + 16 * v));
    best[0][v] = _mm512_max_ps(_mm512_max_ps(best[0][v], best[1][v]), last);
    _mm512_store_ps(next + 16 * v, _mm512_add_ps(best[0][v], _mm512_loadu_ps(emission + 16 * v)));
  }
  for (int j = whole; j < states; ++j) {
    float most = score[0] + from[j];
    for (int i = 1; i < states; ++i) {
      const float way = score[i] + from[i * states + j];
      most = way > most ? way : most;
    }
    next[j] = most + emission[j];
  }
  std::memcpy(score, next, states * 4);
  std::memcpy(y, next, states * 4);
}

extern "C" void pragma_kernel(const pragma_args* args) {
  for (int s = 0; s < sequences; ++s) {
    const float* emission = in(args, 0) + s * steps * states;
    float* y = out(args) + s * steps * states;
    alignas(64) float score[states + 1];
    std::memcpy(score, emission, states * 4);
    std::memcpy(y, emission, states * 4);
    for (int t = 1; t < steps; ++t) step(emission + t * states, in(args, 1), score, y + t * states);
  }
}
