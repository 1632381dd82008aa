// Task: mean_all
// Reference: aten.mean.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":0}],"threads":1}
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
  // Region 1: 1197 (reduced) (vectorised)
  {
    double sum1_total = 0;
    vf sum1_part[4];
    for (auto& part : sum1_part) part = splat(0.0f);
    const auto pass1 = [&](int64_t i, auto lanes, vf& sum1) __attribute__((always_inline)) {
      sum1 = keep(lanes, sum1 + load(x0 + i, lanes), sum1);
    };
    for (int64_t i = 0; i < 1184; i += 32)
      for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, sum1_part[u]);
    for (int64_t i = 1184; i < 1192; i += W) pass1(i, all_lanes{}, sum1_part[0]);
    pass1(1192, some_lanes<5>{}, sum1_part[0]);
    sum1_total += total(sum1_part);
    const vf sum1 = splat(float(sum1_total));
    const vf v3 = sum1 * 0.000835421888f;
    store_first(out0, v3);
  }
}
