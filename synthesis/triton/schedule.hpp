// A schedule of Triton kernels: how each region is cut into programs and steps. starting_triton_schedule() is analytical, the
// search changes it by triton_moves(). It travels as JSON in candidate::schedule and stands in the header of the module.
#pragma once

#include "diagnosis/profile.hpp"
#include "synthesis/loops/region.hpp"
#include "synthesis/schedule/schedule_move.hpp"

namespace pragma::synthesis {

/// How much of a region one program takes at a time, and with how many threads. All sizes are powers of two, as tiles must be.
struct triton_block {
  int64_t lanes = 1024; ///< results side by side: elements of a pointwise region, rows of a reduction, rows (m) of a contraction
  int64_t steps = 1;    ///< reduced elements at a time; of a contraction: elements of k
  int64_t columns = 1;  ///< contractions only: columns (n)
  int warps = 4;
  int stages = 3;       ///< of loads in flight in a loop
};
PRAGMA_JSON(triton_block, lanes, steps, columns, warps, stages)
inline bool operator==(const triton_block& a, const triton_block& b) {
  return a.lanes == b.lanes && a.steps == b.steps && a.columns == b.columns && a.warps == b.warps && a.stages == b.stages;
}

struct triton_region_schedule {
  triton_block block;
  std::vector<triton_block> alternatives; ///< @triton.autotune times these beside `block` at the first call; empty: no autotune
  bool one_pass = true;       ///< loops: a variance beside its mean, a sum of exponentials beside the maximum
  int64_t chunks = 1;         ///< programs that share one reduced row (split_k of a contraction); their partial results meet in scratch
  int64_t group = 8;          ///< contractions: rows of tiles that run side by side, so that they share columns in L2
  std::string precision = "ieee"; ///< contractions: "ieee", "tf32x3" (float32 accuracy on tensor cores) or "tf32"
  bool split_first = false;   ///< "tf32x3": a kernel of its own splits one factor and lays it out along k, as tensor cores read it
  bool by_residue = true;     ///< strided transposed convolutions: columns that are equal modulo the stride together, else side by side
};
PRAGMA_JSON(triton_region_schedule, block, alternatives, one_pass, chunks, group, precision, split_first, by_residue)

struct triton_schedule {
  std::vector<triton_region_schedule> regions;
};
PRAGMA_JSON(triton_schedule, regions)

/// What the schedule takes from the device, with an H200's numbers where the limits do not say.
struct device_sizes {
  int units = 132;                  ///< compute units
  int64_t shared = 227 << 10;       ///< bytes of one unit that a program may use
  int warp = 32;                    ///< threads that run in step
  bool tf32 = true;                 ///< tensor cores take TF32; AMD's matrix units take float32 itself, and Triton refuses "tf32" on most of them
  explicit device_sizes(const machine_limits& limits);
};

/// Whether the device can start programs of these blocks, by their threads and shared memory, in the precision that they name. Alternatives that
/// it cannot start are left out.
bool starts_on(const device_sizes& device, triton_schedule& s, const loop_program& program);

constexpr int64_t most_shares = 1024; ///< programs of one row
constexpr int64_t most_partial_sums = int64_t{1} << 28; ///< float32 of one contraction: 1 GiB

using triton_move = schedule_move<triton_schedule>;

/// The least power of two that is not below n.
int64_t power_above(int64_t n);
/// Results (or rows) and reduced elements of a region that is no contraction.
int64_t lanes_of(const region& r);
int64_t steps_of(const region& r);
/// Both factors of a contraction are of one half type, which the matrix units take as they are.
bool multiplies_halves(const loop_program& program, const contraction& c);

/// Its weights can be laid out beforehand: all results meet them in one order.
bool weights_have_one_order(const region& r, bool by_residue);

triton_schedule starting_triton_schedule(const loop_program& program, const machine_limits& limits);
/// Every move, the most promising in general first, those of contractions (triton_anchor_moves()) included.
const std::vector<triton_move>& triton_moves();

// Contractions (triton_anchor*.cpp)
triton_region_schedule starting_anchor_schedule(const loop_program& program, const region& r, const device_sizes& device);
const std::vector<triton_move>& triton_anchor_moves();
/// Bytes of shared memory that a program of a contraction takes for its tiles. `split`: one factor comes in two parts.
int64_t shared_bytes(const triton_block& block, bool split);
/// Tiles that a contraction can have, in a schedule that somebody else wrote.
bool sound_anchor(const triton_region_schedule& s);

} // namespace pragma::synthesis
