// Task: products
// Reference: aten.bmm.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":17,"m":10,"n":16,"rows":5,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":2}],"threads":1}
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
  // Region 1: matrix product, m x n x k = 9 x 10 x 17
  {
    constexpr int MR = 5, NR = 2 * W; // tile in registers: rows x columns
    alignas(64) static float a_panels[178];
    alignas(64) static float b_panels[272];
    for (int64_t o0 = 0; o0 < 3; ++o0) {
      for (int64_t m = 0; m < 9; m += MR)
        pack_rows<MR, 17, 1>(a_panels + m * 17, x0 + 153 * o0 + 17 * m + 1 * 0, 9 - m, 17);
      const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
        for (int r = 0; r < MR && m + r < 9; ++r) {
          [[maybe_unused]] const int64_t o1 = m + r;
          const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
            const vf v2 = sum;
            store(out0 + 90 * o0 + 10 * o1 + i, v2, lanes);
          };
          for (int t = 0; t < NR / W; ++t) {
            const int64_t i = n + t * W;
            if (i + W <= 10) columns_at(i, tile[r][t], all_lanes{});
            else if (i < 10) columns_at(i, tile[r][t], some_lanes<2>{});
          }
        }
      };
      constexpr int64_t n0 = 0, n1 = 10;
      constexpr int64_t k0 = 0, depth = 17;
      for (int64_t n = n0; n < n1; n += NR) {
        float* b = b_panels;
        pack_columns<NR, 1, 10>(b, x1 + 170 * o0 + 1 * n + 10 * k0, 10 - n, depth);
        for (int64_t m = 0; m < 9; m += MR) {
          vf tile[MR][NR / W];
          multiply_tile(depth, a_panels + k0 * 10 + m * depth, b, tile);
          finish(tile, m, n);
        }
      }
    }
  }
}
