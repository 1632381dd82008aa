// Task: l2_norm
// Reference: aten.norm.ScalarOpt_dim, aten.div.Tensor
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1}],"threads":1}
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
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 4 x 50 (reduced) (vectorised)
  {
    for (int64_t o0 = 0; o0 < 4; ++o0) {
      // pass 1: sum
      double sum2_total = 0;
      vf sum2_part[4];
      for (auto& part : sum2_part) part = splat(0.0f);
      const auto pass1 = [&](int64_t i, auto lanes, vf& sum2) __attribute__((always_inline)) {
        const vf v0 = load(x0 + 50 * o0 + i, lanes);
        sum2 = keep(lanes, sum2 + (v0 * v0), sum2);
      };
      for (int64_t i = 0; i < 32; i += 32)
        for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, sum2_part[u]);
      for (int64_t i = 32; i < 48; i += W) pass1(i, all_lanes{}, sum2_part[0]);
      pass1(48, some_lanes<2>{}, sum2_part[0]);
      sum2_total += total(sum2_part);
      const vf sum2 = splat(float(sum2_total));
      const vf v3 = v_sqrt(sum2);
      const vf inverse3 = 1.0f / v3;
      // pass 2: results
      const auto pass2 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        store(out0 + 50 * o0 + i, load(x0 + 50 * o0 + i, lanes) * inverse3, lanes);
      };
      for (int64_t i = 0; i < 32; i += 32)
        for (int u = 0; u < 4; ++u) pass2(i + u * W, all_lanes{});
      for (int64_t i = 32; i < 48; i += W) pass2(i, all_lanes{});
      pass2(48, some_lanes<2>{});
    }
  }
}
