// Task: batch_norm_eval
// Reference: aten.native_batch_norm.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":2}],"threads":1}
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
  const float* p0 = static_cast<const float*>(args->params[0].data);
  const float* p1 = static_cast<const float*>(args->params[1].data);
  const float* p2 = static_cast<const float*>(args->params[2].data);
  const float* p3 = static_cast<const float*>(args->params[3].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 3 x 4 x 70 (vectorised)
  {
    for (int64_t o0 = 0; o0 < 3; ++o0) {
      for (int64_t o1 = 0; o1 < 4; ++o1) {
        const vf v1 = splat_memory(p3 + o1);
        const vf v3 = v1 + 1e-05f;
        const vf v4 = v_rsqrt(v3);
        const vf v5 = splat_memory(p0 + o1);
        const vf v6 = v4 * v5;
        const vf v8 = splat_memory(p1 + o1);
        const vf v9 = splat_memory(p2 + o1);
        const vf v10 = v9 * v6;
        const vf v11 = v8 - v10;
        const auto pass1 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          store(out0 + 280 * o0 + 70 * o1 + i, (load(x0 + 280 * o0 + 70 * o1 + i, lanes) * v6) + v11, lanes);
        };
        for (int64_t i = 0; i < 64; i += 32)
          for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{});
        pass1(64, some_lanes<6>{});
      }
    }
  }
}
