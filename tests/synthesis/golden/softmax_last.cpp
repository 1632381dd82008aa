// Task: softmax_last
// Reference: aten._softmax.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":true,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1}],"threads":1}
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
  // Region 1: 5 x 77 (reduced) (vectorised)
  {
    for (int64_t o0 = 0; o0 < 5; ++o0) {
      alignas(64) float row3[77];
      // pass 1: peak
      vf peak1_part[4];
      for (auto& part : peak1_part) part = splat(-infinity);
      const auto pass1 = [&](int64_t i, auto lanes, vf& peak1) __attribute__((always_inline)) {
        take_peak(peak1, load(x0 + 77 * o0 + i, lanes), lanes);
      };
      for (int64_t i = 0; i < 64; i += 32)
        for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, peak1_part[u]);
      for (int64_t i = 64; i < 72; i += W) pass1(i, all_lanes{}, peak1_part[0]);
      pass1(72, some_lanes<5>{}, peak1_part[0]);
      const vf peak1 = splat(peak(peak1_part));
      // pass 2: sum
      double sum4_total = 0;
      vf sum4_part[4];
      for (auto& part : sum4_part) part = splat(0.0f);
      const auto pass2 = [&](int64_t i, auto lanes, vf& sum4) __attribute__((always_inline)) {
        const vf v3 = v_exp_nonpositive(load(x0 + 77 * o0 + i, lanes) - peak1);
        store(row3 + i, v3, lanes);
        sum4 = keep(lanes, sum4 + v3, sum4);
      };
      for (int64_t i = 0; i < 64; i += 32)
        for (int u = 0; u < 4; ++u) pass2(i + u * W, all_lanes{}, sum4_part[u]);
      for (int64_t i = 64; i < 72; i += W) pass2(i, all_lanes{}, sum4_part[0]);
      pass2(72, some_lanes<5>{}, sum4_part[0]);
      sum4_total += total(sum4_part);
      const vf sum4 = splat(float(sum4_total));
      const vf inverse4 = 1.0f / sum4;
      // pass 3: results
      const auto pass3 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
        const vf v3 = load(row3 + i, lanes);
        store(out0 + 77 * o0 + i, v3 * inverse4, lanes);
      };
      for (int64_t i = 0; i < 64; i += 32)
        for (int u = 0; u < 4; ++u) pass3(i + u * W, all_lanes{});
      for (int64_t i = 64; i < 72; i += W) pass3(i, all_lanes{});
      pass3(72, some_lanes<5>{});
    }
  }
}
