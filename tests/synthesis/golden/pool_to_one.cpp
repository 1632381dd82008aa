// Task: pool_to_one
// Reference: aten.exp.default, aten.avg_pool2d.default, aten.max_pool2d_with_indices.default
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
  int64_t* out1 = static_cast<int64_t*>(args->outputs[1].data);
  // Region 1: 2 (reduced) x 2 (reduced) (vectorised)
  {
    double sum2_total = 0;
    position<vf, vi> argmax5_part[1];
    for (auto& part : argmax5_part) part = position<vf, vi>{splat(-infinity), {}};
    vf sum2_part[1];
    for (auto& part : sum2_part) part = splat(0.0f);
    for (int64_t r0 = 0; r0 < 2; ++r0) {
      const auto pass1 = [&](int64_t i, auto lanes, vf& sum2, position<vf, vi>& argmax5) __attribute__((always_inline)) {
        const vf v0 = load(x0 + 2 * r0 + i, lanes);
        const vf v1 = v_exp(v0);
        sum2 = keep(lanes, sum2 + v1, sum2);
        take_higher(argmax5, v0, 2 * r0 + i, 1, lanes);
      };
      pass1(0, some_lanes<2>{}, sum2_part[0], argmax5_part[0]);
    }
    sum2_total += total(sum2_part);
    const vf sum2 = splat(float(sum2_total));
    const vl argmax5 = splat(highest_place(argmax5_part));
    const vf v4 = sum2 * 0.25f;
    store_first(out0, v4);
    store_first(out1, argmax5);
  }
}
