// Task: product_in_triangle
// Reference: aten.mm.default, aten.triu.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":40,"m":40,"n":40,"rows":8,"vectors":1,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1}],"threads":1}
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
  // Region 1: matrix product, m x n x k = 40 x 40 x 40
  {
    constexpr int MR = 8, NR = 1 * W; // tile in registers: rows x columns
    alignas(64) static float a_panels[1608];
    alignas(64) static float b_panels[1280];
    for (int64_t m = 0; m < 40; m += MR)
      pack_rows<MR, 40, 1>(a_panels + m * 40, x0 + 40 * m + 1 * 0, 40 - m, 40);
    const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
      for (int r = 0; r < MR; ++r) {
        [[maybe_unused]] const int64_t o0 = m + r;
        const vi v1 = ramp<vi>(o0, 0);
        const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
          const vi v0 = ramp<vi>(i, 1);
          const vf v5 = sum;
          store(out0 + 40 * o0 + i, select(mask(v0 >= v1), v5, splat(0.0f)), lanes);
        };
        {
          for (int t = 0; t < NR / W; ++t) columns_at(n + t * W, tile[r][t], all_lanes{});
        }
      }
    };
    constexpr int64_t n0 = 0, n1 = 40;
    constexpr int64_t k0 = 0, depth = 40;
    for (int64_t n = n0; n < n1; n += NR) {
      float* b = b_panels + (n - n0) % (4 * NR) * depth;
      if ((n - n0) % (4 * NR) == 0) pack_panels<4, NR, 1, 40>(b, x1 + 1 * n + 40 * k0, n1 - n, depth);
      for (int64_t m = 0; m < 40; m += MR) {
        // tiles below the diagonal are zeros
        const bool needed = n + NR > m + 0;
        vf tile[MR][NR / W] = {};
        if (needed) multiply_tile(depth, a_panels + k0 * 40 + m * depth, b, tile);
        finish(tile, m, n);
      }
    }
  }
}
