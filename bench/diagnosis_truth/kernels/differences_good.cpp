// task: row_differences
// unspoilt
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

extern "C" void pragma_kernel(const pragma_args* args) {
  constexpr int width = 4096;
  const float *upper = in(args, 0), *end = upper + 3072 * width;
  for (float* to = out(args); upper != end; upper += 16, to += 16)
    _mm512_stream_ps(to, _mm512_sub_ps(_mm512_loadu_ps(upper + width), _mm512_loadu_ps(upper)));
  _mm_sfence();
}
