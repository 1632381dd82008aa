// Task: sum_middle
// Reference: aten.sum.dim_IntList
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
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 3 x 19 (reduced) x 21 (vectorised)
  {
    for (int64_t o0 = 0; o0 < 3; ++o0) {
      const auto columns = [&](auto count, int64_t i, auto lanes) __attribute__((always_inline)) {
        constexpr int T = decltype(count)::value;
        vf sum1[T];
        for (int t = 0; t < T; ++t) sum1[t] = splat(0.0f);
        for (int64_t r1 = 0; r1 < 19; ++r1) {
          for (int t = 0; t < T; ++t) {
            const int64_t j = i + t * W;
            sum1[t] = sum1[t] + load(x0 + 399 * o0 + 21 * r1 + j, lanes);
          }
        }
        for (int t = 0; t < T; ++t) {
          const int64_t j = i + t * W;
          store(out0 + 21 * o0 + j, sum1[t], lanes);
        }
      };
      for (int64_t i = 0; i < 16; i += 16) columns(vectors<2>{}, i, all_lanes{});
      columns(vectors<1>{}, 13, all_lanes{});
    }
  }
}
