// Matrix products of two bfloat16 or two int8 factors in words of 32 bits: the steps that one instruction multiplies and adds up at once. By the processor's
// tiles (AMX) where the text is compiled for them and the system permits them, else by its vectors.
#include "synthesis/cpp/helpers/helpers.hpp"

namespace pragma::synthesis {

const std::vector<helper>& word_helpers() {
  static const std::vector<helper> list{
      {"tile_registers", {}, R"(// The processor's tiles, 16 rows of 64 bytes each, for as long as this stands. Whoever asks the system for them first may be refused.
#if defined(__AMX_BF16__) && defined(__AMX_INT8__) && defined(__AVX512F__) && defined(__linux__)
constexpr bool tiles_compiled = W == 16;
const bool tiles_permitted = syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* XFEATURE_XTILEDATA */) == 0;
struct tile_registers {
  tile_registers() {
    struct { uint8_t palette, start, reserved[14]; uint16_t row_bytes[16]; uint8_t rows[16]; } shapes{};
    shapes.palette = 1;
    for (int t = 0; t < 8; ++t) shapes.row_bytes[t] = 64, shapes.rows[t] = 16;
    if (tiles_permitted) __asm__ volatile("ldtilecfg %0" : : "m"(shapes));
  }
  ~tile_registers() {
    if (tiles_permitted) __asm__ volatile("tilerelease");
  }
  tile_registers(const tile_registers&) = delete;
};
#else
constexpr bool tiles_compiled = false, tiles_permitted = false;
struct tile_registers {};
#endif
template <int M> inline bool by_tiles() { return tiles_compiled && M % 16 == 0 && tiles_permitted; }
)"},
      {"words", {"bfloat16", "tile_registers", "to", "transpose"}, R"(// A panel of rows holds 16 words of one row, then those of the next, then the next words of all; one of columns holds a word of each, then the next ones.
// Words past the last step are zeros, up to the next 16. Where no instruction takes words, panels hold float32: sums of 1,024 products of int8 are exact.
template <class T> constexpr int word_steps = 4 / int(sizeof(T));
template <class T> constexpr bool in_words = false;
#if defined(__AVX512BF16__)
template <> constexpr bool in_words<bfloat16> = W == 16;
#endif
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
template <> constexpr bool in_words<int8_t> = W == 16 || W == 8;
#elif defined(__AVXVNNI__)
template <> constexpr bool in_words<int8_t> = W == 8;
#endif
template <class T> using word_sums = std::conditional_t<std::is_same_v<T, int8_t>, vi, vf>;
/// float32 of a panel for each row or column.
template <class T> constexpr int64_t panel_length(int64_t depth) { return in_words<T> ? (depth + 16 * word_steps<T> - 1) / (16 * word_steps<T>) * 16 : depth; }
template <class T> inline word_sums<T> to_sums(vf x) { return __builtin_convertvector(x, word_sums<T>); }
inline vu half_lanes(const void* p) { return __builtin_convertvector(load_halves(p, all_lanes{}), vu); }
/// The bits that T has for an element, and for W that lie side by side.
template <class T, class S> inline uint32_t bits_of(S x) { return same_bits<std::conditional_t<sizeof(T) == 1, uint8_t, uint16_t>>(T(x)); }
template <class T, class S> inline vu lanes_at(const S* p) {
  if constexpr (sizeof(T) == 1) return (vu)load(p, all_lanes{}) & 0xffu;
  else if constexpr (std::is_same_v<S, T>) return half_lanes(p);
  else return (vu)to<vf>(load(p, all_lanes{})) >> 16;
}
/// Words of W rows or columns that lie side by side, the next step `step` elements on.
template <class T, class S> inline vu words_at(const S* p, int64_t step) {
  vu x = lanes_at<T>(p);
  for (int j = 1; j < word_steps<T>; ++j) x |= lanes_at<T>(p + j * step) << (j * 32 / word_steps<T>);
  return x;
}
/// W words of steps that lie side by side.
template <class T, class S> inline vu words_along(const S* p) {
  if constexpr (std::is_same_v<S, T>) {
    vu x;
    std::memcpy(&x, p, sizeof x);
    return x;
  } else { // bytes as bfloat16
    const vi both = (vi)half_lanes(p);
    return (vu)to<vf>(both << 24 >> 24) >> 16 | ((vu)to<vf>(both << 16 >> 24) & 0xffff0000u);
  }
}
/// One word of so many steps.
template <class T, class S> inline uint32_t word_of(const S* p, int64_t step, int64_t steps) {
  uint32_t word = 0;
  for (int64_t j = 0; j < least<int64_t>(steps, word_steps<T>); ++j) word |= bits_of<T>(p[j * step]) << (j * 32 / word_steps<T>);
  return word;
}
typedef uint16_t twice_halves __attribute__((vector_size(4 * W)));
inline twice_halves halves_at(const bfloat16* p, int64_t) {
  twice_halves x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
inline twice_halves halves_at(const int8_t* p, int64_t step) {
  typedef uint8_t twice_bytes __attribute__((vector_size(2 * W)));
  twice_bytes x, y;
  std::memcpy(&x, p, sizeof x);
  std::memcpy(&y, p + step, sizeof y);
  return __builtin_convertvector(x, twice_halves) | __builtin_convertvector(y, twice_halves) << 8;
}
template <int... K> inline void keep_interleaved(float* to, twice_halves x, twice_halves y, std::integer_sequence<int, K...>) {
  const twice_halves lower = __builtin_shufflevector(x, y, (K / 2 + K % 2 * 2 * W)...), upper = __builtin_shufflevector(x, y, (W + K / 2 + K % 2 * 2 * W)...);
  std::memcpy(to, &lower, sizeof lower);
  std::memcpy(to + W, &upper, sizeof upper);
}
inline void keep_words(float* to, vu x) { std::memcpy(to, &x, sizeof x); }
inline void keep_word(float* to, uint32_t x) { std::memcpy(to, &x, sizeof x); }
inline void turn_words(vu (&x)[W]) {
  vf y[W];
  std::memcpy(y, x, sizeof x);
  transpose(y);
  std::memcpy(x, y, sizeof x);
}
)"},
      {"multiply_words", {"words", "multiply_tile", "splat"}, R"text(#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
inline vi dot_words(vi c, vi a, vi b) {
  if constexpr (W == 16) return same_bits<vi>(_mm512_dpbusd_epi32(same_bits<__m512i>(c), same_bits<__m512i>(a), same_bits<__m512i>(b)));
  else return same_bits<vi>(_mm256_dpbusd_epi32(same_bits<__m256i>(c), same_bits<__m256i>(a), same_bits<__m256i>(b)));
}
#elif defined(__AVXVNNI__)
inline vi dot_words(vi c, vi a, vi b) { return same_bits<vi>(_mm256_dpbusd_avx_epi32(same_bits<__m256i>(c), same_bits<__m256i>(a), same_bits<__m256i>(b))); }
#endif
#if defined(__AVX512BF16__)
inline vf dot_words(vf c, vi a, vi b) { return same_bits<vf>(_mm512_dpbf16_ps(same_bits<__m512>(c), (__m512bh)same_bits<__m512i>(a), (__m512bh)same_bits<__m512i>(b))); }
#endif
/// R rows of M by vectors: sums are what they were, and what the words give. The first factor of int8 is unsigned, by 128 too large (pack_row_words()).
template <class T, int R, int M, int N, class V> __attribute__((noinline)) void multiply_vectors(int64_t words, const float* a, const float* b, const V* from, V* to) {
  V c[R][N], offset[N];
#pragma GCC unroll 8
  for (int t = 0; t < N; ++t) offset[t] = V{};
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int t = 0; t < N; ++t) c[r][t] = from ? from[r * N + t] : V{};
  for (int64_t k = 0; k < words; ++k) {
    const float* row = a + k / 16 * 16 * M + k % 16;
    vi x[N];
#pragma GCC unroll 8
    for (int t = 0; t < N; ++t) x[t] = same_bits<vi>(*reinterpret_cast<const vf*>(b + (k * N + t) * W));
#pragma GCC unroll 32
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int t = 0; t < N; ++t) c[r][t] = dot_words(c[r][t], vi{} + same_bits<int32_t>(row[r * 16]), x[t]);
    if constexpr (std::is_same_v<T, int8_t>) {
#pragma GCC unroll 8
      for (int t = 0; t < N; ++t) offset[t] = dot_words(offset[t], vi{} + int32_t(0x80808080u), x[t]);
    }
  }
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int t = 0; t < N; ++t) to[r * N + t] = c[r][t] - offset[t];
}
#if defined(__AMX_BF16__) && defined(__AMX_INT8__) && defined(__AVX512F__)
template <class T, int M, int N> __attribute__((always_inline)) inline void multiply_tiles(int64_t words, const float* a, const float* b, const void* from, void* to) {
  constexpr int64_t row = N * 64, down = row * 16; // bytes
  const auto* sums = static_cast<const char*>(from);
  __asm__ volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" : : : "memory"); // what was packed is in memory
  if (sums) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm0" : : "r"(sums), "r"(row));
    if constexpr (N > 1) __asm__ volatile("tileloadd (%0,%1,1), %%tmm1" : : "r"(sums + 64), "r"(row));
    if constexpr (M > 16) __asm__ volatile("tileloadd (%0,%1,1), %%tmm2" : : "r"(sums + down), "r"(row));
    if constexpr (M > 16 && N > 1) __asm__ volatile("tileloadd (%0,%1,1), %%tmm3" : : "r"(sums + down + 64), "r"(row));
  }
  for (int64_t k = 0; k < words; k += 16, a += 16 * M, b += 16 * N * W) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm4" : : "r"(a), "r"(int64_t{64}));
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm6" : : "r"(b), "r"(row));
    if constexpr (N > 1) __asm__ volatile("tileloadd (%0,%1,1), %%tmm7" : : "r"(b + W), "r"(row));
    if constexpr (M > 16) __asm__ volatile("tileloadd (%0,%1,1), %%tmm5" : : "r"(a + 256), "r"(int64_t{64}));
    if constexpr (std::is_same_v<T, int8_t>) {
      __asm__ volatile("tdpbssd %tmm6, %tmm4, %tmm0");
      if constexpr (N > 1) __asm__ volatile("tdpbssd %tmm7, %tmm4, %tmm1");
      if constexpr (M > 16) __asm__ volatile("tdpbssd %tmm6, %tmm5, %tmm2");
      if constexpr (M > 16 && N > 1) __asm__ volatile("tdpbssd %tmm7, %tmm5, %tmm3");
    } else {
      __asm__ volatile("tdpbf16ps %tmm6, %tmm4, %tmm0");
      if constexpr (N > 1) __asm__ volatile("tdpbf16ps %tmm7, %tmm4, %tmm1");
      if constexpr (M > 16) __asm__ volatile("tdpbf16ps %tmm6, %tmm5, %tmm2");
      if constexpr (M > 16 && N > 1) __asm__ volatile("tdpbf16ps %tmm7, %tmm5, %tmm3");
    }
  }
  auto* out = static_cast<char*>(to);
  __asm__ volatile("tilestored %%tmm0, (%0,%1,1)" : : "r"(out), "r"(row) : "memory");
  if constexpr (N > 1) __asm__ volatile("tilestored %%tmm1, (%0,%1,1)" : : "r"(out + 64), "r"(row) : "memory");
  if constexpr (M > 16) __asm__ volatile("tilestored %%tmm2, (%0,%1,1)" : : "r"(out + down), "r"(row) : "memory");
  if constexpr (M > 16 && N > 1) __asm__ volatile("tilestored %%tmm3, (%0,%1,1)" : : "r"(out + down + 64), "r"(row) : "memory");
}
#endif
/// M rows times N vectors of columns: to = from (nothing: zeros) + the sum over `depth` steps.
template <class T, int M, int N> inline void multiply_words(int64_t depth, const float* a, const float* b, const word_sums<T>* from, word_sums<T>* to) {
  constexpr int R = M % 8 == 0 ? 8 : M; // rows at a time by vectors
  if constexpr (in_words<T>) {
    const int64_t words = (depth + word_steps<T> - 1) / word_steps<T>;
#if defined(__AMX_BF16__) && defined(__AMX_INT8__) && defined(__AVX512F__)
    if constexpr (tiles_compiled && M % 16 == 0)
      if (by_tiles<M>()) return multiply_tiles<T, M, N>(words, a, b, from, to);
#endif
    for (int r = 0; r < M; r += R) multiply_vectors<T, R, M, N>(words, a + r * 16, b, from ? from + r * N : nullptr, to + r * N);
  } else {
    for (int r = 0; r < M; r += R) {
      vf part[R][N];
      multiply_tile(depth, a + r * depth, b, part);
      for (int i = 0; i < R * N; ++i) {
        const auto sum = to_sums<T>(part[i / N][i % N]);
        to[r * N + i] = from ? from[r * N + i] + sum : sum;
      }
    }
  }
}
)text"},
      {"pack_row_words", {"words", "pack_rows"}, R"(// M rows; those past the last are zeros. What vectors multiply of int8 is made unsigned.
template <class T, int M, int64_t Row, int64_t Step, class S> inline void pack_row_words(float* panel, const S* from, int64_t rows, int64_t depth) {
  if constexpr (!in_words<T>) {
    constexpr int R = M % 8 == 0 ? 8 : M;
    for (int r = 0; r < M; r += R) pack_rows<R, Row, Step>(panel + r * depth, from + r * Row, rows > r ? rows - r : 0, depth);
  } else {
    constexpr int64_t G = word_steps<T>;
    const uint32_t flip = sizeof(T) == 1 && !by_tiles<M>() ? 0x80808080u : 0;
    const int64_t there = least<int64_t>(rows, M);
    for (int64_t k = 0; k < depth; k += 16 * G, panel += 16 * M) {
      const bool whole = k + 16 * G <= depth;
      int64_t done = 0;
      if constexpr (Step == 1) {
        for (; whole && done < there; ++done)
          for (int w = 0; w < 16; w += W) keep_words(panel + done * 16 + w, words_along<T>(from + done * Row + k + w * G) ^ flip);
      } else if constexpr (Row == 1 && W == 16) {
        for (; whole && done + W <= there; done += W) {
          vu x[W];
          for (int w = 0; w < W; ++w) x[w] = words_at<T>(from + done + (k + w * G) * Step, Step) ^ flip;
          turn_words(x);
          for (int r = 0; r < W; ++r) keep_words(panel + (done + r) * 16, x[r]);
        }
      }
      for (int64_t r = done; r < M; ++r)
        for (int64_t w = 0; w < 16; ++w) {
          const int64_t at = k + w * G;
          keep_word(panel + r * 16 + w, r < there && at < depth ? word_of<T>(from + r * Row + at * Step, Step, depth - at) ^ flip : flip);
        }
    }
  }
}
)"},
      {"pack_column_words", {"words", "pack_columns"}, R"(// P panels of N columns side by side, `beside` floats from one to the next; columns past the last are zeros.
template <class T, int P, int N, int64_t Column, int64_t Step, class S> inline void pack_column_words(float* panels, const S* from, int64_t columns, int64_t depth, int64_t beside) {
  if (P > 1 && columns < P * N) {
    for (int p = 0; p < P && p * N < columns; ++p) pack_column_words<T, 1, N, Column, Step>(panels + p * beside, from + p * N * Column, columns - p * N, depth, beside);
  } else if constexpr (!in_words<T>) {
    for (int p = 0; p < P; ++p) pack_columns<N, Column, Step>(panels + p * beside, from + p * N * Column, columns - p * N, depth);
  } else {
    constexpr int64_t G = word_steps<T>;
    const int64_t words = (depth + G - 1) / G, all = (words + 15) / 16 * 16, whole = depth / G;
    int64_t done = 0; // words of all columns
    if (columns >= P * N) {
      if constexpr (Column == 1) {
        for (; done < whole; ++done)
          for (int p = 0; p < P; ++p)
            if constexpr (std::is_same_v<S, T> && N == 2 * W) {
              const T* at = from + done * G * Step + p * N;
              keep_interleaved(panels + p * beside + done * N, halves_at(at, Step), halves_at(at + G / 2 * Step, Step), std::make_integer_sequence<int, 2 * W>{});
            } else {
              for (int t = 0; t < N; t += W) keep_words(panels + p * beside + done * N + t, words_at<T>(from + done * G * Step + p * N + t, Step));
            }
      } else if constexpr (Step == 1) {
        for (; done + W <= whole; done += W)
          for (int p = 0; p < P; ++p)
            for (int t = 0; t < N; t += W) {
              vu x[W];
#pragma GCC unroll 32
              for (int j = 0; j < W; ++j) x[j] = words_along<T>(from + (p * N + t + j) * Column + done * G);
              turn_words(x);
#pragma GCC unroll 32
              for (int j = 0; j < W; ++j) keep_words(panels + p * beside + (done + j) * N + t, x[j]);
            }
      }
    }
    for (int p = 0; p < P; ++p)
      for (int64_t k = done; k < all; ++k)
        for (int64_t j = 0; j < N; ++j)
          keep_word(panels + p * beside + k * N + j, p * N + j < columns && k < words ? word_of<T>(from + (p * N + j) * Column + k * G * Step, Step, depth - k * G) : 0);
  }
}
)"},
  };
  return list;
}

} // namespace pragma::synthesis
