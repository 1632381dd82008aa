// task: automaton
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int states = 131072, symbols = 16, strings = 512, length = 128, wide = 4;

extern "C" void pragma_kernel(const pragma_args* args) {
  const int32_t* table = static_cast<const int32_t*>(args->inputs[0].data);
  const int32_t* text = static_cast<const int32_t*>(args->inputs[1].data);
  const float* values = in(args, 2);
  float* y = out(args);
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i any_state = _mm512_set1_epi32(states - 1), any_symbol = _mm512_set1_epi32(symbols - 1);
  for (int s = 0; s < strings; s += 16 * wide) {
    __m512i state[wide];
#pragma GCC unroll 4
    for (int v = 0; v < wide; ++v) state[v] = _mm512_mullo_epi32(_mm512_add_epi32(lanes, _mm512_set1_epi32(s + 16 * v)), _mm512_set1_epi32(states / strings));
    for (int t = 0; t < length; ++t)
#pragma GCC unroll 4
      for (int v = 0; v < wide; ++v) {
        const __m512i symbol = _mm512_and_si512(_mm512_load_si512(text + t * strings + s + 16 * v), any_symbol);
        const __m512i place = _mm512_or_si512(_mm512_slli_epi32(state[v], 4), symbol);
        state[v] = _mm512_and_si512(_mm512_i32gather_epi32(place, table, 4), any_state);
      }
#pragma GCC unroll 4
    for (int v = 0; v < wide; ++v) _mm512_store_ps(y + s + 16 * v, _mm512_i32gather_ps(state[v], values, 4));
  }
}
