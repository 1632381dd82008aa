// Task: linear
// Reference: aten.t.default, aten.addmm.default, aten.relu.default, aten.mul.Tensor
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":33,"m":8,"n":24,"rows":4,"vectors":3,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1}],"threads":1}
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
  // Region 1: matrix product, m x n x k = 7 x 21 x 33
  {
    constexpr int MR = 4, NR = 3 * W; // tile in registers: rows x columns
    alignas(64) static float a_panels[272];
    alignas(64) static float b_panels[792];
    for (int64_t m = 0; m < 7; m += MR)
      pack_rows<MR, 33, 1>(a_panels + m * 33, x0 + 33 * m + 1 * 0, 7 - m, 33);
    const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
      for (int r = 0; r < MR && m + r < 7; ++r) {
        [[maybe_unused]] const int64_t o0 = m + r;
        const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
          const vf v3 = sum;
          store(out0 + 21 * o0 + i, v_max_or_second(splat(0.0f), v3 + load(p1 + i, lanes)) * 2.0f, lanes);
        };
        for (int t = 0; t < NR / W; ++t) {
          const int64_t i = n + t * W;
          if (i + W <= 21) columns_at(i, tile[r][t], all_lanes{});
          else if (i < 21) columns_at(i, tile[r][t], some_lanes<5>{});
        }
      }
    };
    constexpr int64_t n0 = 0, n1 = 21;
    constexpr int64_t k0 = 0, depth = 33;
    for (int64_t n = n0; n < n1; n += NR) {
      float* b = b_panels;
      pack_columns<NR, 33, 1>(b, p0 + 33 * n + 1 * k0, 21 - n, depth);
      for (int64_t m = 0; m < 7; m += MR) {
        vf tile[MR][NR / W];
        multiply_tile(depth, a_panels + k0 * 8 + m * depth, b, tile);
        finish(tile, m, n);
      }
    }
  }
}
