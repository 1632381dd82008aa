// Task: mask
// Reference: aten.gt.Scalar, aten.lt.Scalar, aten.bitwise_and.Tensor
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
  bool* out0 = static_cast<bool*>(args->outputs[0].data);
  // Region 1: 500 (vectorised)
  {
    const auto pass1 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
      const vf v0 = load(x0 + i, lanes);
      store(out0 + i, mask(v0 > 0.0f) & mask(v0 < 1.0f), lanes);
    };
    for (int64_t i = 0; i < 480; i += 32)
      for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{});
    for (int64_t i = 480; i < 496; i += W) pass1(i, all_lanes{});
    pass1(496, some_lanes<4>{});
  }
}
