// Task: logsumexp
// Reference: aten.logsumexp.default
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
  // Region 1: 4 x 130 (reduced) (vectorised)
  {
    for (int64_t o0 = 0; o0 < 4; ++o0) {
      // pass 1: peak
      vf peak1_part[4];
      for (auto& part : peak1_part) part = splat(-infinity);
      const auto pass1 = [&](int64_t i, auto lanes, vf& peak1) __attribute__((always_inline)) {
        take_peak(peak1, load(x0 + 130 * o0 + i, lanes), lanes);
      };
      for (int64_t i = 0; i < 128; i += 32)
        for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, peak1_part[u]);
      pass1(128, some_lanes<2>{}, peak1_part[0]);
      const vf peak1 = splat(peak(peak1_part));
      const vf v2 = v_abs(peak1);
      const vi v4 = mask(v2 < infinity);
      const vf v6 = select(v4, peak1, splat(0.0f));
      // pass 2: sum
      double sum9_total = 0;
      vf sum9_part[4];
      for (auto& part : sum9_part) part = splat(0.0f);
      const auto pass2 = [&](int64_t i, auto lanes, vf& sum9) __attribute__((always_inline)) {
        const vf v8 = v_exp(load(x0 + 130 * o0 + i, lanes) - v6);
        sum9 = keep(lanes, sum9 + v8, sum9);
      };
      for (int64_t i = 0; i < 128; i += 32)
        for (int u = 0; u < 4; ++u) pass2(i + u * W, all_lanes{}, sum9_part[u]);
      pass2(128, some_lanes<2>{}, sum9_part[0]);
      sum9_total += total(sum9_part);
      const vf sum9 = splat(float(sum9_total));
      const vf v10 = v_log(sum9);
      const vf v11 = v6 + v10;
      store_first(out0 + o0, v11);
    }
  }
}
