// Task: depthwise
// Reference: aten.convolution.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":4,"together":1,"unroll":4,"vector_axis":3}],"threads":1}
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
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 2 x 5 x 9 x 6 (vectorised) x 3 (window) x 5 (window)
  {
    // window over 15 positions
    for (int64_t o0 = 0; o0 < 2; ++o0) {
      for (int64_t o1 = 0; o1 < 5; ++o1) {
        for (int64_t o2 = 0; o2 < 9; ++o2) {
          const vf v4 = splat_memory(p1 + o1);
          const auto columns = [&](auto count, int64_t i, auto lanes, auto border) __attribute__((always_inline)) {
            constexpr int T = decltype(count)::value;
            vf sum3[T];
            for (int t = 0; t < T; ++t) sum3[t] = splat(0.0f);
            const int64_t k4_begin = first_inside(2 * o2 - 1, 1);
            const int64_t k4_end = last_inside(2 * o2 - 1, 1, 17, 3);
            for (int64_t k4 = k4_begin; k4 < k4_end; ++k4) {
              for (int64_t k5 = 0; k5 < 5; ++k5) {
                const window_place inside5{2, 1 * k5 - 2, 12};
                for (int t = 0; t < T; ++t) {
                  const int64_t j = i + t * W;
                  const vf v0 = guarded<2>(x0 + 1020 * o0 + 204 * o1 + 24 * o2 + 2 * j + 12 * k4 + k5 - 14, inside5, j, 0.0f, lanes, border);
                  sum3[t] = sum3[t] + (v0 * splat_memory(p0 + 15 * o1 + 5 * k4 + k5));
                }
              }
            }
            vf v5[T];
            for (int t = 0; t < T; ++t) {
              v5[t] = sum3[t] + v4;
            }
            for (int t = 0; t < T; ++t) {
              const int64_t j = i + t * W;
              store(out0 + 270 * o0 + 54 * o1 + 6 * o2 + j, v5[t], lanes);
            }
          };
          columns(vectors<1>{}, 0, some_lanes<6>{}, at_border);
        }
      }
    }
  }
}
