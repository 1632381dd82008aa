// Task: integers
// Reference: aten.floor_divide.default, aten.mul.Tensor, aten.remainder.Scalar, aten.sub.Tensor
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
  const int64_t* x0 = static_cast<const int64_t*>(args->inputs[0].data);
  int64_t* out0 = static_cast<int64_t*>(args->outputs[0].data);
  // Region 1: 300 (vectorised)
  {
    const auto pass1 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
      const vl v0 = load(x0 + i, lanes);
      const vl v7 = (v_floor_divide(v0, splat(int64_t{3})) * int64_t{2}) - v_remainder(v0, splat(int64_t{5}));
      store(out0 + i, v7, lanes);
    };
    for (int64_t i = 0; i < 288; i += 32)
      for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{});
    for (int64_t i = 288; i < 296; i += W) pass1(i, all_lanes{});
    pass1(296, some_lanes<4>{});
  }
}
