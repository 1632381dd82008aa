// Task: lstm
// Reference: aten.zeros.default, aten.zeros.default, aten.lstm.input
// Schedule:
//    {"cheap_math":false,"compiler":"gcc","flags":["-std=c++20","-O3","-march=native","-fno-math-errno","-fno-trapping-math","-ffp-contract=fast"],"lanes":8,"reciprocals":true,"regions":[{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":0},{"block":{"k":20,"m":10,"n":96,"rows":5,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":1},{"block":{"k":1,"m":5,"n":8,"rows":5,"vectors":1,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":2},{"block":{"k":0,"m":0,"n":0,"rows":6,"vectors":2,"whole":true},"keep_rows":false,"merge_passes":true,"next_row":false,"one_thread":false,"prefetch":0,"stream":false,"tile":8,"together":1,"unroll":4,"vector_axis":2}],"threads":1}
// Written by PRAGMA's built-in coder (docs/synthesis.md).
#include "pragma_kernel.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace {

// (helpers)

alignas(64) float scratch0[480]; // between regions
alignas(64) float scratch1[120]; // between regions
alignas(64) float scratch2[960]; // between regions

} // namespace

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x0 = static_cast<const float*>(args->inputs[0].data);
  const float* p0 = static_cast<const float*>(args->params[0].data);
  const float* p1 = static_cast<const float*>(args->params[1].data);
  const float* p2 = static_cast<const float*>(args->params[2].data);
  const float* p3 = static_cast<const float*>(args->params[3].data);
  float* out0 = static_cast<float*>(args->outputs[0].data);
  // Region 1: 120 (vectorised)
  {
    const auto pass1 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
      store(scratch1 + i, splat(0.0f), lanes);
    };
    for (int64_t i = 0; i < 96; i += 32)
      for (int u = 0; u < 4; ++u) pass1(i + u * W, all_lanes{});
    for (int64_t i = 96; i < 120; i += W) pass1(i, all_lanes{});
  }
  // Region 2: matrix product, m x n x k = 10 x 96 x 20
  {
    constexpr int MR = 5, NR = 2 * W; // tile in registers: rows x columns
    alignas(64) static float a_panels[208];
    alignas(64) static float b_panels[320];
    for (int64_t m = 0; m < 10; m += MR)
      pack_rows<MR, 20, 1>(a_panels + m * 20, x0 + 20 * m + 1 * 0, 10 - m, 20);
    const auto finish = [&](const vf (&tile)[MR][NR / W], int64_t m, int64_t n) __attribute__((always_inline)) {
      for (int r = 0; r < MR; ++r) {
        [[maybe_unused]] const int64_t o0 = m + r;
        const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {
          const vf v2 = sum;
          store(scratch2 + 96 * o0 + i, v2 + load(p2 + i, lanes), lanes);
        };
        {
          for (int t = 0; t < NR / W; ++t) columns_at(n + t * W, tile[r][t], all_lanes{});
        }
      }
    };
    constexpr int64_t n0 = 0, n1 = 96;
    constexpr int64_t k0 = 0, depth = 20;
    for (int64_t n = n0; n < n1; n += NR) {
      float* b = b_panels;
      pack_columns<NR, 20, 1>(b, p0 + 20 * n + 1 * k0, 96 - n, depth);
      for (int64_t m = 0; m < 10; m += MR) {
        vf tile[MR][NR / W];
        multiply_tile(depth, a_panels + k0 * 10 + m * depth, b, tile);
        finish(tile, m, n);
      }
    }
  }
  // Region 3: lstm, steps x rows x units = 2 x 5 x 24
  {
    constexpr int MR = 5, U = 1, NR = U * W; // of a tile: rows, vectors of units of each gate
    alignas(64) static float weights[2304];
    for (int64_t n = 0; n < 24; n += NR) {
      pack_columns<NR, 24, 1, 2 * NR>(weights + n * 96 + 0 * NR, p1 + 0 + n * 24, 24 - n, 24);
      pack_columns<NR, 24, 1, 2 * NR>(weights + n * 96 + 1 * NR, p1 + 576 + n * 24, 24 - n, 24);
      pack_columns<NR, 24, 1, 2 * NR>(weights + n * 96 + 48 * NR, p1 + 1152 + n * 24, 24 - n, 24);
      pack_columns<NR, 24, 1, 2 * NR>(weights + n * 96 + 49 * NR, p1 + 1728 + n * 24, 24 - n, 24);
    }
    float* const states = scratch0; // before the first step, and after each
    float* const cells = states + 360;
    for (int64_t o1 = 0; o1 < 5; ++o1)
      for (int64_t i = 0; i < 24; ++i) {
        states[o1 * 24 + i] = float(*(scratch1 + 24 * o1 + i));
        cells[o1 * 24 + i] = float(*(scratch1 + 24 * o1 + i));
      }
    for (int64_t o4 = 0; o4 < 2; ++o4) {
      const float* before = states + o4 * 120;
      float* after = states + (o4 + 1) * 120;
      const auto gates = [&](int64_t o1, int64_t i, const vf* sums, auto lanes) __attribute__((always_inline)) {
        const vf taken = v_sigmoid(load(scratch2 + 192 * o1 + i + 96 * o4 + 0, lanes) + (sums[(0 * MR + 0) * U] + load(p3 + i + 0, lanes)));
        const vf kept = v_sigmoid(load(scratch2 + 192 * o1 + i + 96 * o4 + 24, lanes) + (sums[(0 * MR + 1) * U] + load(p3 + i + 24, lanes)));
        const vf fresh = v_tanh(load(scratch2 + 192 * o1 + i + 96 * o4 + 48, lanes) + (sums[(2 * MR + 0) * U] + load(p3 + i + 48, lanes)));
        const vf cell = kept * load(cells + o1 * 24 + i, lanes) + taken * fresh;
        store(cells + o1 * 24 + i, cell, lanes);
        store(after + o1 * 24 + i, v_sigmoid(load(scratch2 + 192 * o1 + i + 96 * o4 + 72, lanes) + (sums[(2 * MR + 1) * U] + load(p3 + i + 72, lanes))) * v_tanh(cell), lanes);
      };
      for (int64_t n = 0; n < 24; n += NR) {
        for (int64_t m = 0; m < 5; m += MR) {
          vf tile[2][MR][2 * U];
          for (int p = 0; p < 2; ++p) {
            multiply_rows<5, 24>(24, before + m * 24, weights + n * 96 + p * 48 * NR, tile[p]);
          }
          for (int r = 0; r < MR; ++r)
            for (int u = 0; u < U; ++u) {
              const int64_t o1 = m + r, i = n + u * W;
              if (i + W <= 24) gates(o1, i, tile[0][r] + u, all_lanes{});
            }
        }
      }
    }
  }
  // Region 4: 5 x 2 x 24 (vectorised)
  {
    for (int64_t o0 = 0; o0 < 5; ++o0) {
      for (int64_t o1 = 0; o1 < 2; ++o1) {
        const auto pass1 = [&](int64_t i, auto lanes) __attribute__((always_inline)) {
          store(out0 + 48 * o0 + 24 * o1 + i, load(scratch0 + 24 * o0 + 120 * o1 + i + 120, lanes), lanes);
        };
        for (int64_t i = 0; i < 24; i += 24)
          for (int u = 0; u < 3; ++u) pass1(i + u * W, all_lanes{});
      }
    }
  }
}
