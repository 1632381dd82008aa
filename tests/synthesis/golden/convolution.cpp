// Task: convolution
// Reference: aten.convolution.default, aten.relu.default, aten.add.Tensor
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":45,"m":10,"n":48,"rows":5,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":3}],"threads":1}
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
  const float* p2 = static_cast<const float*>(args->params[2].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: convolution, m x n x k = 10 x 77 x 45
  {
    constexpr int MR = 5, NR = 2 * W; // tile in registers: rows x columns
    // Taps: where each meets the padded image and where its weight lies.
    constexpr int32_t tap_image[] = {0, 1, 2, 3, 4, 15, 16, 17, 18, 19, 30, 31, 32, 33, 34};
    constexpr int32_t tap_weight[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    alignas(64) static float weights[450];
    alignas(64) static float image[769];
    alignas(64) static float b_panels[720];
    {
      constexpr int64_t k0 = 0, channels = 3, depth = channels * 15;
      for (int64_t m = 0; m < 10; m += MR)
        pack_weights<MR>(weights + (k0 * 15) * 10 + m * depth, p1 + m * 45 + k0 * 15, 10 - m, 45, channels, 15, tap_weight + 0, 15);
    }
    for (int64_t o0 = 0; o0 < 2; ++o0) {
      // the image, inside of a border of zeros
      for (int64_t c = 0; c < 3; ++c) {
        for (int64_t y = 0; y < 13; ++y) {
          copy_row<1>(image + c * 225 + (y + 1) * 15 + 2, x0 + 429 * o0 + c * 143 + y * 11, 11);
        }
      }
      const grid pixels{1, 7, 11, 225, 30, 1};
      const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
        for (int r = 0; r < MR; ++r) {
          [[maybe_unused]] const int64_t o1 = m + r;
          const vf v4 = splat_memory(p2 + o1);
          const vf v7 = splat_memory(p0 + o1);
          const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
            const vf v3 = sum;
            store(out0 + 770 * o0 + 77 * o1 + i, v_max_or_second(splat(0.0f), v3 + v4) + v7, lanes);
          };
          if (n + NR <= 77) {
            for (int t = 0; t < NR / W; ++t) columns_at(n + t * W, tile[r][t], all_lanes{});
            continue;
          }
          for (int t = 0; t < NR / W; ++t) {
            const int64_t i = n + t * W;
            if (i + W <= 77) columns_at(i, tile[r][t], all_lanes{});
            else if (i < 77) columns_at(i, tile[r][t], some_lanes<5>{});
          }
        }
      };
      for (int64_t n0 = 0; n0 < 77; n0 += 48) {
        const int64_t n1 = least<int64_t>(n0 + 48, 77);
        constexpr int64_t k0 = 0, channels = 3, depth = channels * 15;
        for (int64_t n = n0; n < n1; n += NR) {
          float* b = b_panels;
          const pixel_places<NR> at(n, pixels);
          for (int64_t m = 0; m < 10; m += MR) {
            vf tile[MR][NR / W];
            if (m == 0) multiply_patches<true>(weights + (k0 * 15) * 10 + m * depth, b, image + k0 * 225, at, channels, 225, tap_image + 0, 15, tile);
            else multiply_tile(depth, weights + (k0 * 15) * 10 + m * depth, b, tile);
            finish(tile, m, n);
          }
        }
      }
    }
  }
}
