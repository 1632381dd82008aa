// Task: convolution_pool_norm
// Reference: aten.convolution.default, aten.max_pool2d_with_indices.default, aten.native_group_norm.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":27,"m":8,"n":120,"rows":4,"vectors":3,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":3},{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":4,"together":1,"unroll":4,"vector_axis":1},{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1},{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":3}],"threads":1}
// Written by PRAGMA's built-in coder (docs/synthesis.md).
#include "pragma_kernel.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace {

// (helpers)

alignas(64) float scratch0[960]; // between regions, one batch element
alignas(64) float scratch1[2]; // between regions, one batch element
alignas(64) float scratch2[240]; // between regions, one batch element

} // namespace

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x0 = static_cast<const float*>(args->inputs[0].data);
  const float* p0 = static_cast<const float*>(args->params[0].data);
  const float* p1 = static_cast<const float*>(args->params[1].data);
  const float* p2 = static_cast<const float*>(args->params[2].data);
  const float* p3 = static_cast<const float*>(args->params[3].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: convolution, m x n x k = 8 x 120 x 27
  {
    constexpr int MR = 4, NR = 3 * W; // tile in registers: rows x columns
    // Taps: where each meets the padded image and where its weight lies.
    constexpr int32_t tap_image[] = {0, 1, 2, 14, 15, 16, 28, 29, 30};
    constexpr int32_t tap_weight[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    alignas(64) static float weights[216];
    alignas(64) static float image[628];
    alignas(64) static float b_panels[648];
    {
      constexpr int64_t k0 = 0, channels = 3, depth = channels * 9;
      for (int64_t m = 0; m < 8; m += MR)
        pack_weights<MR>(weights + (k0 * 9) * 8 + m * depth, p0 + m * 27 + k0 * 9, 8 - m, 27, channels, 9, tap_weight + 0, 9);
    }
    for (int64_t item = 0; item < 2; ++item) {
      // the image, inside of a border of zeros
      for (int64_t c = 0; c < 3; ++c) {
        for (int64_t y = 0; y < 12; ++y) {
          copy_row<1>(image + c * 168 + (y + 0) * 14 + 0, x0 + 504 * item + c * 168 + y * 14, 14);
        }
      }
      const grid pixels{1, 10, 12, 168, 14, 1};
      const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
        for (int r = 0; r < MR; ++r) {
          [[maybe_unused]] const int64_t o1 = m + r;
          const vf v3 = splat_memory(p1 + o1);
          const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
            const vf v2 = sum;
            store(scratch0 + 120 * o1 + i, v2 + v3, lanes);
          };
          {
            for (int t = 0; t < NR / W; ++t) columns_at(n + t * W, tile[r][t], all_lanes{});
          }
        }
      };
      constexpr int64_t n0 = 0, n1 = 120;
      constexpr int64_t k0 = 0, channels = 3, depth = channels * 9;
      for (int64_t n = n0; n < n1; n += NR) {
        float* b = b_panels;
        const pixel_places<NR> at(n, pixels);
        for (int64_t m = 0; m < 8; m += MR) {
          vf tile[MR][NR / W];
          if (m == 0) multiply_patches<true>(weights + (k0 * 9) * 8 + m * depth, b, image + k0 * 168, at, channels, 168, tap_image + 0, 9, tile);
          else multiply_tile(depth, weights + (k0 * 9) * 8 + m * depth, b, tile);
          finish(tile, m, n);
        }
      }
      // Region 2: 40 x 6 (vectorised) x 2 (window) x 2 (window)
      {
        // window over 4 positions
        for (int64_t o0 = 0; o0 < 40; ++o0) {
          const auto columns = [&](auto count, int64_t i, auto lanes) __attribute__((always_inline)) {
            constexpr int T = decltype(count)::value;
            vf max1[T];
            for (int t = 0; t < T; ++t) max1[t] = splat(-infinity);
            for (int64_t k2 = 0; k2 < 2; ++k2) {
              for (int64_t k3 = 0; k3 < 2; ++k3) {
                for (int t = 0; t < T; ++t) {
                  const int64_t j = i + t * W;
                  take_higher(max1[t], load_strided<2>(scratch0 + 24 * o0 + 2 * j + 12 * k2 + k3, lanes), all_lanes{});
                }
              }
            }
            for (int t = 0; t < T; ++t) {
              const int64_t j = i + t * W;
              store(scratch2 + 6 * o0 + j, max1[t], lanes);
            }
          };
          columns(vectors<1>{}, 0, some_lanes<6>{});
        }
      }
      // Region 3: 2 x 120 (reduced) (vectorised)
      {
        for (int64_t o0 = 0; o0 < 2; ++o0) {
          double sum1_total = 0;
          vf sum1_part[4];
          for (auto& part : sum1_part) part = splat(0.0f);
          const auto pass1 = [&](int64_t i, auto lanes, vf& sum1) __attribute__((always_inline)) {
            sum1 = keep(lanes, sum1 + load(scratch2 + 120 * o0 + i, lanes), sum1);
          };
          for (int64_t i = 0; i < 96; i += 32)
            for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, sum1_part[u]);
          for (int64_t i = 96; i < 120; i += W) pass1(i, all_lanes{}, sum1_part[0]);
          sum1_total += total(sum1_part);
          const vf sum1 = splat(float(sum1_total));
          store_first(scratch1 + o0, sum1);
        }
      }
      // Region 4: 2 x 4 (reduced) x 30 (reduced) (vectorised)
      {
        for (int64_t o1 = 0; o1 < 2; ++o1) {
          const vf v1 = splat_memory(scratch1 + o1);
          const vf v3 = v1 * 0.00833333333f;
          // pass 1: sum
          double sum6_total = 0;
          vf sum6_part[3];
          for (auto& part : sum6_part) part = splat(0.0f);
          for (int64_t r2 = 0; r2 < 4; ++r2) {
            const auto pass1 = [&](int64_t i, auto lanes, vf& sum6) __attribute__((always_inline)) {
              const vf v4 = load(scratch2 + 120 * o1 + 30 * r2 + i, lanes) - v3;
              sum6 = keep(lanes, sum6 + (v4 * v4), sum6);
            };
            for (int64_t i = 0; i < 24; i += 24)
              for (int u = 0; u < 3; ++u) pass1(i + u * W, all_lanes{}, sum6_part[u]);
            pass1(24, some_lanes<6>{}, sum6_part[0]);
          }
          sum6_total += total(sum6_part);
          const vf sum6 = splat(float(sum6_total));
          const vf v7 = sum6 * 0.00833333333f;
          const vf v9 = v7 + 1e-05f;
          const vf v10 = v_rsqrt(v9);
          // pass 2: results
          for (int64_t r2 = 0; r2 < 4; ++r2) {
            const auto pass2 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
              const vf v13 = (load(scratch2 + 120 * o1 + 30 * r2 + i, lanes) - v3) * (v10 * splat_memory(p2 + 4 * o1 + r2));
              store(out0 + 240 * item + 120 * o1 + 30 * r2 + i, v13 + splat_memory(p3 + 4 * o1 + r2), lanes);
            };
            for (int64_t i = 0; i < 24; i += 24)
              for (int u = 0; u < 3; ++u) pass2(i + u * W, all_lanes{});
            pass2(24, some_lanes<6>{});
          }
        }
      }
    }
  }
}
