// Task: avg_pool
// Reference: aten.avg_pool2d.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":4,"together":1,"unroll":4,"vector_axis":2}],"threads":1}
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
  // Region 1: 6 x 11 x 13 (vectorised) x 3 (window) x 3 (window)
  {
    // window over 9 positions
    for (int64_t o0 = 0; o0 < 6; ++o0) {
      for (int64_t o1 = 0; o1 < 11; ++o1) {
        const auto columns = [&](auto count, int64_t i, auto lanes, auto border) __attribute__((always_inline)) {
          constexpr int T = decltype(count)::value;
          vf sum1[T];
          for (int t = 0; t < T; ++t) sum1[t] = splat(0.0f);
          const int64_t k3_begin = first_inside(1 * o1 - 1, 1);
          const int64_t k3_end = last_inside(1 * o1 - 1, 1, 11, 3);
          for (int64_t k3 = k3_begin; k3 < k3_end; ++k3) {
            for (int64_t k4 = 0; k4 < 3; ++k4) {
              const window_place inside4{1, 1 * k4 - 1, 13};
              for (int t = 0; t < T; ++t) {
                const int64_t j = i + t * W;
                const vf v0 = guarded<1>(x0 + 143 * o0 + 13 * o1 + j + 13 * k3 + k4 - 14, inside4, j, 0.0f, lanes, border);
                sum1[t] = sum1[t] + v0;
              }
            }
          }
          vf v3[T];
          for (int t = 0; t < T; ++t) {
            v3[t] = sum1[t] * 0.111111111f;
          }
          for (int t = 0; t < T; ++t) {
            const int64_t j = i + t * W;
            store(out0 + 143 * o0 + 13 * o1 + j, v3[t], lanes);
          }
        };
        columns(vectors<1>{}, 0, all_lanes{}, at_border);
        columns(vectors<1>{}, 5, all_lanes{}, at_border);
      }
    }
  }
}
