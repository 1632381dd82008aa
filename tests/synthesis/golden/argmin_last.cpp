// Task: argmin_last
// Reference: aten.argmin.default
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
  int64_t* out0 = static_cast<int64_t*>(args->outputs[0].data);
  // Region 1: 57 x 67 (reduced) (vectorised)
  {
    for (int64_t o0 = 0; o0 < 57; ++o0) {
      position<vf, vi> argmin1_part[4];
      for (auto& part : argmin1_part) part = position<vf, vi>{splat(infinity), {}};
      const auto pass1 = [&](int64_t i, auto lanes, position<vf, vi>& argmin1) __attribute__((always_inline)) {
        take_lower(argmin1, load(x0 + 67 * o0 + i, lanes), i, 1, lanes);
      };
      for (int64_t i = 0; i < 64; i += 32)
        for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, argmin1_part[u]);
      pass1(64, some_lanes<3>{}, argmin1_part[0]);
      const vl argmin1 = splat(lowest_place(argmin1_part));
      store_first(out0 + o0, argmin1);
    }
  }
}
