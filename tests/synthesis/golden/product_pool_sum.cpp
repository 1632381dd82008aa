// Task: product_pool_sum
// Reference: aten.expand.default, aten._reshape_alias.default, aten.expand.default,
//    aten._reshape_alias.default, aten.bmm.default, aten._unsafe_view.default, aten.avg_pool2d.default,
//    aten.sum.dim_IntList
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":2,"m":8,"n":8,"rows":8,"vectors":1,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":2},{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":2}],"threads":1}
// Written by PRAGMA's built-in coder (docs/synthesis.md).
#include "pragma_kernel.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace {

// (helpers)

alignas(64) float scratch0[6]; // between regions, one batch element

} // namespace

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x0 = static_cast<const float*>(args->inputs[0].data);
  const float* x1 = static_cast<const float*>(args->inputs[1].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: matrix product, m x n x k = 3 x 2 x 2
  {
    constexpr int MR = 8, NR = 1 * W; // tile in registers: rows x columns
    alignas(64) static float a_panels[24];
    alignas(64) static float b_panels[16];
    for (int64_t item = 0; item < 4; ++item) {
      for (int64_t m = 0; m < 3; m += MR)
        pack_rows<MR, 2, 1>(a_panels + m * 2, x0 + 6 * item + 2 * m + 1 * 0, 3 - m, 2);
      const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
        for (int r = 0; r < MR && m + r < 3; ++r) {
          [[maybe_unused]] const int64_t o1 = m + r;
          const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
            const vf v2 = sum;
            store(scratch0 + 2 * o1 + i, v2, lanes);
          };
          for (int t = 0; t < NR / W; ++t) {
            const int64_t i = n + t * W;
            if (i < 2) columns_at(i, tile[r][t], some_lanes<2>{});
          }
        }
      };
      constexpr int64_t n0 = 0, n1 = 2;
      constexpr int64_t k0 = 0, depth = 2;
      for (int64_t n = n0; n < n1; n += NR) {
        float* b = b_panels;
        pack_columns<NR, 1, 2>(b, x1 + 4 * item + 1 * n + 2 * k0, 2 - n, depth);
        for (int64_t m = 0; m < 3; m += MR) {
          vf tile[MR][NR / W];
          multiply_tile(depth, a_panels + k0 * 8 + m * depth, b, tile);
          finish(tile, m, n);
        }
      }
      // Region 2: 2 (reduced) x 2 (reduced) (vectorised)
      {
        double sum1_total = 0;
        vf sum1_part[1];
        for (auto& part : sum1_part) part = splat(0.0f);
        for (int64_t r1 = 0; r1 < 2; ++r1) {
          const auto pass1 = [&](int64_t i, auto lanes, vf& sum1) __attribute__((always_inline)) {
            sum1 = keep(lanes, sum1 + load(scratch0 + 2 * r1 + i, lanes), sum1);
          };
          pass1(0, some_lanes<2>{}, sum1_part[0]);
        }
        sum1_total += total(sum1_part);
        const vf sum1 = splat(float(sum1_total));
        const vf v3 = sum1 * 0.25f;
        store_first(out0 + item, v3);
      }
    }
  }
}
