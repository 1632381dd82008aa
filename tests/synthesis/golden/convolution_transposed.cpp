// Task: convolution_transposed
// Reference: aten.convolution.default, aten.mul.Tensor, aten.sub.Tensor
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":8,"m":4,"n":48,"rows":4,"vectors":3,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":4}],"threads":1}
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
  // Region 1: transposed convolution, m x n x k = 3 x 56 x 8
  {
    constexpr int MR = 4, NR = 3 * W; // tile in registers: rows x columns
    // Taps: where each meets the padded image and where its weight lies.
    constexpr int32_t tap_image[] = {0, 0, 1, 0, 9, 0, 9, 0, 10, 9, 1, 0};
    constexpr int32_t tap_weight[] = {5, 6, 4, 7, 1, 9, 2, 10, 0, 3, 8, 11};
    // Output pixels whose planes and rows are equal modulo the strides form a phase; SX pixels of a row lie side by side.
    constexpr int SX = 3;
    struct phase { int64_t tap[SX], taps[SX], planes, rows, columns, out; };
    constexpr phase phases[] = {{{0, 1, 2}, {1, 1, 2}, 1, 7, 9, 0}, {{4, 6, 8}, {2, 2, 4}, 1, 6, 9, 26}};
    alignas(64) static float weights[96];
    alignas(64) static float image[240];
    alignas(64) static float b_panels[576];
    for (int64_t o1 = 0; o1 < 2; ++o1) {
      for (const auto& p : phases) {
        constexpr int64_t k0 = 0, channels = 2;
        for (int x = 0; x < SX; ++x)
          for (int64_t m = 0; m < 3; m += MR)
            pack_weights<MR>(weights + (2 * p.tap[x] + k0 * p.taps[x]) * 4 + m * channels * p.taps[x], p0 + 72 * o1 + m * 12 + k0 * 36, 3 - m, 12, channels, 36, tap_weight + p.tap[x], p.taps[x]);
      }
      for (int64_t o0 = 0; o0 < 2; ++o0) {
        // the image, inside of a border of zeros
        for (int64_t c = 0; c < 2; ++c) {
          for (int64_t y = 0; y < 7; ++y) {
            copy_row<1>(image + c * 63 + (y + 0) * 9 + 0, x0 + 252 * o0 + 126 * o1 + c * 63 + y * 9, 9);
          }
        }
        for (const auto& p : phases) {
          const int64_t columns = p.planes * p.rows * p.columns;
          const grid pixels{p.planes, p.rows, p.columns, 63, 9, 1};
          const int64_t n0 = 0, n1 = columns;
          constexpr int64_t k0 = 0, channels = 2;
          for (int64_t n = n0; n < n1; n += NR) {
            constexpr int64_t panel = 8 * NR;
            float* b = b_panels;
            {
              const pixel_places<NR> at(n, pixels);
              for (int x = 0; x < SX; ++x) pack_patches(b + x * panel, image + k0 * 63, at, channels, 63, tap_image + p.tap[x], p.taps[x]);
            }
            const row_runs<NR> runs(n, pixels, 0, 52, SX, 26);
            const auto finish = [&](const vf (&tile)[SX][MR][NR / W], int64_t m, int64_t) __attribute__((always_inline)) {
              for (int r = 0; r < MR && m + r < 3; ++r) {
                [[maybe_unused]] const int64_t o2 = m + r;
                const vf v3 = splat_memory(p1 + 3 * o1 + o2);
                vf line[SX][NR / W];
                for (int x = 0; x < SX; ++x)
                  for (int t = 0; t < NR / W; ++t) {
                    const vf sum = tile[x][r][t];
                    [[maybe_unused]] constexpr all_lanes lanes{};
                    const vf v2 = sum;
                    line[x][t] = ((v2 + v3) * 2.0f) - 1.0f;
                  }
                store_interleaved(out0 + 2028 * o0 + 1014 * o1 + 338 * o2 + p.out, line, runs);
              }
            };
            for (int64_t m = 0; m < 3; m += MR) {
              vf tile[SX][MR][NR / W];
              for (int x = 0; x < SX; ++x) {
                multiply_tile(channels * p.taps[x], weights + (2 * p.tap[x] + k0 * p.taps[x]) * 4 + m * channels * p.taps[x], b + x * panel, tile[x]);
              }
              finish(tile, m, n);
            }
          }
        }
      }
    }
  }
}
