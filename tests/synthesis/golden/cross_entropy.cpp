// Task: cross_entropy
// Reference: aten._log_softmax.default, aten.nll_loss_forward.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":16,"together":1,"unroll":4,"vector_axis":0},{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":0}],"threads":1}
// Written by PRAGMA's built-in coder (docs/synthesis.md).
#include "pragma_kernel.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace {

// (helpers)

alignas(64) float scratch0[30]; // between regions

} // namespace

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x0 = static_cast<const float*>(args->inputs[0].data);
  const int64_t* x1 = static_cast<const int64_t*>(args->inputs[1].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 30 (vectorised) x 7 (reduced)
  {
    const auto columns = [&](auto count, int64_t i, auto lanes) __attribute__((always_inline)) {
      constexpr int T = decltype(count)::value;
      vl v0[T];
      for (int t = 0; t < T; ++t) {
        const int64_t j = i + t * W;
        v0[t] = load(x1 + j, lanes);
      }
      vi v2[T];
      for (int t = 0; t < T; ++t) {
        v2[t] = mask(v0[t] != int64_t{-100});
      }
      vf v5[T];
      for (int t = 0; t < T; ++t) {
        v5[t] = select(v2[t], splat(1.0f), splat(0.0f));
      }
      vl v8[T];
      for (int t = 0; t < T; ++t) {
        v8[t] = v_max_or_second(splat(int64_t{0}), v0[t]);
      }
      vl v9[T];
      for (int t = 0; t < T; ++t) {
        v9[t] = v_min_or_second(splat(int64_t{6}), v8[t]);
      }
      vf v10[T];
      for (int t = 0; t < T; ++t) {
        const int64_t j = i + t * W;
        v10[t] = gather<7>(x0 + 7 * j, v9[t], lanes);
      }
      // pass 1
      vf peak12[T];
      for (int t = 0; t < T; ++t) peak12[t] = splat(-infinity);
      for (int64_t r1 = 0; r1 < 7; ++r1) {
        for (int t = 0; t < T; ++t) {
          const int64_t j = i + t * W;
          take_peak(peak12[t], load_strided<7>(x0 + 7 * j + r1, lanes), all_lanes{});
        }
      }
      vf v13[T];
      for (int t = 0; t < T; ++t) {
        v13[t] = v10[t] - peak12[t];
      }
      // pass 2
      vf sum16[T];
      for (int t = 0; t < T; ++t) sum16[t] = splat(0.0f);
      for (int64_t r1 = 0; r1 < 7; ++r1) {
        for (int t = 0; t < T; ++t) {
          const int64_t j = i + t * W;
          const vf v15 = v_exp_nonpositive(load_strided<7>(x0 + 7 * j + r1, lanes) - peak12[t]);
          sum16[t] = sum16[t] + v15;
        }
      }
      vf v17[T];
      for (int t = 0; t < T; ++t) {
        v17[t] = v_log(sum16[t]);
      }
      vf v18[T];
      for (int t = 0; t < T; ++t) {
        v18[t] = v13[t] - v17[t];
      }
      vf v19[T];
      for (int t = 0; t < T; ++t) {
        v19[t] = v5[t] * v18[t];
      }
      vf v20[T];
      for (int t = 0; t < T; ++t) {
        v20[t] = -v19[t];
      }
      vf v21[T];
      for (int t = 0; t < T; ++t) {
        v21[t] = select(v2[t], v20[t], splat(0.0f));
      }
      for (int t = 0; t < T; ++t) {
        const int64_t j = i + t * W;
        store(scratch0 + j, v21[t], lanes);
      }
    };
    for (int64_t i = 0; i < 24; i += 24) columns(vectors<3>{}, i, all_lanes{});
    columns(vectors<1>{}, 22, all_lanes{});
  }
  // Region 2: 30 (reduced) (vectorised)
  {
    double sum1_total = 0;
    double sum8_total = 0;
    vf sum1_part[3];
    for (auto& part : sum1_part) part = splat(0.0f);
    vf sum8_part[3];
    for (auto& part : sum8_part) part = splat(0.0f);
    const auto pass1 = [&](int64_t i, auto lanes, vf& sum1, vf& sum8) __attribute__((always_inline)) {
      const vf v7 = select(mask(load(x1 + i, lanes) != int64_t{-100}), splat(1.0f), splat(0.0f));
      sum1 = keep(lanes, sum1 + load(scratch0 + i, lanes), sum1);
      sum8 = keep(lanes, sum8 + v7, sum8);
    };
    for (int64_t i = 0; i < 24; i += 24)
      for (int u = 0; u < 3; ++u) pass1(i + u * W, all_lanes{}, sum1_part[u], sum8_part[u]);
    pass1(24, some_lanes<6>{}, sum1_part[0], sum8_part[0]);
    sum1_total += total(sum1_part);
    sum8_total += total(sum8_part);
    const vf sum1 = splat(float(sum1_total));
    const vf sum8 = splat(float(sum8_total));
    const vf v9 = sum1 / sum8;
    store_first(out0, v9);
  }
}
