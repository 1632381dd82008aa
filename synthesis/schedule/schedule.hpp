// A schedule: everything about a kernel that is a choice and not the task. starting_schedule() is analytical, the search
// (search.hpp) changes it. It travels as JSON in candidate::schedule and stands in the header of the emitted source.
#pragma once

#include "diagnosis/profile.hpp"
#include "synthesis/loops/region.hpp"

namespace pragma::synthesis {

/// Tiles and blocks of a contraction.
struct blocking {
  int rows = 6;                ///< of the register tile
  int vectors = 2;             ///< of columns in it
  int64_t m = 0, n = 0, k = 0; ///< rows, columns and steps of a block
  bool whole = true;           ///< all of a is packed before the first column; else block by block
  /// Of a product by words: 16 or 32 rows and one or two vectors are for the processor's tiles (AMX).
  bool tiles() const { return rows > 0 && rows % 16 == 0; }
};
PRAGMA_JSON(blocking, rows, vectors, m, n, k, whole)

struct region_schedule {
  int vector_axis = -1;        ///< index into region::axes; reduced or last: row mode; another: column mode
  int unroll = 4;              ///< row mode: vectors per step, each with accumulators of its own
  int together = 1;            ///< row mode: rows that are read at once, since they share a factor (rows_together())
  int tile = 8;                ///< column mode: vectors that are carried through all passes together
  bool keep_rows = false;      ///< values that several passes need stay in a buffer of one row; else they are recomputed
  bool merge_passes = true;    ///< variance beside its mean, sums of exponentials beside their peak, block by block
  bool stream = false;         ///< non-temporal stores
  int64_t prefetch = 0;        ///< elements ahead; 0: leave it to the hardware
  bool next_row = false;       ///< row mode, several passes: the last one asks for the row that comes next, since the first pass over it has too little to do while it waits
  bool one_thread = false;     ///< of a program with several: too little to share out
  blocking block;              ///< contractions only
};
PRAGMA_JSON(region_schedule, vector_axis, unroll, together, tile, keep_rows, merge_passes, stream, prefetch, next_row, one_thread, block)

struct schedule {
  int threads = 1;
  int lanes = 8;               ///< float32 per vector
  bool reciprocals = true;     ///< division by a value of the whole row or a constant becomes a multiplication
  bool cheap_math = false;     ///< polynomials one degree lower (errors stated in the source)
  std::string compiler = "gcc";
  std::vector<std::string> flags;
  std::vector<region_schedule> regions;
};
PRAGMA_JSON(schedule, threads, lanes, reciprocals, cheap_math, compiler, flags, regions)

/// The least multiple of `step` that holds n.
inline int64_t rounded_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

/// Cache sizes with defaults for what `limits` does not say.
struct cache_sizes {
  int64_t l1 = 32 << 10, l2 = 512 << 10, l3 = 8 << 20;
  int64_t kept_writes = 8 << 20; ///< results of more bytes gain nothing by staying in a cache: a third level that is measured to copy hardly faster than memory counts for nothing
  explicit cache_sizes(const machine_limits& limits);
};

/// Axes along which a region can be vectorised, best first.
std::vector<int> vector_axes(const region& r, int lanes);
/// Bytes that a region reads and writes at least (every buffer once).
int64_t bytes_touched(const region& r, const loop_program& program);
int64_t bytes_written(const region& r, const loop_program& program);
/// Elements that one row program covers (product of the reduced axes).
int64_t row_elements(const region& r);
/// True when values are worth keeping between passes (an exponential that two passes need).
bool has_expensive_shared_value(const region& r);
/// The vector axis lies inside the passes (cpp/rows.hpp): it is reduced, or nothing is.
bool row_mode(const region& r, const region_schedule& s);
/// How many rows, at most `most`, can be read at once: their sums need one pass, and some factor is the same for all of them. 1 where that is not so.
constexpr int most_rows_together = 8;
int rows_together(const region& r, const region_schedule& s, int most);
/// True when a row is passed over several times and another one follows it in the same loop.
bool has_next_row(const region& r, const region_schedule& s);
/// True when non-temporal stores can be used: some store walks the vector axis with step 1.
bool can_stream(const region& r, const region_schedule& s, int lanes);

/// True when the rows of a product's register tiles are whole cache lines of its result, so that they can leave past the caches as they are.
bool whole_lines(const region& r, const region_schedule& s, int lanes);

/// A block of rows is read a few times only: where the steps of a row of its left factor (of dtype `left`) lie side by side, packing it costs more than it brings.
bool reads_rows_in_place(const region& r, dtype left);

/// Sizes of a contraction: rows, columns and steps of one batch element, phases of a strided transposed convolution apart.
struct contraction_size {
  int64_t m = 1, n = 1, k = 1, taps = 1, channels = 1;
};
contraction_size size_of_contraction(const region& r);

/// Of a recurrence's gates, so many are summed up together: four vectors beside each other leave sixteen registers three rows, and the weights are read once for each tile.
constexpr int gates_together(operation op, int lanes) { return op == operation::lstm && lanes < 16 ? 2 : gates_of(op); }
/// The register tile of a recurrence: rows, and `vectors` of units of each gate that is summed up with it. What it sums up stays in registers.
blocking recurrent_tile(const region& r, int lanes, int threads);

/// What the words of 32 bits of a product's factors hold: int8 where both are and sums are int32, bfloat16 where one is and the other is or is int8 (which bfloat16 has
/// exactly); float32: the product is computed in no such words. Two factors in bfloat16 need tiles for it; without them there are pairs (helpers/pairs.cpp).
dtype words_of(const loop_program& program, const region& r, bool tiles);

/// A blocking of another program made fit for this one: whole tiles, no more than there is.
blocking fitted(blocking b, const region& r, int lanes);

/// float32 of a vector on this machine.
int lanes_of(const machine_limits& limits);

/// For programs that split_for_threads() has seen (threads.hpp).
schedule starting_schedule(const loop_program& program, const machine_limits& limits, int threads);

} // namespace pragma::synthesis
