// Task: cross_entropy_long
// Reference: aten._log_softmax.default, aten.eq.Scalar, aten.sum.dim_IntList, aten.neg.default,
//    aten.zeros_like.default, aten.where.self, aten.bitwise_not.default, aten._to_copy.default,
//    aten.sum.default, aten.sum.default, aten.div.Tensor, aten.nll_loss_forward.default, aten.mul.Tensor,
//    aten.mul.Tensor, aten.add.Tensor
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":512,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1},{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":0}],"threads":1}
// Written by PRAGMA's built-in coder (docs/synthesis.md).
#include "pragma_kernel.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace {

// (helpers)

alignas(64) float scratch0[300]; // between regions
alignas(64) float scratch1[300]; // between regions

} // namespace

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x0 = static_cast<const float*>(args->inputs[0].data);
  const int64_t* x1 = static_cast<const int64_t*>(args->inputs[1].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 300 x 3001 (reduced) (vectorised)
  {
    for (int64_t o0 = 0; o0 < 300; ++o0) {
      const vl v0 = splat_memory(x1 + o0);
      const vi v2 = splat((v0)[0] != int64_t{-100});
      const vf v5 = select(v2, splat(1.0f), splat(0.0f));
      const vl v8 = v_max_or_second(splat(int64_t{0}), v0);
      const vl v9 = v_min_or_second(splat(int64_t{3000}), v8);
      const vf v10 = splat_memory(x0 + 3001 * o0 + (v9)[0] * int64_t{1});
      const vi v22 = splat((v0)[0] == int64_t{-100});
      // passes 1 and 2 as one: peak, and sums relative to a level that follows it
      const auto pass1 = [&](int64_t i, auto lanes, vf& peak12) __attribute__((always_inline)) {
        __builtin_prefetch(x0 + 3001 * o0 + i + 512);
        take_peak(peak12, load(x0 + 3001 * o0 + i, lanes), lanes);
      };
      vf highest = splat(-infinity), some = splat(-3.40282347e38f);
      pass1(0, some_lanes<1>{}, some); // the level begins with the first element, which is seldom far below the peak
      vf level = splat(some[0]), limit = level + 16.0f;
      double sum16_total = 0;
      double sum23_total = 0;
      const auto pass2 = [&](int64_t i, auto lanes, vf& sum16, vf& sum23) __attribute__((always_inline)) {
        const vf v14 = load(x0 + 3001 * o0 + i, lanes) - level;
        const vf v15 = v_exp_nonpositive(v14);
        sum16 = keep(lanes, sum16 + v15, sum16);
        sum23 = keep(lanes, sum23 + v14, sum23);
      };
      {
        constexpr int64_t block = 0, end = 3001;
        vf sum16_part[4];
        for (auto& part : sum16_part) part = splat(0.0f);
        vf sum23_part[4];
        for (auto& part : sum23_part) part = splat(0.0f);
        const auto follow = [&](vf high, int64_t before) __attribute__((always_inline)) {
          const vf old[2] = {level, high}, was = level;
          level = splat(peak(old));
          limit = level + 16.0f;
          const vf scale16 = v_exp_nonpositive(was - level);
          sum16_total *= double(scale16[0]);
          for (auto& part : sum16_part) part *= scale16;
          sum23_total += double(before) * (double(was[0]) - double(level[0]));
        };
        int64_t i = block;
        for (; i + 32 <= end; i += 32) {
          vf high = splat(-infinity);
          for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, high);
          if (any_higher(high, limit)) [[unlikely]] follow(high, i);
          highest = high > highest ? high : highest;
          for (int u = 0; u < 4; ++u) pass2(i + u * W, all_lanes{}, sum16_part[u], sum23_part[u]);
        }
        if (i < end) {
          vf high = splat(-infinity);
          int64_t k = i;
          for (; k + W <= end; k += W) pass1(k, all_lanes{}, high);
          if (k < end) pass1(k, some_lanes<1>{}, high);
          if (any_higher(high, limit)) [[unlikely]] follow(high, i);
          highest = high > highest ? high : highest;
          for (k = i; k + W <= end; k += W) pass2(k, all_lanes{}, sum16_part[0], sum23_part[0]);
          if (k < end) pass2(k, some_lanes<1>{}, sum16_part[0], sum23_part[0]);
        }
        sum16_total += total(sum16_part);
        sum23_total += total(sum23_part);
      }
      const vf all[1] = {highest}, peak12 = splat(peak(all));
      sum16_total *= double(v_exp_nonpositive(level - peak12)[0]);
      sum23_total += 3001.0 * (double(level[0]) - double(peak12[0]));
      const vf v13 = v10 - peak12;
      const vf sum16 = splat(float(sum16_total));
      const vf sum23 = splat(float(sum23_total));
      const vf v17 = v_log(sum16);
      const vf v18 = v13 - v17;
      const vf v19 = v5 * v18;
      const vf v20 = -v19;
      const vf v21 = select(v2, v20, splat(0.0f));
      const vf v25 = v17 * 3001.0f;
      const vf v26 = sum23 - v25;
      const vf v27 = -v26;
      const vf v28 = select(v22, splat(0.0f), v27);
      store_first(scratch0 + o0, v21);
      store_first(scratch1 + o0, v28);
    }
  }
  // Region 2: 300 (reduced) (vectorised)
  {
    double sum1_total = 0;
    double sum8_total = 0;
    double sum13_total = 0;
    double sum15_total = 0;
    vf sum1_part[4];
    for (auto& part : sum1_part) part = splat(0.0f);
    vf sum8_part[4];
    for (auto& part : sum8_part) part = splat(0.0f);
    vf sum13_part[4];
    for (auto& part : sum13_part) part = splat(0.0f);
    vf sum15_part[4];
    for (auto& part : sum15_part) part = splat(0.0f);
    const auto pass1 = [&](int64_t i, auto lanes, vf& sum1, vf& sum8, vf& sum13, vf& sum15) __attribute__((always_inline)) {
      const vi v4 = mask(load(x1 + i, lanes) != int64_t{-100});
      sum1 = keep(lanes, sum1 + load(scratch0 + i, lanes), sum1);
      sum8 = keep(lanes, sum8 + select(v4, splat(1.0f), splat(0.0f)), sum8);
      sum13 = keep(lanes, sum13 + load(scratch1 + i, lanes), sum13);
      sum15 = keep(lanes, sum15 + count_of<vf>(v4), sum15);
    };
    for (int64_t i = 0; i < 288; i += 32)
      for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, sum1_part[u], sum8_part[u], sum13_part[u], sum15_part[u]);
    for (int64_t i = 288; i < 296; i += W) pass1(i, all_lanes{}, sum1_part[0], sum8_part[0], sum13_part[0], sum15_part[0]);
    pass1(296, some_lanes<4>{}, sum1_part[0], sum8_part[0], sum13_part[0], sum15_part[0]);
    sum1_total += total(sum1_part);
    sum8_total += total(sum8_part);
    sum13_total += total(sum13_part);
    sum15_total += total(sum15_part);
    const vf sum1 = splat(float(sum1_total));
    const vf sum8 = splat(float(sum8_total));
    const vf sum13 = splat(float(sum13_total));
    const vf sum15 = splat(float(sum15_total));
    const vf v9 = sum1 / sum8;
    const vf v11 = v9 * 0.9f;
    const vf v16 = sum13 / sum15;
    const vf v18 = v16 * 3.33222259e-05f;
    const vf v19 = v11 + v18;
    store_first(out0, v19);
  }
}
