// Task: causal_depthwise
// Reference: aten.convolution.default, aten.slice.Tensor, aten.silu.default
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
  const float* p0 = static_cast<const float*>(args->params[0].data);
  const float* p1 = static_cast<const float*>(args->params[1].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 2 x 6 x 50 (vectorised) x 4 (window)
  {
    // window over 4 positions
    for (int64_t o0 = 0; o0 < 2; ++o0) {
      for (int64_t o1 = 0; o1 < 6; ++o1) {
        const vf v4 = splat_memory(p1 + o1);
        const auto columns = [&](auto count, int64_t i, auto lanes, auto border) __attribute__((always_inline)) {
          constexpr int T = decltype(count)::value;
          vf sum3[T];
          for (int t = 0; t < T; ++t) sum3[t] = splat(0.0f);
          for (int64_t k3 = 0; k3 < 4; ++k3) {
            const window_place inside3{1, 1 * k3 - 3, 50};
            for (int t = 0; t < T; ++t) {
              const int64_t j = i + t * W;
              const vf v0 = guarded<1>(x0 + 300 * o0 + 50 * o1 + j + k3 - 3, inside3, j, 0.0f, lanes, border);
              sum3[t] = sum3[t] + (v0 * splat_memory(p0 + 4 * o1 + k3));
            }
          }
          vf v5[T];
          for (int t = 0; t < T; ++t) {
            v5[t] = sum3[t] + v4;
          }
          vf v6[T];
          for (int t = 0; t < T; ++t) {
            v6[t] = v_sigmoid(v5[t]);
          }
          vf v7[T];
          for (int t = 0; t < T; ++t) {
            v7[t] = v5[t] * v6[t];
          }
          for (int t = 0; t < T; ++t) {
            const int64_t j = i + t * W;
            store(out0 + 300 * o0 + 50 * o1 + j, v7[t], lanes);
          }
        };
        columns(vectors<1>{}, 0, all_lanes{}, at_border);
        for (int64_t i = 8; i < 40; i += 32) columns(vectors<4>{}, i, all_lanes{}, inside);
        columns(vectors<1>{}, 40, all_lanes{}, inside);
        columns(vectors<1>{}, 42, all_lanes{}, inside);
      }
    }
  }
}
