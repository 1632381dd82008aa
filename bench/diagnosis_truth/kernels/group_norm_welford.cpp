// task: group_norm
// good: group_norm_good
// cause: dependency_chain
// flags: -O3 -march=native -fno-math-errno
#include "common.hpp"

constexpr int pixels = 1024, channels = 8, size = channels * pixels, lanes = 8;

struct Shares {
  float of[size / lanes];
  Shares() {
    for (int k = 0; k < size / lanes; ++k) of[k] = 1.0f / (k + 1);
  }
};
static const Shares shares;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *weight = in(args, 1), *bias = in(args, 2);
  float* y = out(args);
  for (int g = 0; g < 64; ++g, x += size, y += size) {
    // Welford's running mean and squares, in every lane.
    v8 means = {}, squares = {};
    for (int k = 0; k < size / lanes; ++k) {
      const v8 v = *reinterpret_cast<const v8*>(x + k * lanes), away = v - means;
      means += away * shares.of[k];
      squares += away * (v - means);
    }
    float mean = 0, square = 0;
    for (int l = 0; l < lanes; ++l) mean += means[l] * (1.0f / lanes);
    for (int l = 0; l < lanes; ++l) square += squares[l] + (size / lanes) * (means[l] - mean) * (means[l] - mean);
    const float scale = 1 / std::sqrt(square / size + 1e-5f);
    for (int c = 0; c < channels; ++c) {
      const float w = weight[g % 8 * channels + c] * scale, b = bias[g % 8 * channels + c] - mean * w;
#pragma GCC ivdep
      for (int i = 0; i < pixels; ++i) y[c * pixels + i] = x[c * pixels + i] * w + b;
    }
  }
}
