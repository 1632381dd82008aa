// Task: convolution_3d
// Reference: aten.convolution.default, aten.tanh.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":54,"m":8,"n":240,"rows":4,"vectors":3,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":3}],"threads":1}
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
  // Region 1: convolution, m x n x k = 8 x 240 x 54
  {
    constexpr int MR = 4, NR = 3 * W; // tile in registers: rows x columns
    // Taps: where each meets the padded image and where its weight lies.
    constexpr int32_t tap_image[] = {0, 1, 2, 7, 8, 9, 63, 64, 65, 70, 71, 72, 126, 127, 128, 133, 134, 135};
    constexpr int32_t tap_weight[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    constexpr tap_row tap_rows[] = {{1, 6, 1, 8}, {1, 6, 0, 7}, {0, 6, 1, 8}, {0, 6, 0, 7}, {0, 5, 1, 8}, {0, 5, 0, 7}};
    alignas(64) static float weights[432];
    alignas(64) static float image[1622];
    alignas(64) static float b_panels[1296];
    {
      constexpr int64_t k0 = 0, channels = 3, depth = channels * 18;
      for (int64_t m = 0; m < 8; m += MR)
        for (int64_t r = 0; r < 6; ++r)
          pack_weights<MR>(weights + (k0 * 18) * 8 + m * depth + r * channels * 3 * MR, p0 + m * 54 + k0 * 18, 8 - m, 54, channels, 18, tap_weight + r * 3, 3);
    }
    for (int64_t o4 = 0; o4 < 1; ++o4) {
      // the image, inside of a border of zeros
      for (int64_t c = 0; c < 3; ++c) {
        for (int64_t z = 0; z < 6; ++z) {
          for (int64_t y = 0; y < 7; ++y) {
            copy_row<1>(image + c * 504 + (z + 1) * 63 + (y + 1) * 7 + 1, x0 + c * 210 + z * 35 + y * 5, 5);
          }
        }
      }
      const grid pixels{6, 8, 5, 63, 7, 1};
      const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
        for (int r = 0; r < MR; ++r) {
          [[maybe_unused]] const int64_t o0 = m + r;
          const vf v3 = splat_memory(p1 + o0);
          const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
            const vf v2 = sum;
            const vf v5 = v_tanh(v2 + v3);
            store(out0 + 240 * o0 + i, v5, lanes);
          };
          {
            for (int t = 0; t < NR / W; ++t) columns_at(n + t * W, tile[r][t], all_lanes{});
          }
        }
      };
      constexpr int64_t n0 = 0, n1 = 240;
      constexpr int64_t k0 = 0, channels = 3, depth = channels * 18;
      for (int64_t n = n0; n < n1; n += NR) {
        float* b = b_panels;
        const pixel_places<NR> at(n, pixels);
        const met_rows rows(n, NR, pixels, tap_rows);
        for (int64_t m = 0; m < 8; m += MR) {
          vf tile[MR][NR / W];
          if (m == 0) multiply_patches<true>(weights + (k0 * 18) * 8 + m * depth, b, image + k0 * 504, at, channels, 504, tap_image + 0, 3, tile, rows);
          else multiply_met(rows, channels * 3, weights + (k0 * 18) * 8 + m * depth, b, tile);
          finish(tile, m, n);
        }
      }
    }
  }
}
