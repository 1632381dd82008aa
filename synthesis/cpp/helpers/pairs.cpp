// Matrix products of two bfloat16 factors, two steps of k at a time where the processor has an instruction for it.
#include "synthesis/cpp/helpers/helpers.hpp"

namespace pragma::synthesis {

const std::vector<helper>& pair_helpers() {
  static const std::vector<helper> list{
      {"pairs", {"bfloat16"}, R"(// Products of two bfloat16 are exact in float32, in which they are added up. Where a processor multiplies pairs of them, panels hold
// pairs of steps in the place of each float32, and of an odd depth the last one beside a zero.
#if defined(__AVX512BF16__)
constexpr bool in_pairs = W == 16;
#else
constexpr bool in_pairs = false;
#endif
inline float pair(const bfloat16* first, int64_t step) { return same_bits<float>(uint32_t{first->bits} | uint32_t{first[step].bits} << 16); }
inline float alone(const bfloat16* last) { return same_bits<float>(uint32_t{last->bits}); }
inline vf neighbours(const bfloat16* p) {
  vf x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
)"},
      {"multiply_pairs", {"pairs", "multiply_tile"}, R"(template <int M, int N> __attribute__((always_inline)) inline void multiply_pairs(int64_t depth, const float* a, const float* b, vf (&tile)[M][N]) {
#if defined(__AVX512BF16__)
  if constexpr (in_pairs) {
    __m512 c[M][N];
#pragma GCC unroll 32
    for (int r = 0; r < M; ++r)
#pragma GCC unroll 32
      for (int t = 0; t < N; ++t) c[r][t] = _mm512_setzero_ps();
#pragma GCC unroll 4
    for (int64_t k = 0; k < (depth + 1) / 2; ++k) {
      __m512bh x[N];
#pragma GCC unroll 32
      for (int t = 0; t < N; ++t) x[t] = (__m512bh)_mm512_loadu_ps(b + t * W);
#pragma GCC unroll 32
      for (int r = 0; r < M; ++r)
#pragma GCC unroll 32
        for (int t = 0; t < N; ++t) c[r][t] = _mm512_dpbf16_ps(c[r][t], (__m512bh)_mm512_set1_ps(a[r]), x[t]);
      a += M;
      b += N * W;
    }
#pragma GCC unroll 32
    for (int r = 0; r < M; ++r)
#pragma GCC unroll 32
      for (int t = 0; t < N; ++t) tile[r][t] = same_bits<vf>(c[r][t]);
    return;
  }
#endif
  multiply_tile(depth, a, b, tile);
}
)"},
      {"pack_row_pairs", {"pairs", "pack_rows", "store"}, R"(template <int M, int64_t Row, int64_t Step> inline void pack_row_pairs(float* to, const bfloat16* from, int64_t rows, int64_t depth) {
  if constexpr (!in_pairs) {
    pack_rows<M, Row, Step>(to, from, rows, depth);
  } else {
    const int64_t pairs = depth / 2, there = least<int64_t>(rows, M);
    int64_t k = 0;
    if constexpr (Step == 1 && M <= W) {
      for (; rows >= M && k + W <= pairs; k += W) {
        vf x[W];
#pragma GCC unroll 32
        for (int r = 0; r < W; ++r) x[r] = neighbours(from + (r < M ? r : 0) * Row + 2 * k);
        transpose(x);
#pragma GCC unroll 32
        for (int j = 0; j < W; ++j) {
          if ((k + j) * M + W <= (depth + 1) / 2 * M) store(to + (k + j) * M, x[j], all_lanes{});
          else store(to + (k + j) * M, x[j], some_lanes<M>{});
        }
      }
    }
    for (; k < pairs; ++k) {
      for (int64_t r = 0; r < there; ++r) to[k * M + r] = pair(from + r * Row + 2 * k * Step, Step);
      for (int64_t r = there; r < M; ++r) to[k * M + r] = 0;
    }
    if (depth % 2 == 0) return;
    for (int64_t r = 0; r < there; ++r) to[k * M + r] = alone(from + r * Row + 2 * k * Step);
    for (int64_t r = there; r < M; ++r) to[k * M + r] = 0;
  }
}
)"},
      {"pack_column_pairs", {"pairs", "pack_columns", "store"}, R"(template <int N, int64_t Column, int64_t Step> inline void pack_column_pairs(float* to, const bfloat16* from, int64_t columns, int64_t depth) {
  if constexpr (!in_pairs) {
    pack_columns<N, Column, Step>(to, from, columns, depth);
  } else {
    const int64_t pairs = depth / 2, there = least<int64_t>(columns, N);
    int64_t k = 0;
    if (columns >= N) {
      if constexpr (Column == 1) {
        const auto bits = [&](int64_t step, int t) __attribute__((always_inline)) { return __builtin_convertvector(load_halves(from + step * Step + t, all_lanes{}), vu); };
        for (; k < pairs; ++k)
          for (int t = 0; t < N; t += W) store(to + k * N + t, same_bits<vf>(bits(2 * k, t) | bits(2 * k + 1, t) << 16), all_lanes{});
      } else if constexpr (Step == 1) {
        for (; k + W <= pairs; k += W)
          for (int t = 0; t < N; t += W) {
            vf x[W];
#pragma GCC unroll 32
            for (int j = 0; j < W; ++j) x[j] = neighbours(from + (t + j) * Column + 2 * k);
            transpose(x);
#pragma GCC unroll 32
            for (int j = 0; j < W; ++j) *reinterpret_cast<vf*>(to + (k + j) * N + t) = x[j];
          }
      }
    }
    for (; k < pairs; ++k) {
      for (int64_t j = 0; j < there; ++j) to[k * N + j] = pair(from + j * Column + 2 * k * Step, Step);
      for (int64_t j = there; j < N; ++j) to[k * N + j] = 0;
    }
    if (depth % 2 == 0) return;
    for (int64_t j = 0; j < there; ++j) to[k * N + j] = alone(from + j * Column + 2 * k * Step);
    for (int64_t j = there; j < N; ++j) to[k * N + j] = 0;
  }
}
)"},
  };
  return list;
}

} // namespace pragma::synthesis
