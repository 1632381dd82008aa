// Task: attention_causal
// Reference: aten.transpose.int, aten.expand.default, aten._reshape_alias.default, aten.expand.default,
//    aten._reshape_alias.default, aten.bmm.default, aten._unsafe_view.default, aten.div.Tensor,
//    aten.ones.default, aten.triu.default, aten.masked_fill.Scalar, aten._softmax.default,
//    aten.expand.default, aten._reshape_alias.default, aten.expand.default, aten._reshape_alias.default,
//    aten.bmm.default, aten._unsafe_view.default
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":16,"m":64,"n":48,"rows":4,"vectors":3,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":3},{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":true,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1},{"block":{"k":70,"m":64,"n":24,"rows":4,"vectors":3,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":2}],"threads":1}
// Written by PRAGMA's built-in coder (docs/synthesis.md).
#include "pragma_kernel.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace {

// (helpers)

alignas(64) float scratch0[4480]; // between regions, one batch element
alignas(64) float scratch1[4480]; // between regions, one batch element

} // namespace

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x0 = static_cast<const float*>(args->inputs[0].data);
  const float* x1 = static_cast<const float*>(args->inputs[1].data);
  const float* x2 = static_cast<const float*>(args->inputs[2].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: matrix product, m x n x k = 64 x 70 x 16
  {
    constexpr int MR = 4, NR = 3 * W; // tile in registers: rows x columns
    alignas(64) static float b_panels[1152];
    for (int64_t o0 = 0; o0 < 2; ++o0) {
      for (int64_t o1 = 0; o1 < 3; ++o1) {
        bool skips = true; // while what skipped weights would meet is finite: zero times that is zero
        for (int64_t o5 = 0; o5 >= 0; --o5) {
          [[maybe_unused]] const bool first = o5 == 0;
          [[maybe_unused]] const int64_t item = (o0 * 3 + o1) * 1 + o5;
          const int64_t bound = first || !skips ? 70 : least<int64_t>(70, (o5 * 64 + 79) / 16 * 16);
          // where the columns of rows before that one end, tile by tile; one stays: a row that is masked as a whole is NaN
          [[maybe_unused]] const auto columns_until = [&](int64_t row) {
            const int64_t columns = o5 * 64 + row + 0;
            return columns < 1 ? 1 : columns;
          };
          const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
            for (int r = 0; r < MR; ++r) {
              [[maybe_unused]] const int64_t o2 = m + r;
              const vi v1 = ramp<vi>(o2 + 64 * o5, 0);
              const vi v3 = v1 + 1;
              const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
                const vi v0 = ramp<vi>(i, 1);
                const vf v8 = sum;
                store(scratch1 + 70 * o2 + i, select(mask(v0 >= v3), splat(-infinity), v8 * 0.25f), lanes);
              };
              const auto unmasked = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
                const vf v8 = sum;
                store(scratch1 + 70 * o2 + i, v8 * 0.25f, lanes);
              };
              if (n + NR <= o5 * 64 + o2 + 1 && n + NR <= 70) {
                for (int t = 0; t < NR / W; ++t) unmasked(n + t * W, tile[r][t], all_lanes{});
                continue;
              }
              if (n + NR <= 70) {
                for (int t = 0; t < NR / W; ++t) columns_at(n + t * W, tile[r][t], all_lanes{});
                continue;
              }
              for (int t = 0; t < NR / W; ++t) {
                const int64_t i = n + t * W;
                if (i + W <= 70) columns_at(i, tile[r][t], all_lanes{});
                else if (i < 70) columns_at(i, tile[r][t], some_lanes<6>{});
              }
            }
          };
          constexpr int64_t steps = 16;
          for (int64_t k0 = 0; k0 < steps; k0 += 16) {
            const int64_t depth = least<int64_t>(16, steps - k0), packed = least<int64_t>(16, 16 - k0);
            if (first) {
              for (int64_t n = 0; n < 70; n += NR)
                pack_columns<NR, 16, 1>(b_panels + k0 * 72 + n * packed, x1 + 3360 * o0 + 1120 * o1 + 16 * n + 1 * k0, 70 - n, packed);
            }
            for (int64_t n = 0; n < bound; n += NR) {
              const float* b = b_panels + k0 * 72 + n * packed;
              for (int64_t m = 0; m < 64; m += MR) {
                vf tile[MR][NR / W];
                if (n >= columns_until(m + MR)) clear_tile(tile);
                else multiply_rows<4, 16>(depth, x0 + 3072 * o0 + 1024 * o1 + 1024 * o5 + 16 * m + k0, b, tile);
                finish(tile, m, n);
              }
            }
          }
          // Region 2: 64 x 70 (reduced) (vectorised)
          {
            for (int64_t o0 = 0; o0 < 64; ++o0) {
              alignas(64) float row3[70];
              // pass 1: peak
              vf peak1_part[4];
              for (auto& part : peak1_part) part = splat(-infinity);
              const auto pass1 = [&](int64_t i, auto lanes, vf& peak1) __attribute__((always_inline)) {
                take_peak(peak1, load(scratch1 + 70 * o0 + i, lanes), lanes);
              };
              {
                int64_t i = 0;
                for (; i + 32 <= bound; i += 32)
                  for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{}, peak1_part[u]);
                for (; i + W <= bound; i += W) pass1(i, all_lanes{}, peak1_part[0]);
                if (i < bound) pass1(i, some_lanes<6>{}, peak1_part[0]);
              }
              const vf peak1 = splat(peak(peak1_part));
              // pass 2: sum
              double sum4_total = 0;
              vf sum4_part[4];
              for (auto& part : sum4_part) part = splat(0.0f);
              const auto pass2 = [&](int64_t i, auto lanes, vf& sum4) __attribute__((always_inline)) {
                const vf v3 = v_exp_nonpositive(load(scratch1 + 70 * o0 + i, lanes) - peak1);
                store(row3 + i, v3, lanes);
                sum4 = keep(lanes, sum4 + v3, sum4);
              };
              {
                int64_t i = 0;
                for (; i + 32 <= bound; i += 32)
                  for (int u = 0; u < 4; ++u) pass2(i + u * W, all_lanes{}, sum4_part[u]);
                for (; i + W <= bound; i += W) pass2(i, all_lanes{}, sum4_part[0]);
                if (i < bound) pass2(i, some_lanes<6>{}, sum4_part[0]);
              }
              sum4_total += total(sum4_part);
              const vf sum4 = splat(float(sum4_total));
              const vf inverse4 = 1.0f / sum4;
              // pass 3: results
              const auto pass3 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
                const vf v3 = load(row3 + i, lanes);
                store(scratch0 + 70 * o0 + i, v3 * inverse4, lanes);
              };
              {
                int64_t i = 0;
                for (; i + 32 <= bound; i += 32)
                  for (int u = 0; u < 4; ++u) pass3(i + u * W, all_lanes{});
                for (; i + W <= bound; i += W) pass3(i, all_lanes{});
                if (i < bound) pass3(i, some_lanes<6>{});
              }
            }
          }
          // Region 3: matrix product, m x n x k = 64 x 17 x 70
          {
            constexpr int MR = 4, NR = 3 * W; // tile in registers: rows x columns
            alignas(64) static float b_panels[1680];
            [[maybe_unused]] const int64_t o4 = item / 1 % 1;
            [[maybe_unused]] const int64_t o0 = item / 1 % 6;
            const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
              for (int r = 0; r < MR; ++r) {
                [[maybe_unused]] const int64_t o1 = m + r;
                const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
                  const vf v2 = sum;
                  store(out0 + 1088 * o0 + 17 * o1 + i + 1088 * o4, v2, lanes);
                };
                for (int t = 0; t < NR / W; ++t) {
                  const int64_t i = n + t * W;
                  if (i + W <= 17) columns_at(i, tile[r][t], all_lanes{});
                  else if (i < 17) columns_at(i, tile[r][t], some_lanes<1>{});
                }
              }
            };
            const int64_t steps = bound;
            for (int64_t k0 = 0; k0 < steps; k0 += 70) {
              const int64_t depth = least<int64_t>(70, steps - k0), packed = least<int64_t>(70, 70 - k0);
              if (first) {
                for (int64_t n = 0; n < 17; n += NR)
                  pack_columns<NR, 1, 17>(b_panels + k0 * 24 + n * packed, x2 + 1190 * o0 + 1 * n + 17 * k0, 17 - n, packed);
                skips = skips && all_finite(b_panels + k0 * 24, packed * 24);
              }
              for (int64_t n = 0; n < 17; n += NR) {
                const float* b = b_panels + k0 * 24 + n * packed;
                for (int64_t m = 0; m < 64; m += MR) {
                  vf tile[MR][NR / W];
                  const int64_t until = columns_until(m + MR) - k0, used = !skips ? depth : until < 0 ? 0 : least<int64_t>(until, depth);
                  multiply_rows<4, 70>(used, scratch0 + 70 * m + k0, b, tile);
                  finish(tile, m, n);
                }
              }
            }
          }
        }
      }
    }
  }
}
