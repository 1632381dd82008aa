// Task: max_with_places
// Reference: aten.max.dim
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
  // Region 1: 5 x 1300 (reduced) (vectorised)
  {
    for (int64_t o0 = 0; o0 < 5; ++o0) {
      vf max1_part[4];
      for (auto& part : max1_part) part = splat(-infinity);
      position<vf, vi> argmax2_part[4];
      for (auto& part : argmax2_part) part = position<vf, vi>{splat(-infinity), {}};
      const auto pass1 = [&](int64_t i, auto lanes, vf& max1, position<vf, vi>& argmax2) __attribute__((always_inline)) {
        const vf v0 = load(x0 + 1300 * o0 + i, lanes);
        take_higher(max1, v0, lanes);
        take_higher(argmax2, v0, i, 1, lanes);
      };
      for (int64_t i = 0; i < 1280; i += 32)
        for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, max1_part[u], argmax2_part[u]);
      for (int64_t i = 1280; i < 1296; i += W) pass1(i, all_lanes{}, max1_part[0], argmax2_part[0]);
      pass1(1296, some_lanes<4>{}, max1_part[0], argmax2_part[0]);
      const vf max1 = splat(highest(max1_part));
      const vl argmax2 = splat(highest_place(argmax2_part));
      store_first(out0 + o0, max1);
      store_first(out1 + o0, argmax2);
    }
  }
}
