// Task: max_pool_places
// Reference: aten.max_pool2d_with_indices.default
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
  int64_t* out1 = static_cast<int64_t*>(args->outputs[1].data);
  // Region 1: 6 x 6 x 8 (vectorised) x 3 (window) x 3 (window)
  {
    // window over 9 positions
    for (int64_t o0 = 0; o0 < 6; ++o0) {
      for (int64_t o1 = 0; o1 < 6; ++o1) {
        const auto columns = [&](auto count, int64_t i, auto lanes, auto border) __attribute__((always_inline)) {
          constexpr int T = decltype(count)::value;
          vf max1[T];
          for (int t = 0; t < T; ++t) max1[t] = splat(-infinity);
          position<vf, vi> argmax2[T];
          for (int t = 0; t < T; ++t) argmax2[t] = position<vf, vi>{splat(-infinity), {}};
          const int64_t k3_begin = first_inside(2 * o1 - 1, 1);
          const int64_t k3_end = last_inside(2 * o1 - 1, 1, 12, 3);
          for (int64_t k3 = k3_begin; k3 < k3_end; ++k3) {
            for (int64_t k4 = 0; k4 < 3; ++k4) {
              const window_place inside4{2, 1 * k4 - 1, 15};
              for (int t = 0; t < T; ++t) {
                const int64_t j = i + t * W;
                const vf v0 = guarded<2>(x0 + 180 * o0 + 30 * o1 + 2 * j + 15 * k3 + k4 - 16, inside4, j, -infinity, lanes, border);
                take_higher(max1[t], v0, all_lanes{});
                take_higher(argmax2[t], v0, 30 * o1 + 2 * j + 15 * k3 + k4 - 16, 2, all_lanes{});
              }
            }
          }
          vl argmax2_at[T];
          for (int t = 0; t < T; ++t) argmax2_at[t] = to<vl>(argmax2[t].at);
          for (int t = 0; t < T; ++t) {
            const int64_t j = i + t * W;
            store(out0 + 48 * o0 + 8 * o1 + j, max1[t], lanes);
          }
          for (int t = 0; t < T; ++t) {
            const int64_t j = i + t * W;
            store(out1 + 48 * o0 + 8 * o1 + j, argmax2_at[t], lanes);
          }
        };
        columns(vectors<1>{}, 0, all_lanes{}, at_border);
      }
    }
  }
}
