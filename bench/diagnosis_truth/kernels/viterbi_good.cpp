// task: viterbi
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int sequences = 8, steps = 512, states = 47, wide = 48;
constexpr __mmask16 rest = 0x7fff;

alignas(64) static float from[states][wide];  // the changes, in whole lines

/// The best way into every state: three vectors of states, even and odd predecessors apart.
static inline void step(const float* emission, float* score, float* y) {
  __m512 best[2][3];
  for (int p = 0; p < 2; ++p)
    for (int v = 0; v < 3; ++v) best[p][v] = _mm512_add_ps(_mm512_set1_ps(score[p]), _mm512_load_ps(from[p] + 16 * v));
#pragma GCC unroll 3
  for (int i = 2; i < states - 1; i += 2)
#pragma GCC unroll 2
    for (int p = 0; p < 2; ++p)
#pragma GCC unroll 3
      for (int v = 0; v < 3; ++v)
        best[p][v] = _mm512_max_ps(best[p][v], _mm512_add_ps(_mm512_set1_ps(score[i + p]), _mm512_load_ps(from[i + p] + 16 * v)));
  for (int v = 0; v < 3; ++v) {
    const __mmask16 which = v < 2 ? 0xffff : rest;
    const __m512 last = _mm512_add_ps(_mm512_set1_ps(score[states - 1]), _mm512_load_ps(from[states - 1] + 16 * v));
    best[0][v] = _mm512_max_ps(_mm512_max_ps(best[0][v], best[1][v]), last);
    best[0][v] = _mm512_add_ps(best[0][v], _mm512_maskz_loadu_ps(which, emission + 16 * v));
    _mm512_mask_storeu_ps(y + 16 * v, which, best[0][v]);
  }
  for (int v = 0; v < 3; ++v) _mm512_store_ps(score + 16 * v, best[0][v]);
}

extern "C" void pragma_kernel(const pragma_args* args) {
  for (int i = 0; i < states; ++i) std::memcpy(from[i], in(args, 1) + i * states, states * 4);
  for (int s = 0; s < sequences; ++s) {
    const float* emission = in(args, 0) + s * steps * states;
    float* y = out(args) + s * steps * states;
    alignas(64) float score[wide] = {};
    std::memcpy(score, emission, states * 4);
    std::memcpy(y, emission, states * 4);
    for (int t = 1; t < steps; ++t) step(emission + t * states, score, y + t * states);
  }
}
