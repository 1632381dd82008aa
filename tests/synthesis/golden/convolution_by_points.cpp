// Task: convolution_by_points
// Reference: aten.convolution.default, aten.gelu.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":5,"m":12,"n":32,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":3}],"threads":1}
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
  // Region 1: matrix product, m x n x k = 12 x 63 x 5
  {
    constexpr int MR = 6, NR = 2 * W; // tile in registers: rows x columns
    alignas(64) static float a_panels[68];
    alignas(64) static float b_panels[320];
    for (int64_t m = 0; m < 12; m += MR)
      pack_rows<MR, 5, 1>(a_panels + m * 5, p0 + 5 * m + 1 * 0, 12 - m, 5);
    for (int64_t o0 = 0; o0 < 2; ++o0) {
      const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
        for (int r = 0; r < MR; ++r) {
          [[maybe_unused]] const int64_t o1 = m + r;
          const vf v3 = splat_memory(p1 + o1);
          const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
            const vf v2 = sum;
            const vf v4 = v2 + v3;
            const vf v6 = v4 * 0.5f;
            const vf v9 = v_erf(v4 * 0.707106781f);
            store(out0 + 756 * o0 + 63 * o1 + i, v6 + (v6 * v9), lanes);
          };
          if (n + NR <= 63) {
            for (int t = 0; t < NR / W; ++t) columns_at(n + t * W, tile[r][t], all_lanes{});
            continue;
          }
          for (int t = 0; t < NR / W; ++t) {
            const int64_t i = n + t * W;
            if (i + W <= 63) columns_at(i, tile[r][t], all_lanes{});
            else if (i < 63) columns_at(i, tile[r][t], some_lanes<7>{});
          }
        }
      };
      for (int64_t n0 = 0; n0 < 63; n0 += 32) {
        const int64_t n1 = least<int64_t>(n0 + 32, 63);
        constexpr int64_t k0 = 0, depth = 5;
        for (int64_t n = n0; n < n1; n += NR) {
          float* b = b_panels + (n - n0) % (4 * NR) * depth;
          if ((n - n0) % (4 * NR) == 0) pack_panels<4, NR, 1, 63>(b, x0 + 315 * o0 + 1 * n + 63 * k0, n1 - n, depth);
          for (int64_t m = 0; m < 12; m += MR) {
            vf tile[MR][NR / W];
            multiply_tile(depth, a_panels + k0 * 12 + m * depth, b, tile);
            finish(tile, m, n);
          }
        }
      }
    }
  }
}
