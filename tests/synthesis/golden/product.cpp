// Task: product
// Reference: aten.mm.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":352,"m":150,"n":96,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1}],"threads":1}
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
  const float* x1 = static_cast<const float*>(args->inputs[1].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: matrix product, m x n x k = 300 x 190 x 700
  {
    constexpr int MR = 6, NR = 2 * W; // tile in registers: rows x columns
    alignas(64) static float a_panels[210008];
    alignas(64) static float b_panels[33792];
    alignas(64) static float partial[28800];
    for (int64_t k0 = 0; k0 < 700; k0 += 352) {
      for (int64_t m = 0; m < 300; m += MR) {
        const int64_t depth = least<int64_t>(352, 700 - k0);
        pack_rows<MR, 700, 1>(a_panels + k0 * 300 + m * depth, x0 + 700 * m + 1 * k0, 300 - m, depth);
      }
    }
    const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
      for (int r = 0; r < MR; ++r) {
        [[maybe_unused]] const int64_t o0 = m + r;
        const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
          const vf v2 = sum;
          store(out0 + 190 * o0 + i, v2, lanes);
        };
        if (n + NR <= 190) {
          for (int t = 0; t < NR / W; ++t) columns_at(n + t * W, tile[r][t], all_lanes{});
          continue;
        }
        for (int t = 0; t < NR / W; ++t) {
          const int64_t i = n + t * W;
          if (i + W <= 190) columns_at(i, tile[r][t], all_lanes{});
          else if (i < 190) columns_at(i, tile[r][t], some_lanes<6>{});
        }
      }
    };
    constexpr int64_t steps = 700;
    for (int64_t n0 = 0; n0 < 190; n0 += 96) {
      const int64_t n1 = least<int64_t>(n0 + 96, 190);
      for (int64_t k0 = 0; k0 < steps; k0 += 352) {
        const int64_t depth = least<int64_t>(352, steps - k0);
        for (int64_t m0 = 0; m0 < 300; m0 += 150) {
          const int64_t m1 = least<int64_t>(m0 + 150, 300);
          for (int64_t n = n0; n < n1; n += NR) {
            float* b = b_panels + (n - n0) * depth;
            if (m0 == 0 && (n - n0) % (4 * NR) == 0) pack_panels<4, NR, 1, 190>(b, x1 + 1 * n + 190 * k0, n1 - n, depth);
            for (int64_t m = m0; m < m1; m += MR) {
              vf tile[MR][NR / W];
              ask_for_partial(tile, partial + m * 96 + (n - n0) * MR);
              multiply_tile(depth, a_panels + k0 * 300 + m * depth, b, tile);
              float* partial_tile = partial + m * 96 + (n - n0) * MR;
              if (k0 > 0) add_partial(tile, partial_tile);
              if (k0 + depth >= steps) finish(tile, m, n);
              else keep_partial(tile, partial_tile);
            }
          }
        }
      }
    }
  }
}
