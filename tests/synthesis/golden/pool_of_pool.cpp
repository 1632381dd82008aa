// Task: pool_of_pool
// Reference: aten.unsqueeze.default, aten.avg_pool2d.default, aten.squeeze.dim, aten.unsqueeze.default,
//    aten.max_pool2d_with_indices.default, aten.squeeze.dim
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":4,"together":1,"unroll":4,"vector_axis":0},{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":4,"together":1,"unroll":4,"vector_axis":0}],"threads":1}
// Written by PRAGMA's built-in coder (docs/synthesis.md).
#include "pragma_kernel.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace {

// (helpers)

alignas(64) float scratch0[36]; // between regions

} // namespace

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x0 = static_cast<const float*>(args->inputs[0].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 36 (vectorised) x 2 (window)
  {
    // window over 2 positions
    const auto columns = [&](auto count, int64_t i, auto lanes) __attribute__((always_inline)) {
      constexpr int T = decltype(count)::value;
      vf sum1[T];
      for (int t = 0; t < T; ++t) sum1[t] = splat(0.0f);
      for (int64_t k1 = 0; k1 < 2; ++k1) {
        for (int t = 0; t < T; ++t) {
          const int64_t j = i + t * W;
          sum1[t] = sum1[t] + load_strided<2>(x0 + 2 * j + k1, lanes);
        }
      }
      for (int t = 0; t < T; ++t) {
        const int64_t j = i + t * W;
        store(scratch0 + j, sum1[t], lanes);
      }
    };
    for (int64_t i = 0; i < 32; i += 32) columns(vectors<4>{}, i, all_lanes{});
    columns(vectors<1>{}, 28, all_lanes{});
  }
  // Region 2: 12 (vectorised) x 2 (window)
  {
    // window over 2 positions
    const auto columns = [&](auto count, int64_t i, auto lanes) __attribute__((always_inline)) {
      constexpr int T = decltype(count)::value;
      vf max3[T];
      for (int t = 0; t < T; ++t) max3[t] = splat(-infinity);
      for (int64_t k1 = 0; k1 < 2; ++k1) {
        for (int t = 0; t < T; ++t) {
          const int64_t j = i + t * W;
          take_higher(max3[t], load_strided<3>(scratch0 + 3 * j + k1, lanes) * 0.5f, all_lanes{});
        }
      }
      for (int t = 0; t < T; ++t) {
        const int64_t j = i + t * W;
        store(out0 + j, max3[t], lanes);
      }
    };
    for (int64_t i = 0; i < 8; i += 8) columns(vectors<1>{}, i, all_lanes{});
    columns(vectors<1>{}, 4, all_lanes{});
  }
}
