// Task: batch_norm
// Reference: aten.native_batch_norm.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":2}],"threads":1}
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
  // Region 1: 4 (reduced) x 3 x 30 (reduced) (vectorised)
  {
    for (int64_t o1 = 0; o1 < 3; ++o1) {
      const vf v11 = splat_memory(p0 + o1);
      const vf v14 = splat_memory(p1 + o1);
      // pass 1: sum and squared distances
      moments moments1;
      vf sum1_part[3];
      for (auto& part : sum1_part) part = splat(0.0f);
      for (int64_t r0 = 0; r0 < 4; ++r0) {
        const auto pass1 = [&](int64_t i, auto lanes, vf& sum1) __attribute__((always_inline)) {
          sum1 = keep(lanes, sum1 + load(x0 + 90 * r0 + 30 * o1 + i, lanes), sum1);
        };
        for (int64_t i = 0; i < 24; i += 24)
          for (int u = 0; u < 3; ++u) pass1(i + u * W, all_lanes{}, sum1_part[u]);
        pass1(24, some_lanes<6>{}, sum1_part[0]);
      }
      const double block_sum1 = total(sum1_part);
      const vf block_mean1 = splat(float(block_sum1 / double(120)));
      vf squares1_part[3] = {};
      for (int64_t r0 = 0; r0 < 4; ++r0) {
        const auto distance1 = [&](int64_t i, auto lanes, vf& squares) __attribute__((always_inline)) {
          const vf distance = load(x0 + 90 * r0 + 30 * o1 + i, lanes) - block_mean1;
          squares = keep(lanes, squares + distance * distance, squares);
        };
        for (int64_t i = 0; i < 24; i += 24)
          for (int u = 0; u < 3; ++u) distance1(i + u * W, all_lanes{}, squares1_part[u]);
        distance1(24, some_lanes<6>{}, squares1_part[0]);
      }
      moments1.add(double(120), block_sum1, total(squares1_part), block_mean1[0]);
      const vf sum1 = splat(float(moments1.sum()));
      const vf sum6 = splat(float(moments1.squares));
      const vf v3 = sum1 * 0.00833333333f;
      const vf v7 = sum6 * 0.00833333333f;
      const vf v9 = v7 + 1e-05f;
      const vf v10 = v_rsqrt(v9);
      const vf v12 = v10 * v11;
      // pass 2: results
      for (int64_t r0 = 0; r0 < 4; ++r0) {
        const auto pass2 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          store(out0 + 90 * r0 + 30 * o1 + i, ((load(x0 + 90 * r0 + 30 * o1 + i, lanes) - v3) * v12) + v14, lanes);
        };
        for (int64_t i = 0; i < 24; i += 24)
          for (int u = 0; u < 3; ++u) pass2(i + u * W, all_lanes{});
        pass2(24, some_lanes<6>{});
      }
    }
  }
}
