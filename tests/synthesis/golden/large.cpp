// Task: large
// Reference: aten.relu.default, aten.mul.Tensor
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":true,"tile":8,"together":1,"unroll":4,"vector_axis":1}],"threads":1}
// Written by PRAGMA's built-in coder (docs/synthesis.md).
#include "pragma_kernel.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace {

// (helpers)

} // namespace

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x0 = static_cast<const float*>(args->inputs[0].data);
  const float* x1 = static_cast<const float*>(args->inputs[1].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 2048 x 4096 (vectorised)
  {
    for (int64_t o0 = 0; o0 < 2048; ++o0) {
      const auto pass1 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const vf v4 = v_max_or_second(splat(0.0f), load(x0 + 4096 * o0 + i, lanes)) * load(x1 + i, lanes);
        stream(out0 + 4096 * o0 + i, v4, lanes);
      };
      for (int64_t i = 0; i < 4096; i += 32)
        for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{});
    }
  }
  stream_fence();
}
