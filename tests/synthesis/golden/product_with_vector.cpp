// Task: product_with_vector
// Reference: aten.mm.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"unroll":4,"vector_axis":1}],"threads":1}
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
  // Region 1: 20 x 130 (reduced) (vectorised)
  {
    for (int64_t o0 = 0; o0 < 20; ++o0) {
      double sum3_total = 0;
      vf sum3_part[4];
      for (auto& part : sum3_part) part = splat(0.0f);
      const auto pass1 = [&](int64_t i, auto lanes, vf& sum3) __attribute__((always_inline)) {
        sum3 = keep(lanes, sum3 + (load(x0 + 130 * o0 + i, lanes) * load(x1 + i, lanes)), sum3);
      };
      for (int64_t i = 0; i < 128; i += 32)
        for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, sum3_part[u]);
      pass1(128, some_lanes<2>{}, sum3_part[0]);
      sum3_total += total(sum3_part);
      const vf sum3 = splat(float(sum3_total));
      store_first(out0 + o0, sum3);
    }
  }
}
