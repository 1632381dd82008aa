// Task: adaptive_pool
// Reference: aten._adaptive_avg_pool2d.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":4,"together":1,"unroll":4,"vector_axis":1}],"threads":1}
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
  // Region 1: 12 x 3 (vectorised) x 4 (window) x 3 (window)
  {
    // window over 12 positions
    for (int64_t o0 = 0; o0 < 12; ++o0) {
      const auto columns = [&](auto count, int64_t i, auto lanes) __attribute__((always_inline)) {
        constexpr int T = decltype(count)::value;
        vf sum1[T];
        for (int t = 0; t < T; ++t) sum1[t] = splat(0.0f);
        for (int64_t k2 = 0; k2 < 4; ++k2) {
          for (int64_t k3 = 0; k3 < 3; ++k3) {
            for (int t = 0; t < T; ++t) {
              const int64_t j = i + t * W;
              sum1[t] = sum1[t] + load_strided<3>(x0 + 36 * o0 + 3 * j + 9 * k2 + k3, lanes);
            }
          }
        }
        vf v3[T];
        for (int t = 0; t < T; ++t) {
          v3[t] = sum1[t] * 0.0833333333f;
        }
        for (int t = 0; t < T; ++t) {
          const int64_t j = i + t * W;
          store(out0 + 3 * o0 + j, v3[t], lanes);
        }
      };
      columns(vectors<1>{}, 0, some_lanes<3>{});
    }
  }
}
