// Task: cumprod_columns
// Reference: aten.cumprod.default
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
  const float* x0 = static_cast<const float*>(args->inputs[0].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 23 (scanned) x 9 (vectorised)
  {
    const auto columns = [&](auto count, int64_t i, auto lanes) __attribute__((always_inline)) {
      constexpr int T = decltype(count)::value;
      vf carry1[T];
      for (int t = 0; t < T; ++t) carry1[t] = splat(1.0f);
      for (int64_t r0 = 0; r0 < 23; ++r0) {
        for (int t = 0; t < T; ++t) {
          const int64_t j = i + t * W;
          const vf v1 = (carry1[t] = carry1[t] * load(x0 + 9 * r0 + j, lanes));
          store(out0 + 9 * r0 + j, v1, lanes);
        }
      }
    };
    for (int64_t i = 0; i < 8; i += 8) columns(vectors<1>{}, i, all_lanes{});
    columns(vectors<1>{}, 1, all_lanes{});
  }
}
