// task: vibrations
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int strings = 64, points = 1024, steps = 64;

/// A line of a string's points, with room for a vector on either side.
struct line {
  float before[16], at[points], behind[16];
};

/// Half a page lies between the two, within pages: no load meets the low address bits of a store just before it.
struct work {
  line u;
  float gap[480];
  line velocity;
};
static_assert((sizeof(line) + sizeof(work::gap)) % 4096 == 2048);

extern "C" void pragma_kernel(const pragma_args* args) {
  alignas(4096) static work w; // the places beyond the ends stay 0
  const float* stiffness = in(args, 1);
  const __m512 damping = _mm512_set1_ps(0.999f);
  float *u = w.u.at, *velocity = w.velocity.at;
  for (int s = 0; s < strings; ++s) {
    const float k = stiffness[s] < 0.01f ? 0.01f : stiffness[s] > 0.9f ? 0.9f : stiffness[s];
    const __m512 c = _mm512_set1_ps(k);
    std::memcpy(u, in(args, 0) + s * points, sizeof w.u.at);
    std::memset(velocity, 0, sizeof w.velocity.at);
    for (int step = 0; step < steps; ++step) {
      __m512 previous = _mm512_setzero_ps(), here = _mm512_load_ps(u);
      for (int j = 0; j < points; j += 16) {
        const __m512 next = _mm512_load_ps(u + j + 16);
        const __m512 left = _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(here), _mm512_castps_si512(previous), 15));
        const __m512 right = _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(next), _mm512_castps_si512(here), 1));
        const __m512 bend = (left + right) - 2.0f * here;
        const __m512 v = damping * _mm512_load_ps(velocity + j) + c * bend;
        _mm512_store_ps(velocity + j, v);
        _mm512_store_ps(u + j, here + v);
        previous = here;
        here = next;
      }
    }
    std::memcpy(out(args) + s * points, u, sizeof w.u.at);
  }
}
