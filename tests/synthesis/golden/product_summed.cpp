// Task: product_summed
// Reference: aten.t.default, aten.addmm.default, aten.sub.Tensor, aten.mean.dim
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1},{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":0},{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1}],"threads":1}
// Written by PRAGMA's built-in coder (docs/synthesis.md).
#include "pragma_kernel.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace {

// (helpers)

alignas(64) float scratch0[70]; // between regions
alignas(64) float scratch1[1]; // between regions

} // namespace

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x0 = static_cast<const float*>(args->inputs[0].data);
  const float* p0 = static_cast<const float*>(args->params[0].data);
  const float* p1 = static_cast<const float*>(args->params[1].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 45 (reduced) x 70 (vectorised)
  {
    const auto columns = [&](auto count, int64_t i, auto lanes) __attribute__((always_inline)) {
      constexpr int T = decltype(count)::value;
      vf sum1[T];
      for (int t = 0; t < T; ++t) sum1[t] = splat(0.0f);
      for (int64_t r0 = 0; r0 < 45; ++r0) {
        for (int t = 0; t < T; ++t) {
          const int64_t j = i + t * W;
          sum1[t] = sum1[t] + load(p0 + 70 * r0 + j, lanes);
        }
      }
      for (int t = 0; t < T; ++t) {
        const int64_t j = i + t * W;
        store(scratch0 + j, sum1[t], lanes);
      }
    };
    for (int64_t i = 0; i < 64; i += 64) columns(vectors<8>{}, i, all_lanes{});
    columns(vectors<1>{}, 62, all_lanes{});
  }
  // Region 2: 45 (reduced) (vectorised)
  {
    double sum1_total = 0;
    vf sum1_part[4];
    for (auto& part : sum1_part) part = splat(0.0f);
    const auto pass1 = [&](int64_t i, auto lanes, vf& sum1) __attribute__((always_inline)) {
      sum1 = keep(lanes, sum1 + load(p1 + i, lanes), sum1);
    };
    for (int64_t i = 0; i < 32; i += 32)
      for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, sum1_part[u]);
    for (int64_t i = 32; i < 40; i += W) pass1(i, all_lanes{}, sum1_part[0]);
    pass1(40, some_lanes<5>{}, sum1_part[0]);
    sum1_total += total(sum1_part);
    const vf sum1 = splat(float(sum1_total));
    store_first(scratch1, sum1);
  }
  // Region 3: 13 x 70 (reduced) (vectorised)
  {
    for (int64_t o0 = 0; o0 < 13; ++o0) {
      const vf v4 = splat_memory(scratch1);
      double sum3_total = 0;
      vf sum3_part[4];
      for (auto& part : sum3_part) part = splat(0.0f);
      const auto pass1 = [&](int64_t i, auto lanes, vf& sum3) __attribute__((always_inline)) {
        sum3 = keep(lanes, sum3 + (load(x0 + 70 * o0 + i, lanes) * load(scratch0 + i, lanes)), sum3);
      };
      for (int64_t i = 0; i < 64; i += 32)
        for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, sum3_part[u]);
      pass1(64, some_lanes<6>{}, sum3_part[0]);
      sum3_total += total(sum3_part);
      const vf sum3 = splat(float(sum3_total));
      const vf v5 = sum3 + v4;
      const vf v7 = v5 - 45.0f;
      const vf v8 = v7 * 0.0222222222f;
      store_first(out0 + o0, v8);
    }
  }
}
