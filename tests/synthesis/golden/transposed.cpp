// Task: transposed
// Reference: aten.t.default, aten.mul.Tensor, aten.add.Tensor
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
  const float* x1 = static_cast<const float*>(args->inputs[1].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 45 x 33 (vectorised)
  {
    for (int64_t o0 = 0; o0 < 45; ++o0) {
      const auto pass1 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const vf v4 = (load_strided<45>(x0 + o0 + 45 * i, lanes) * 2.0f) + load(x1 + 33 * o0 + i, lanes);
        store(out0 + 33 * o0 + i, v4, lanes);
      };
      for (int64_t i = 0; i < 32; i += 32)
        for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{});
      pass1(32, some_lanes<1>{});
    }
  }
}
