// The register tile of contractions, and the packing of its operands.
#include "synthesis/cpp/helpers/helpers.hpp"

namespace pragma::synthesis {

const std::vector<helper>& anchor_helpers() {
  static const std::vector<helper> list{
      {"multiply_tile", {}, R"(// M rows times N vectors of columns, in registers: a holds M values per step, b N vectors.
template <int M, int N> __attribute__((always_inline)) inline void multiply_tile(int64_t depth, const float* a, const float* b, vf (&tile)[M][N]) {
  vf c[M][N];
#pragma GCC unroll 32
  for (int r = 0; r < M; ++r)
#pragma GCC unroll 32
    for (int t = 0; t < N; ++t) c[r][t] = vf{};
#pragma GCC unroll 4
  for (int64_t k = 0; k < depth; ++k) {
    vf x[N];
#pragma GCC unroll 32
    for (int t = 0; t < N; ++t) x[t] = *reinterpret_cast<const vf*>(b + t * W);
#pragma GCC unroll 32
    for (int r = 0; r < M; ++r)
#pragma GCC unroll 32
      for (int t = 0; t < N; ++t) c[r][t] += x[t] * a[r];
    a += M;
    b += N * W;
  }
#pragma GCC unroll 32
  for (int r = 0; r < M; ++r)
#pragma GCC unroll 32
    for (int t = 0; t < N; ++t) tile[r][t] = c[r][t];
}
)"},
      {"multiply_rows", {}, R"(// As multiply_tile, for the first Rows of M rows, which lie in memory as they are: the steps of each side by side, the next row `Row` elements on.
template <int Rows, int64_t Row, int M, int N> __attribute__((always_inline)) inline void multiply_rows(int64_t depth, const float* a, const float* b, vf (&tile)[M][N]) {
  vf c[Rows][N];
#pragma GCC unroll 32
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 32
    for (int t = 0; t < N; ++t) c[r][t] = vf{};
#pragma GCC unroll 4
  for (int64_t k = 0; k < depth; ++k) {
    vf x[N];
#pragma GCC unroll 32
    for (int t = 0; t < N; ++t) x[t] = *reinterpret_cast<const vf*>(b + t * W);
#pragma GCC unroll 32
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 32
      for (int t = 0; t < N; ++t) c[r][t] += x[t] * a[r * Row];
    ++a;
    b += N * W;
  }
#pragma GCC unroll 32
  for (int r = 0; r < M; ++r)
#pragma GCC unroll 32
    for (int t = 0; t < N; ++t) tile[r][t] = r < Rows ? c[r < Rows ? r : 0][t] : vf{};
}
)"},
      {"clear_tile", {}, R"(template <int M, int N> inline void clear_tile(vf (&tile)[M][N]) {
  for (auto& row : tile)
    for (auto& x : row) x = vf{};
}
)"},
      {"add_partial", {}, R"(template <int M, int N> inline void add_partial(vf (&tile)[M][N], const float* partial) {
  for (int r = 0; r < M; ++r)
    for (int t = 0; t < N; ++t) tile[r][t] += *reinterpret_cast<const vf*>(partial + (r * N + t) * W);
}
)"},
      {"ask_for_partial", {}, R"(// Lines that will be read and written when the tile is done: no cache near the core has them.
template <int M, int N> inline void ask_for_partial(const vf (&)[M][N], const float* partial) {
  for (int i = 0; i < M * N * W; i += 16) __builtin_prefetch(partial + i, 1);
}
)"},
      {"keep_partial", {}, R"(template <int M, int N> inline void keep_partial(const vf (&tile)[M][N], float* partial) {
  for (int r = 0; r < M; ++r)
    for (int t = 0; t < N; ++t) *reinterpret_cast<vf*>(partial + (r * N + t) * W) = tile[r][t];
}
)"},
      {"interleaved", {}, R"(template <int Half, class V, int... K> inline V interleaved(V a, V b, std::integer_sequence<int, K...>) {
  return __builtin_shufflevector(a, b, (Half * W / 2 + K / 2 + K % 2 * W)...);
}
)"},
      {"transpose", {"interleaved"}, R"(// A square of W vectors; every stage interleaves the halves.
__attribute__((always_inline)) inline void transpose(vf (&x)[W]) {
  constexpr auto all = std::make_integer_sequence<int, W>{};
#pragma GCC unroll 5
  for (int stage = 1; stage < W; stage *= 2) {
    vf y[W];
#pragma GCC unroll 32
    for (int i = 0; i < W / 2; ++i) {
      y[2 * i] = interleaved<0>(x[i], x[i + W / 2], all);
      y[2 * i + 1] = interleaved<1>(x[i], x[i + W / 2], all);
    }
#pragma GCC unroll 32
    for (int i = 0; i < W; ++i) x[i] = y[i];
  }
}
)"},
      {"pack_rows", {"load", "store", "to", "transpose"}, R"(// M rows side by side, step after step; rows past the last are zeros. Whole vectors are written, whose lanes past M are
// overwritten by the next step's; nothing is written behind the last step, where another thread may have its rows.
template <int M, int64_t Row, int64_t Step, class T> inline void pack_rows(float* panel, const T* from, int64_t rows, int64_t depth) {
  if (rows >= M) {
    const int64_t whole = Step == 1 && M <= W ? depth / W * W : 0;
    if constexpr (Step == 1 && M <= W) {
      for (int64_t k = 0; k < whole; k += W) {
        vf x[W];
#pragma GCC unroll 32
        for (int r = 0; r < W; ++r) x[r] = to<vf>(load(from + (r < M ? r : 0) * Row + k, all_lanes{}));
        transpose(x);
#pragma GCC unroll 32
        for (int j = 0; j < W; ++j) {
          if ((k + j) * M + W <= depth * M) store(panel + (k + j) * M, x[j], all_lanes{});
          else store(panel + (k + j) * M, x[j], some_lanes<M>{});
        }
      }
    }
    for (int64_t k = whole; k < depth; ++k)
      for (int r = 0; r < M; ++r) panel[k * M + r] = from[r * Row + k * Step];
    return;
  }
  for (int64_t k = 0; k < depth; ++k) { // no condition on a load: GCC 12 makes one that is not masked of it
    for (int64_t r = 0; r < rows; ++r) panel[k * M + r] = from[r * Row + k * Step];
    for (int64_t r = rows; r < M; ++r) panel[k * M + r] = 0;
  }
}
)"},
      {"pack_columns", {"load", "to", "transpose"}, R"(// N columns (whole vectors) side by side, each step Panel elements after the one before; columns past the last are zeros.
template <int N, int64_t Column, int64_t Step, int Panel = N, class T> inline void pack_columns(float* panel, const T* from, int64_t columns, int64_t depth) {
  if (columns < N) {
    for (int64_t k = 0; k < depth; ++k) { // no condition on a load: GCC 12 makes one that is not masked of it
      for (int64_t j = 0; j < columns; ++j) panel[k * Panel + j] = from[j * Column + k * Step];
      for (int64_t j = columns; j < N; ++j) panel[k * Panel + j] = 0;
    }
    return;
  }
  if constexpr (Column == 1) {
    for (int64_t k = 0; k < depth; ++k)
      for (int t = 0; t < N; t += W) *reinterpret_cast<vf*>(panel + k * Panel + t) = to<vf>(load(from + k * Step + t, all_lanes{}));
  } else {
    // W columns at a time: more of them would compete for one set of the cache where their stride is a power of two.
    const int64_t whole = Step == 1 ? depth / W * W : 0;
    for (int t = 0; t < N; t += W) {
      if constexpr (Step == 1) {
        for (int64_t k = 0; k < whole; k += W) {
          vf x[W];
#pragma GCC unroll 32
          for (int j = 0; j < W; ++j) x[j] = to<vf>(load(from + (t + j) * Column + k, all_lanes{}));
          transpose(x);
#pragma GCC unroll 32
          for (int j = 0; j < W; ++j) *reinterpret_cast<vf*>(panel + (k + j) * Panel + t) = x[j];
        }
      }
      for (int64_t k = whole; k < depth; ++k)
        for (int j = t; j < t + W; ++j) panel[k * Panel + j] = from[j * Column + k * Step];
    }
  }
}
)"},
      {"pack_panels", {"pack_columns"}, R"(// P panels of N columns at once: a step of all of them lies side by side in memory, so that longer runs of it are read, from fewer pages at a time.
template <int P, int N, int64_t Column, int64_t Step, class T> inline void pack_panels(float* panels, const T* from, int64_t columns, int64_t depth) {
  if (columns < P * N) {
    for (int p = 0; p < P && p * N < columns; ++p) pack_columns<N, Column, Step>(panels + p * N * depth, from + p * N * Column, columns - p * N, depth);
    return;
  }
  for (int64_t k = 0; k < depth; ++k)
    for (int p = 0; p < P; ++p)
      for (int t = 0; t < N; t += W) *reinterpret_cast<vf*>(panels + (p * depth + k) * N + t) = to<vf>(load(from + k * Step + p * N + t, all_lanes{}));
}
)"},
      {"all_finite", {"load"}, R"(// Whole vectors.
inline bool all_finite(const float* p, int64_t n) {
  vf zeros{};
  for (int64_t i = 0; i < n; i += W) zeros += load(p + i, all_lanes{}) * 0.0f; // infinity and NaN give NaN
  bool finite = true;
  for (int j = 0; j < W; ++j) finite = finite && zeros[j] == 0;
  return finite;
}
)"},
      {"pack_weights", {}, R"(// M output channels side by side, for every input channel and tap; past the last one zeros.
template <int M, class T> inline void pack_weights(float* to, const T* from, int64_t rows, int64_t row, int64_t channels, int64_t channel, const int32_t* taps, int64_t count) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t k = 0; k < count; ++k, to += M) {
      const int64_t there = least<int64_t>(rows, M);
      for (int64_t r = 0; r < there; ++r) to[r] = from[r * row + c * channel + taps[k]];
      for (int64_t r = there; r < M; ++r) to[r] = 0;
    }
}
)"},
      {"copy_row", {}, R"(template <int64_t Step, class T> inline void copy_row(float* to, const T* from, int64_t n) {
  if constexpr (Step == 1 && std::is_same_v<T, float>) std::memcpy(to, from, size_t(n) * sizeof(float));
  else for (int64_t x = 0; x < n; ++x) to[x] = from[x * Step];
}
)"},
      {"grid", {}, R"(// A flattened grid of pixels: planes of rows of columns, and how far memory moves along each.
struct grid { int64_t planes, rows, columns, plane, row, column; };
)"},
      {"pixel_places", {"grid", "ramp"}, R"(// Where the N pixels from `first` on lie in the image. A vector of pixels lies in one row or in two: lanes `beyond` the end
// of the first come from the second. Where rows are shorter than a vector, each pixel has a place of its own.
template <int N> struct pixel_places {
  int64_t row[N / W] = {}, next[N / W] = {};
  vi beyond[N / W] = {};
  int32_t at[N] = {};
  bool one_row = true, short_rows;
  pixel_places(int64_t first, const grid& g) : short_rows(g.columns < W) {
    int64_t column = first % g.columns, y = first / g.columns % g.rows, z = first / g.columns / g.rows;
    const auto line = [&] { return z * g.plane + y * g.row; };
    const auto last = [&] { return y + 1 == g.rows && z + 1 == g.planes; };
    const auto advance = [&] { if (++y == g.rows) y = 0, ++z; };
    if (short_rows) {
      for (int j = 0; j < N; ++j) { // past the last pixel the row goes on
        at[j] = int32_t(line() + column);
        if (++column >= g.columns && !last()) column = 0, advance();
      }
      return;
    }
    for (int t = 0; t < N / W; ++t) {
      const int64_t inside = g.columns - column;
      row[t] = next[t] = line() + column;
      beyond[t] = vi(ramp<vi>(0, 1) >= int32_t(least<int64_t>(inside, W)));
      column += W;
      if (inside > W || last()) continue;
      column -= g.columns;
      advance();
      one_row = one_row && inside >= W;
      if (inside < W) next[t] = line() - inside;
    }
  }
};
)"},
      {"met_rows", {"grid"}, R"(// A row of taps adds to pixels in these planes and rows, from `begin` to before `end`; elsewhere it meets the border of zeros.
struct tap_row { int32_t begin_plane, end_plane, begin_row, end_row; };
// Which of the R rows of taps add to some of these pixels.
template <int R> struct met_rows {
  int count = 0, row[R];
  met_rows(int64_t first, int64_t pixels, const grid& g, const tap_row (&taps)[R]) {
    const int64_t begin = first / g.columns, end = least((first + pixels - 1) / g.columns + 1, g.planes * g.rows);
    bool met[R] = {};
    int64_t z = begin / g.rows, y = begin % g.rows;
    for (int64_t line = begin; line < end; ++line) {
      for (int r = 0; r < R; ++r) met[r] |= z >= taps[r].begin_plane && z < taps[r].end_plane && y >= taps[r].begin_row && y < taps[r].end_row;
      if (++y == g.rows) y = 0, ++z;
    }
    for (int r = 0; r < R; ++r)
      if (met[r]) row[count++] = r;
  }
};
)"},
      {"all_taps", {}, R"(// As met_rows: all taps count as one row.
struct all_taps { static constexpr int count = 1, row[] = {0}; };
)"},
      {"multiply_met", {}, R"(// As multiply_tile, of the rows of taps that are met: `depth` steps each; b is packed without the others.
template <int M, int N, class Rows> __attribute__((always_inline)) inline void multiply_met(const Rows& rows, int64_t depth, const float* a, const float* b, vf (&tile)[M][N]) {
  vf c[M][N];
#pragma GCC unroll 32
  for (int r = 0; r < M; ++r)
#pragma GCC unroll 32
    for (int t = 0; t < N; ++t) c[r][t] = vf{};
  for (int i = 0; i < rows.count; ++i) {
    const float* w = a + rows.row[i] * depth * M;
#pragma GCC unroll 4
    for (int64_t k = 0; k < depth; ++k, w += M, b += N * W) {
      vf x[N];
#pragma GCC unroll 32
      for (int t = 0; t < N; ++t) x[t] = *reinterpret_cast<const vf*>(b + t * W);
#pragma GCC unroll 32
      for (int r = 0; r < M; ++r)
#pragma GCC unroll 32
        for (int t = 0; t < N; ++t) c[r][t] += x[t] * w[r];
    }
  }
#pragma GCC unroll 32
  for (int r = 0; r < M; ++r)
#pragma GCC unroll 32
    for (int t = 0; t < N; ++t) tile[r][t] = c[r][t];
}
)"},
      {"pack_patches", {"all_taps", "pixel_places", "load", "select"}, R"(// For every row of taps that `rows` names, channel and tap (`count` in a row), the N pixels that it meets.
template <int N, class Rows = all_taps> inline void pack_patches(float* to, const float* image, const pixel_places<N>& pixels, int64_t channels, int64_t channel, const int32_t* taps, int64_t count, const Rows& rows = {}) {
  const auto each = [&](auto take) __attribute__((always_inline)) {
    for (int i = 0; i < rows.count; ++i) {
      const float* p = image;
      for (int64_t c = 0; c < channels; ++c, p += channel)
        for (int64_t k = 0; k < count; ++k, to += N) take(p + taps[rows.row[i] * count + k]);
    }
  };
  if (pixels.short_rows) {
    each([&](const float* p) __attribute__((always_inline)) {
      for (int j = 0; j < N; ++j) to[j] = p[pixels.at[j]];
    });
  } else if (pixels.one_row) {
    each([&](const float* p) __attribute__((always_inline)) {
      for (int t = 0; t < N / W; ++t) *reinterpret_cast<vf*>(to + t * W) = load(p + pixels.row[t], all_lanes{});
    });
  } else {
    each([&](const float* p) __attribute__((always_inline)) {
      for (int t = 0; t < N / W; ++t)
        *reinterpret_cast<vf*>(to + t * W) = select(pixels.beyond[t], load(p + pixels.next[t], all_lanes{}), load(p + pixels.row[t], all_lanes{}));
    });
  }
}
)"},
      {"multiply_patches", {"multiply_met", "pack_patches"}, R"(// As multiply_tile, of patches as they lie in the image; `Keep`: packed for the rows that follow, too.
template <bool Keep, int M, int N, class Rows = all_taps> inline void multiply_patches(const float* a, float* to, const float* image, const pixel_places<N * W>& pixels, int64_t channels, int64_t channel, const int32_t* taps, int64_t count, vf (&tile)[M][N], const Rows& rows = {}) {
  const auto each = [&](auto take) __attribute__((always_inline)) {
    vf c[M][N];
#pragma GCC unroll 32
    for (int r = 0; r < M; ++r)
#pragma GCC unroll 32
      for (int t = 0; t < N; ++t) c[r][t] = vf{};
    for (int i = 0; i < rows.count; ++i) {
      const float *p = image, *w = a + rows.row[i] * channels * count * M;
      for (int64_t j = 0; j < channels; ++j, p += channel)
        for (int64_t k = 0; k < count; ++k, w += M, to += N * W) {
          vf x[N];
#pragma GCC unroll 32
          for (int t = 0; t < N; ++t) x[t] = take(p + taps[rows.row[i] * count + k], t);
#pragma GCC unroll 32
          for (int t = 0; Keep && t < N; ++t) *reinterpret_cast<vf*>(to + t * W) = x[t];
#pragma GCC unroll 32
          for (int r = 0; r < M; ++r)
#pragma GCC unroll 32
            for (int t = 0; t < N; ++t) c[r][t] += x[t] * w[r];
        }
    }
#pragma GCC unroll 32
    for (int r = 0; r < M; ++r)
#pragma GCC unroll 32
      for (int t = 0; t < N; ++t) tile[r][t] = c[r][t];
  };
  if (pixels.short_rows) {
    pack_patches(to, image, pixels, channels, channel, taps, count, rows);
    multiply_met(rows, channels * count, a, to, tile);
  } else if (pixels.one_row) {
    each([&](const float* p, int t) __attribute__((always_inline)) { return load(p + pixels.row[t], all_lanes{}); });
  } else {
    each([&](const float* p, int t) __attribute__((always_inline)) { return select(pixels.beyond[t], load(p + pixels.next[t], all_lanes{}), load(p + pixels.row[t], all_lanes{})); });
  }
}
)"},
      {"stream_rows", {"stream", "load"}, R"(// Rows of finished results: whole cache lines go past the caches, so that they are not read first.
inline void stream_rows(float* to, int64_t row, const float* from, int64_t from_row, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, to += row, from += from_row) {
    const int64_t head = least<int64_t>(n, -(reinterpret_cast<uintptr_t>(to) / sizeof(float)) & 15);
    int64_t k = 0;
    for (; k < head; ++k) to[k] = from[k];
    for (; k + 16 <= n; k += 16)
      for (int t = 0; t < 16; t += W) stream(to + k + t, load(from + k + t, all_lanes{}), all_lanes{});
    for (; k < n; ++k) to[k] = from[k];
  }
}
)"},
      {"row_runs", {"grid"}, R"(// The rows of results that N pixels from `first` on fall into: each pixel stands for `residues` results side by side.
template <int N> struct row_runs {
  int count = 0;
  struct { int pixel; int64_t out, results; } run[N];
  row_runs(int64_t first, const grid& g, int64_t plane, int64_t row, int64_t residues, int64_t row_results) {
    int64_t column = first % g.columns, y = first / g.columns % g.rows, z = first / g.columns / g.rows;
    for (int j = 0; j < N && z < g.planes;) {
      const int64_t pixels = least<int64_t>(N - j, g.columns - column);
      run[count++] = {j, z * plane + y * row + column * residues, least((column + pixels) * residues, row_results) - column * residues};
      j += int(pixels);
      column = 0;
      if (++y == g.rows) y = 0, ++z;
    }
  }
};
)"},
      {"store_interleaved", {"row_runs", "store", "load", "interleaved"}, R"(template <int SX, class T, int V, int N> inline void store_interleaved(T* p, const vf (&line)[SX][V], const row_runs<N>& runs) {
  alignas(64) float results[SX * N];
  for (int t = 0; t < V; ++t) {
    if constexpr (SX == 1) {
      store(results + t * W, line[0][t], all_lanes{});
    } else if constexpr (SX == 2) {
      constexpr auto all = std::make_integer_sequence<int, W>{};
      store(results + 2 * t * W, interleaved<0>(line[0][t], line[1][t], all), all_lanes{});
      store(results + 2 * t * W + W, interleaved<1>(line[0][t], line[1][t], all), all_lanes{});
    } else {
      for (int k = 0; k < W; ++k)
        for (int x = 0; x < SX; ++x) results[(t * W + k) * SX + x] = line[x][t][k];
    }
  }
  for (int i = 0; i < runs.count; ++i) {
    const float* from = results + runs.run[i].pixel * SX;
    T* to = p + runs.run[i].out;
    int64_t k = 0;
    for (const int64_t n = runs.run[i].results; k < n; k += W) {
      if (n - k >= W) store(to + k, load(from + k, all_lanes{}), all_lanes{});
      else for (; k < n; ++k) to[k] = T(from[k]);
    }
  }
}
)"},
  };
  return list;
}

} // namespace pragma::synthesis
