// Task: quantised
// Reference: aten.abs.default, aten.amax.default, aten.div.Tensor, aten.div.Tensor, aten.round.default,
//    aten.clamp.default
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
  // Region 1: 6 x 70 (reduced) (vectorised)
  {
    for (int64_t o0 = 0; o0 < 6; ++o0) {
      // pass 1: max
      vf max4_part[4];
      for (auto& part : max4_part) part = splat(-infinity);
      const auto pass1 = [&](int64_t i, auto lanes, vf& max4) __attribute__((always_inline)) {
        take_higher(max4, v_abs(load(x0 + 70 * o0 + i, lanes)), lanes);
      };
      for (int64_t i = 0; i < 64; i += 32)
        for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, max4_part[u]);
      pass1(64, some_lanes<6>{}, max4_part[0]);
      const vf max4 = splat(highest(max4_part));
      const vf v5 = max4 / 127.0f;
      // pass 2: results
      const auto pass2 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const vf v8 = v_max_or_second(splat(-127.0f), v_round(load(x0 + 70 * o0 + i, lanes) / v5));
        store(out0 + 70 * o0 + i, v_min_or_second(splat(127.0f), v8), lanes);
      };
      for (int64_t i = 0; i < 64; i += 32)
        for (int u = 0; u < 4; ++u) pass2(i + u * W, all_lanes{});
      pass2(64, some_lanes<6>{});
    }
  }
}
