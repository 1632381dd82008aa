// Task: product_turned
// Reference: aten.permute.default, aten.permute.default, aten.mm.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":20,"m":15,"n":32,"rows":5,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1}],"threads":1}
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
  // Region 1: matrix product, m x n x k = 13 x 50 x 20
  {
    constexpr int MR = 5, NR = 2 * W; // tile in registers: rows x columns
    alignas(64) static float a_panels[308];
    alignas(64) static float b_panels[320];
    for (int64_t m = 0; m < 13; m += MR)
      pack_rows<MR, 1, 13>(a_panels + m * 20, x0 + 1 * m + 13 * 0, 13 - m, 20);
    const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
      for (int r = 0; r < MR && m + r < 13; ++r) {
        [[maybe_unused]] const int64_t o0 = m + r;
        const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
          const vf v2 = sum;
          store(out0 + 50 * o0 + i, v2, lanes);
        };
        if (n + NR <= 50) {
          for (int t = 0; t < NR / W; ++t) columns_at(n + t * W, tile[r][t], all_lanes{});
          continue;
        }
        for (int t = 0; t < NR / W; ++t) {
          const int64_t i = n + t * W;
          if (i + W <= 50) columns_at(i, tile[r][t], all_lanes{});
          else if (i < 50) columns_at(i, tile[r][t], some_lanes<2>{});
        }
      }
    };
    for (int64_t n0 = 0; n0 < 50; n0 += 32) {
      const int64_t n1 = least<int64_t>(n0 + 32, 50);
      constexpr int64_t k0 = 0, depth = 20;
      for (int64_t n = n0; n < n1; n += NR) {
        float* b = b_panels;
        pack_columns<NR, 20, 1>(b, x1 + 20 * n + 1 * k0, 50 - n, depth);
        for (int64_t m = 0; m < 13; m += MR) {
          vf tile[MR][NR / W];
          multiply_tile(depth, a_panels + k0 * 15 + m * depth, b, tile);
          finish(tile, m, n);
        }
      }
    }
  }
}
