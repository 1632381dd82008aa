// Task: embedding
// Reference: aten.index.Tensor, aten.mul.Tensor
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
  const int64_t* x0 = static_cast<const int64_t*>(args->inputs[0].data);
  const float* x1 = static_cast<const float*>(args->inputs[1].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 12 x 20 (vectorised)
  {
    for (int64_t o0 = 0; o0 < 12; ++o0) {
      const vl v0 = splat_memory(x0 + o0);
      const vi v2 = splat((v0)[0] < int64_t{0});
      const vl v4 = v0 + int64_t{9};
      const vl v5 = select(v2, v4, v0);
      const vl v7 = v_max_or_second(splat(int64_t{0}), v5);
      const vl v8 = v_min_or_second(splat(int64_t{8}), v7);
      const auto pass1 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        store(out0 + 20 * o0 + i, load(x1 + i + (v8)[0] * int64_t{20}, lanes) * 2.0f, lanes);
      };
      for (int64_t i = 0; i < 16; i += 16)
        for (int u = 0; u < 2; ++u) pass1(i + u * W, all_lanes{});
      pass1(16, some_lanes<4>{});
    }
  }
}
