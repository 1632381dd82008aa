// Task: concat
// Reference: aten.mul.Tensor, aten.cat.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1},{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1}],"threads":1}
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
  // Region 1: 5 x 30 (vectorised)
  {
    for (int64_t o0 = 0; o0 < 5; ++o0) {
      const auto pass1 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        store(out0 + 37 * o0 + i, load(x0 + 30 * o0 + i, lanes) * 2.0f, lanes);
      };
      for (int64_t i = 0; i < 24; i += 24)
        for (int u = 0; u < 3; ++u) pass1(i + u * W, all_lanes{});
      pass1(24, some_lanes<6>{});
    }
  }
  // Region 2: 5 x 7 (vectorised)
  {
    for (int64_t o0 = 0; o0 < 5; ++o0) {
      const auto pass1 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        store(out0 + 37 * o0 + i + 30, load(x1 + 7 * o0 + i, lanes), lanes);
      };
      pass1(0, some_lanes<7>{});
    }
  }
}
