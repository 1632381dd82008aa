// task: convolution
// unspoilt
// faster: convolution_two_threads_wide
// flags: -O3 -march=native -fopenmp
// threads: 2
#include "common.hpp"

constexpr int channels = 24, size = 32, padded = 48, rows = size + 2, plane = padded * rows + 16, together = 6;
alignas(4096) static float planes[channels * plane];  // within a border of noughts: a row's values are 8 from its start on
alignas(64) static float weights[channels / together][channels][3][3][together];

/// Six channels' sixteen values at a place of the output.
static inline void six(const float* x, const float* w, float* y) {
  v8 left[together] = {}, right[together] = {};
  for (int channel = 0; channel < channels; ++channel, x += plane)
    for (int down = 0; down < 3; ++down)
#pragma GCC unroll 3
      for (int c = 0; c < 3; ++c, w += together) {
        const v8 l = *reinterpret_cast<const v8*>(x + down * padded + c);
        const v8 r = *reinterpret_cast<const v8*>(x + down * padded + c + 8);
#pragma GCC unroll 6
        for (int i = 0; i < together; ++i) {
          left[i] += l * w[i];
          right[i] += r * w[i];
        }
      }
#pragma GCC unroll 6
  for (int i = 0; i < together; ++i) {
    *reinterpret_cast<v8*>(y + i * size * size) = left[i];
    *reinterpret_cast<v8*>(y + i * size * size + 8) = right[i];
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *w = in(args, 1);
  float* y = out(args);
  for (int channel = 0; channel < channels; ++channel)
    for (int r = 0; r < size; ++r)
      std::memcpy(planes + channel * plane + (r + 1) * padded + 8, x + (channel * size + r) * size, size * sizeof(float));
  for (int to = 0; to < channels; ++to)
    for (int from = 0; from < channels; ++from)
      for (int k = 0; k < 9; ++k)
        weights[to / together][from][k / 3][k % 3][to % together] = w[(to * channels + from) * 9 + k];
#pragma omp parallel for num_threads(2) schedule(static)
  for (int r = 0; r < size; ++r)
    for (int to = 0; to < channels; to += together)
      for (int c = 0; c < size; c += 16)
        six(planes + r * padded + 7 + c, weights[to / together][0][0][0], y + (to * size + r) * size + c);
}
