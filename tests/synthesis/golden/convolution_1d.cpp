// Task: convolution_1d
// Reference: aten.convolution.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":12,"m":5,"n":16,"rows":5,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":2}],"threads":1}
// Written by PRAGMA's built-in coder (docs/synthesis.md).
#include "pragma_kernel.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace {

// (helpers)

} // namespace

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x0 = static_cast<const float*>(args->inputs[0].data);
  const float* p0 = static_cast<const float*>(args->params[0].data);
  const float* p1 = static_cast<const float*>(args->params[1].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: convolution, m x n x k = 5 x 15 x 12
  {
    constexpr int MR = 5, NR = 2 * W; // tile in registers: rows x columns
    // Taps: where each meets the padded image and where its weight lies.
    constexpr int32_t tap_image[] = {0, 34, 18, 2};
    constexpr int32_t tap_weight[] = {0, 1, 2, 3};
    alignas(64) static float weights[60];
    alignas(64) static float image[319];
    alignas(64) static float b_panels[192];
    {
      constexpr int64_t k0 = 0, channels = 3, depth = channels * 4;
      for (int64_t m = 0; m < 5; m += MR)
        pack_weights<MR>(weights + (k0 * 4) * 5 + m * depth, p0 + m * 12 + k0 * 4, 5 - m, 12, channels, 4, tap_weight + 0, 4);
    }
    for (int64_t o0 = 0; o0 < 2; ++o0) {
      // the image, inside of a border of zeros; every 3 columns side by side
      for (int64_t c = 0; c < 3; ++c) {
        for (int64_t r = 0; r < 3; ++r) {
          const int64_t begin = (r + 0 - 0) % 3;
          float* lane = image + c * 51 + r * 17;
          for (int64_t x = begin; x < 50; x += 3) lane[(x + 0) / 3] = (x0 + 150 * o0 + c * 50)[x * 1];
        }
      }
      const grid pixels{1, 1, 15, 51, 51, 1};
      const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
        for (int r = 0; r < MR; ++r) {
          [[maybe_unused]] const int64_t o1 = m + r;
          const vf v3 = splat_memory(p1 + o1);
          const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
            const vf v2 = sum;
            store(out0 + 75 * o0 + 15 * o1 + i, v2 + v3, lanes);
          };
          for (int t = 0; t < NR / W; ++t) {
            const int64_t i = n + t * W;
            if (i + W <= 15) columns_at(i, tile[r][t], all_lanes{});
            else if (i < 15) columns_at(i, tile[r][t], some_lanes<7>{});
          }
        }
      };
      constexpr int64_t n0 = 0, n1 = 15;
      constexpr int64_t k0 = 0, channels = 3, depth = channels * 4;
      for (int64_t n = n0; n < n1; n += NR) {
        float* b = b_panels;
        const pixel_places<NR> at(n, pixels);
        for (int64_t m = 0; m < 5; m += MR) {
          vf tile[MR][NR / W];
          multiply_patches<false>(weights + (k0 * 4) * 5 + m * depth, b, image + k0 * 51, at, channels, 51, tap_image + 0, 4, tile);
          finish(tile, m, n);
        }
      }
    }
  }
}
