// task: rans
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int streams = 64, symbols = 1024, vectors = streams / 16;

/// All streams side by side, sixteen in a vector: the gathers of one vector hide those of another.
extern "C" void pragma_kernel(const pragma_args* args) {
  const int32_t* words = static_cast<const int32_t*>(args->inputs[0].data);
  const int32_t* table = static_cast<const int32_t*>(args->inputs[1].data);
  const float* value = in(args, 2);
  const int32_t* start = static_cast<const int32_t*>(args->inputs[3].data);
  float* y = out(args);
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i low = _mm512_set1_epi32(65535), one = _mm512_set1_epi32(1);
  __m512i x[vectors], place[vectors];
  for (int v = 0; v < vectors; ++v) {
    x[v] = _mm512_loadu_si512(start + 16 * v);
    place[v] = _mm512_mullo_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(16 * v)), _mm512_set1_epi32(symbols));
  }
  for (int t = 0; t < symbols; ++t, y += streams)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const __m512i slot = _mm512_and_si512(x[v], low);
      const __m512i often = _mm512_i32gather_epi32(slot, table, 8);
      const __m512i from = _mm512_i32gather_epi32(slot, table + 1, 8);
      _mm512_storeu_ps(y + 16 * v, _mm512_i32gather_ps(slot, value, 4));
      x[v] = _mm512_add_epi32(_mm512_mullo_epi32(often, _mm512_srli_epi32(x[v], 16)), from);
      const __mmask16 short_of = _mm512_cmple_epu32_mask(x[v], low);
      const __m512i word = _mm512_mask_i32gather_epi32(low, short_of, place[v], words, 4);
      x[v] = _mm512_mask_or_epi32(x[v], short_of, _mm512_slli_epi32(x[v], 16), word);
      place[v] = _mm512_mask_add_epi32(place[v], short_of, place[v], one);
    }
}
