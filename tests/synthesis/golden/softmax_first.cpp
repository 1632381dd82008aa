// Task: softmax_first
// Reference: aten._softmax.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":true,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":16,"together":1,"unroll":4,"vector_axis":1}],"threads":1}
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
  // Region 1: 9 (reduced) x 30 (vectorised)
  {
    const auto columns = [&](auto count, int64_t i, auto lanes) __attribute__((always_inline)) {
      constexpr int T = decltype(count)::value;
      // pass 1
      vf peak1[T];
      for (int t = 0; t < T; ++t) peak1[t] = splat(-infinity);
      for (int64_t r0 = 0; r0 < 9; ++r0) {
        for (int t = 0; t < T; ++t) {
          const int64_t j = i + t * W;
          take_peak(peak1[t], load(x0 + 30 * r0 + j, lanes), all_lanes{});
        }
      }
      // pass 2
      vf sum4[T];
      for (int t = 0; t < T; ++t) sum4[t] = splat(0.0f);
      for (int64_t r0 = 0; r0 < 9; ++r0) {
        for (int t = 0; t < T; ++t) {
          const int64_t j = i + t * W;
          const vf v3 = v_exp_nonpositive(load(x0 + 30 * r0 + j, lanes) - peak1[t]);
          sum4[t] = sum4[t] + v3;
        }
      }
      vf inverse4[T];
      for (int t = 0; t < T; ++t) inverse4[t] = 1.0f / sum4[t];
      // pass 3
      for (int64_t r0 = 0; r0 < 9; ++r0) {
        for (int t = 0; t < T; ++t) {
          const int64_t j = i + t * W;
          const vf v3 = v_exp_nonpositive(load(x0 + 30 * r0 + j, lanes) - peak1[t]);
          store(out0 + 30 * r0 + j, v3 * inverse4[t], lanes);
        }
      }
    };
    for (int64_t i = 0; i < 24; i += 24) columns(vectors<3>{}, i, all_lanes{});
    columns(vectors<1>{}, 22, all_lanes{});
  }
}
