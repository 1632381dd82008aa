// Task: convolution_grouped
// Reference: aten.convolution.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":18,"m":4,"n":48,"rows":4,"vectors":3,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":4}],"threads":1}
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
  // Region 1: convolution, m x n x k = 4 x 56 x 18
  {
    constexpr int MR = 4, NR = 3 * W; // tile in registers: rows x columns
    // Taps: where each meets the padded image and where its weight lies.
    constexpr int32_t tap_image[] = {0, 18, 10, 54, 72, 64, 108, 126, 118};
    constexpr int32_t tap_weight[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    alignas(64) static float weights[72];
    alignas(64) static float image[1392];
    alignas(64) static float b_panels[432];
    for (int64_t o1 = 0; o1 < 2; ++o1) {
      {
        constexpr int64_t k0 = 0, channels = 2, depth = channels * 9;
        for (int64_t m = 0; m < 4; m += MR)
          pack_weights<MR>(weights + (k0 * 9) * 4 + m * depth, p0 + 72 * o1 + m * 18 + k0 * 9, 4 - m, 18, channels, 9, tap_weight + 0, 9);
      }
      for (int64_t o0 = 0; o0 < 2; ++o0) {
        // the image, inside of a border of zeros; every 3 columns side by side
        for (int64_t c = 0; c < 2; ++c) {
          for (int64_t y = 0; y < 21; ++y) {
            for (int64_t r = 0; r < 3; ++r) {
              const int64_t begin = (r + 6 - 2) % 3;
              float* lane = image + c * 621 + (y + 2) * 27 + r * 9;
              for (int64_t x = begin; x < 23; x += 3) lane[(x + 2) / 3] = (x0 + 1932 * o0 + 966 * o1 + c * 483 + y * 23)[x * 1];
            }
          }
        }
        const grid pixels{1, 7, 8, 621, 81, 1};
        const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
          for (int r = 0; r < MR; ++r) {
            [[maybe_unused]] const int64_t o2 = m + r;
            const vf v3 = splat_memory(p1 + 4 * o1 + o2);
            const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
              const vf v2 = sum;
              store(out0 + 448 * o0 + 224 * o1 + 56 * o2 + i, v2 + v3, lanes);
            };
            if (n + NR <= 56) {
              for (int t = 0; t < NR / W; ++t) columns_at(n + t * W, tile[r][t], all_lanes{});
              continue;
            }
            for (int t = 0; t < NR / W; ++t) {
              const int64_t i = n + t * W;
              if (i + W <= 56) columns_at(i, tile[r][t], all_lanes{});
            }
          }
        };
        for (int64_t n0 = 0; n0 < 56; n0 += 48) {
          const int64_t n1 = least<int64_t>(n0 + 48, 56);
          constexpr int64_t k0 = 0, channels = 2, depth = channels * 9;
          for (int64_t n = n0; n < n1; n += NR) {
            float* b = b_panels;
            const pixel_places<NR> at(n, pixels);
            for (int64_t m = 0; m < 4; m += MR) {
              vf tile[MR][NR / W];
              multiply_patches<false>(weights + (k0 * 9) * 4 + m * depth, b, image + k0 * 621, at, channels, 621, tap_image + 0, 9, tile);
              finish(tile, m, n);
            }
          }
        }
      }
    }
  }
}
