// Task: convolution_transposed_plain
// Reference: aten.convolution.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":36,"m":6,"n":32,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":3}],"threads":1}
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
  // Region 1: transposed convolution, m x n x k = 6 x 63 x 36
  {
    constexpr int MR = 6, NR = 2 * W; // tile in registers: rows x columns
    // Taps: where each meets the padded image and where its weight lies.
    constexpr int32_t tap_image[] = {24, 23, 22, 13, 12, 11, 2, 1, 0};
    constexpr int32_t tap_weight[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    alignas(64) static float weights[216];
    alignas(64) static float image[482];
    alignas(64) static float b_panels[576];
    {
      constexpr int64_t k0 = 0, channels = 4, depth = channels * 9;
      for (int64_t m = 0; m < 6; m += MR)
        pack_weights<MR>(weights + (k0 * 9) * 6 + m * depth, p0 + m * 9 + k0 * 54, 6 - m, 9, channels, 54, tap_weight + 0, 9);
    }
    for (int64_t o0 = 0; o0 < 2; ++o0) {
      // the image, inside of a border of zeros
      for (int64_t c = 0; c < 4; ++c) {
        for (int64_t y = 0; y < 7; ++y) {
          copy_row<1>(image + c * 99 + (y + 1) * 11 + 1, x0 + 252 * o0 + c * 63 + y * 9, 9);
        }
      }
      const grid pixels{1, 7, 9, 99, 11, 1};
      const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
        for (int r = 0; r < MR; ++r) {
          [[maybe_unused]] const int64_t o1 = m + r;
          const vf v3 = splat_memory(p1 + o1);
          const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
            const vf v2 = sum;
            store(out0 + 378 * o0 + 63 * o1 + i, v2 + v3, lanes);
          };
          if (n + NR <= 63) {
            for (int t = 0; t < NR / W; ++t) columns_at(n + t * W, tile[r][t], all_lanes{});
            continue;
          }
          for (int t = 0; t < NR / W; ++t) {
            const int64_t i = n + t * W;
            if (i + W <= 63) columns_at(i, tile[r][t], all_lanes{});
            else if (i < 63) columns_at(i, tile[r][t], some_lanes<7>{});
          }
        }
      };
      for (int64_t n0 = 0; n0 < 63; n0 += 32) {
        const int64_t n1 = least<int64_t>(n0 + 32, 63);
        constexpr int64_t k0 = 0, channels = 4, depth = channels * 9;
        for (int64_t n = n0; n < n1; n += NR) {
          float* b = b_panels;
          const pixel_places<NR> at(n, pixels);
          for (int64_t m = 0; m < 6; m += MR) {
            vf tile[MR][NR / W];
            multiply_patches<false>(weights + (k0 * 9) * 6 + m * depth, b, image + k0 * 99, at, channels, 99, tap_image + 0, 9, tile);
            finish(tile, m, n);
          }
        }
      }
    }
  }
}
