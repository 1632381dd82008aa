// Task: cosine
// Reference: aten.expand.default, aten.expand.default, aten.pow.Tensor_Scalar, aten.sum.dim_IntList,
//    aten.pow.Tensor_Scalar, aten.sum.dim_IntList, aten.clamp_min.default, aten.clamp_min.default,
//    aten.sqrt.default, aten.sqrt.default, aten.div.Tensor, aten.div.Tensor, aten.mul.Tensor,
//    aten.sum.dim_IntList, aten.rsub.Scalar, aten.mean.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1},{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":0}],"threads":1}
// Written by PRAGMA's built-in coder (docs/synthesis.md).
#include "pragma_kernel.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace {

// (helpers)

alignas(64) float scratch0[9]; // between regions

} // namespace

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x0 = static_cast<const float*>(args->inputs[0].data);
  const float* x1 = static_cast<const float*>(args->inputs[1].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 9 x 50 (reduced) (vectorised)
  {
    for (int64_t o0 = 0; o0 < 9; ++o0) {
      // pass 1: sum, sum
      double sum4_total = 0;
      double sum10_total = 0;
      vf sum4_part[4];
      for (auto& part : sum4_part) part = splat(0.0f);
      vf sum10_part[4];
      for (auto& part : sum10_part) part = splat(0.0f);
      const auto pass1 = [&](int64_t i, auto lanes, vf& sum4, vf& sum10) __attribute__((always_inline)) {
        const vf v1 = load(x0 + 50 * o0 + i, lanes);
        const vf v8 = load(x1 + 50 * o0 + i, lanes);
        sum4 = keep(lanes, sum4 + (v1 * v1), sum4);
        sum10 = keep(lanes, sum10 + (v8 * v8), sum10);
      };
      for (int64_t i = 0; i < 32; i += 32)
        for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, sum4_part[u], sum10_part[u]);
      for (int64_t i = 32; i < 48; i += W) pass1(i, all_lanes{}, sum4_part[0], sum10_part[0]);
      pass1(48, some_lanes<2>{}, sum4_part[0], sum10_part[0]);
      sum4_total += total(sum4_part);
      sum10_total += total(sum10_part);
      const vf sum4 = splat(float(sum4_total));
      const vf sum10 = splat(float(sum10_total));
      const vf v5 = v_max_or_second(splat(1e-16f), sum4);
      const vf v6 = v_sqrt(v5);
      const vf v11 = v_max_or_second(splat(1e-16f), sum10);
      const vf v12 = v_sqrt(v11);
      const vf inverse6 = 1.0f / v6;
      const vf inverse12 = 1.0f / v12;
      // pass 2: sum
      double sum15_total = 0;
      vf sum15_part[4];
      for (auto& part : sum15_part) part = splat(0.0f);
      const auto pass2 = [&](int64_t i, auto lanes, vf& sum15) __attribute__((always_inline)) {
        const vf v14 = (load(x0 + 50 * o0 + i, lanes) * inverse6) * (load(x1 + 50 * o0 + i, lanes) * inverse12);
        sum15 = keep(lanes, sum15 + v14, sum15);
      };
      for (int64_t i = 0; i < 32; i += 32)
        for (int u = 0; u < 4; ++u) pass2(i + u * W, all_lanes{}, sum15_part[u]);
      for (int64_t i = 32; i < 48; i += W) pass2(i, all_lanes{}, sum15_part[0]);
      pass2(48, some_lanes<2>{}, sum15_part[0]);
      sum15_total += total(sum15_part);
      const vf sum15 = splat(float(sum15_total));
      const vf v16 = 1.0f - sum15;
      store_first(scratch0 + o0, v16);
    }
  }
  // Region 2: 9 (reduced) (vectorised)
  {
    double sum1_total = 0;
    vf sum1_part[1];
    for (auto& part : sum1_part) part = splat(0.0f);
    const auto pass1 = [&](int64_t i, auto lanes, vf& sum1) __attribute__((always_inline)) {
      sum1 = keep(lanes, sum1 + load(scratch0 + i, lanes), sum1);
    };
    for (int64_t i = 0; i < 8; i += W) pass1(i, all_lanes{}, sum1_part[0]);
    pass1(8, some_lanes<1>{}, sum1_part[0]);
    sum1_total += total(sum1_part);
    const vf sum1 = splat(float(sum1_total));
    const vf v3 = sum1 * 0.111111111f;
    store_first(out0, v3);
  }
}
