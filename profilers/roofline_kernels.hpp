// The loops that measure what this machine can do at most: reading, copying (plain and streaming stores) and float32
// multiply-adds, each compiled for several instruction sets, the widest that runs here chosen at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace pragma::roofline {

/// All pointers 64-byte aligned, all sizes multiples of 4096 bytes.
struct kernel_set {
  const char* isa;                                                            ///< "avx512f", "avx2+fma", "baseline"
  int simd_bits;
  void (*read)(const std::byte* from, size_t bytes, int64_t repeats);         ///< loads only
  void (*read_streams)(const std::byte* from, size_t bytes, int64_t repeats); ///< loads only, from four places in turn
  void (*copy)(std::byte* to, const std::byte* from, size_t bytes, int64_t repeats);
  void (*stream_copy)(std::byte* to, const std::byte* from, size_t bytes, int64_t repeats); ///< non-temporal stores
  double (*multiply_add)(int64_t repeats);                                    ///< float operations done
  double (*divide)(int64_t repeats);                                          ///< vectors divided
};

/// Does this CPU multiply on tiles (AMX, bfloat16), and does the system let this process?
bool has_tiles();
/// So many steps of four products of tiles of bfloat16; operations done. Only where has_tiles().
double multiply_tiles(int64_t repeats);

/// The widest set that this CPU runs.
const kernel_set& best_kernels();

/// How often a loop must run so that it takes `least_seconds`, a power of two; `seconds_of` runs it so often. One long run may be a thread that had to wait
/// for its CPU: with too few repeats from it the meeting of the threads would be all that is timed. The shortest of several counts.
int64_t repeats_for(double least_seconds, const std::function<double(int64_t)>& seconds_of);

} // namespace pragma::roofline
