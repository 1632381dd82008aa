// Rules about what a device's compute units do: arithmetic, matrix units, waiting, and how many warps there are to hide it.
#include "base/text.hpp"
#include "diagnosis/rule_context.hpp"

#include <algorithm>

namespace pragma::rule::device {

namespace {

/// Nsight Compute's reasons for which a warp does not issue (Profiling Guide, Warp Stall Reasons), in our words.
struct stall_reason {
  const char* name;
  const char* meaning;
  std::vector<std::string> remedies;
};
const std::vector<stall_reason>& stall_reasons() {
  static const std::vector<stall_reason> table = {
      {"long_scoreboard", "for data from global or local memory (through L1, L2 or DRAM)",
       {"Have more loads under way: num_stages of 3 to 5 in loops (Triton then loads ahead), several independent tl.load before the first use, larger BLOCK.",
        "Have more warps: smaller tiles or fewer registers for each program, more programs, num_warps of 8."}},
      {"short_scoreboard", "for shared memory, or for a special function (exp, log, rsqrt, sin)",
       {"Reduce less often across threads: sum blocks element-wise in the loop, and call tl.sum or tl.max once after it.",
        "Use fewer special functions: exp2 with a pre-scaled argument instead of exp, one reciprocal instead of many divisions.",
        "Avoid conversions of layout and transposes in the loop: they go through shared memory."}},
      {"barrier", "for other warps of the block at a barrier",
       {"Use fewer warps for each program (num_warps of 1 to 4): rows that one warp can hold need no barrier to be reduced.",
        "Reduce once after the loop instead of in each step, and handle several rows in each program.",
        "Let more programs share a multiprocessor (fewer registers, less shared memory), so that others run meanwhile."}},
      {"mio_throttle", "because the queue to shared memory and special functions is full",
       {"Fewer and wider accesses to shared memory: reduce element-wise in registers before reducing across threads.", "Fewer special functions and conversions of layout in the loop."}},
      {"lg_throttle", "because the queue for global and local memory is full: too many small accesses",
       {"Load wider: contiguous blocks of 4 float32 for each thread (BLOCK >= 128 x num_warps) instead of scattered elements.",
        "Load an element once and keep it: no repeated loads of the same rows, no spills."}},
      {"tex_throttle", "because the queue of the texture unit is full", {"Issue fewer accesses at a time."}},
      {"math_pipe_throttle", "for an arithmetic unit that is busy",
       {"Move work to other units: tl.dot on the matrix units, exp2 instead of exp, integer index arithmetic out of the loop.", "Compute less: hoist what does not change, use reciprocals."}},
      {"wait", "for the fixed latency of the instruction before it",
       {"Give each thread more independent work: larger BLOCK, several accumulators, loops unrolled with tl.static_range.", "Have more warps (smaller tiles, more programs)."}},
      {"dispatch_stall", "because the dispatcher holds the instruction back", {"Vary num_warps and the tile: the mix of instructions fills one port."}},
      {"branch_resolving", "for the target of a branch",
       {"Fewer and longer iterations: larger BLOCK in loops, tl.static_range for short ones.", "Masks and tl.where instead of conditions that differ between programs."}},
      {"no_instruction", "for instructions: the code does not fit the instruction cache, or the kernel is very short",
       {"Generate less code: smaller tiles, no tl.static_range over long loops, fewer specialised branches.", "Do more work in each program."}},
      {"imc_miss", "for constants that the cache does not hold", {"Pass fewer arguments, or make them tl.constexpr."}},
      {"drain", "for its last stores to be taken before it can end",
       {"Store in wide contiguous pieces, and let each program do more work so that there are fewer ends (several blocks for each program)."}},
      {"membar", "for memory fences", {"Avoid atomics and fences between programs: write partial results and combine them in a second small kernel."}},
      {"gmma", "for a matrix product under way", {"More stages (num_stages of 3 to 4) and larger BLOCK_K, so that loads and products overlap."}},
      {"sleeping", "asleep", {"Remove sleeps and spinning on locks."}},
  };
  return table;
}

constexpr const char* bytes_of_loads = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio";

bool mentions(const std::string& source, std::string_view word) { return source.find(word) != std::string::npos; }

} // namespace

stall greatest_stall(const facts& f) {
  stall greatest;
  double all = f.value_or("smsp__average_warp_latency_per_inst_issued.ratio", 0);
  const bool known = all > 0;
  double most = 0;
  for (const auto& reason : stall_reasons()) {
    const auto name = std::string("smsp__average_warps_issue_stalled_") + reason.name + "_per_issue_active.ratio";
    const auto waiting = f.value(name);
    if (!waiting) continue;
    if (!known) all += *waiting;
    if (*waiting <= most) continue;
    most = *waiting;
    greatest.reason = reason.name;
    greatest.meaning = reason.meaning;
    greatest.remedies = reason.remedies;
    greatest.metric = name;
  }
  if (all > 0) greatest.share = std::min(1.0, most / all);
  return greatest;
}

std::optional<double> busiest_unit(const facts& f) {
  std::optional<double> most;
  for (const char* name : {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
                           "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed",
                           "lts__throughput.avg.pct_of_peak_sustained_elapsed", "VALUBusy", "MfmaUtil", "MemUnitBusy"})
    if (const auto v = f.value(name)) most = std::max(most.value_or(0), *v / 100);
  return most;
}

std::optional<double> issue_share(const facts& f) {
  if (const auto v = f.value("smsp__issue_active.avg.pct_of_peak_sustained_active")) return *v / 100;
  return f.value("smsp__issue_active.avg.per_cycle_active");
}

namespace {

const metric* matrix_units(const facts& f) {
  return f.first({"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                  "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active", "MfmaUtil"});
}

/// One matrix instruction keeps the units busy for many cycles: they may be while hardly anything is issued.
bool matrix_units_busy(const facts& f) {
  const auto share = matrix_units_share(f);
  return share && severity(limit::unit_busy, *share * 100) > 0;
}

} // namespace

std::optional<double> matrix_units_share(const facts& f) {
  const auto* m = matrix_units(f);
  return m ? std::optional<double>(m->value / 100) : std::nullopt;
}

bool waits_for_operands(const facts& f) {
  const auto ordinary = f.value(bytes_of_loads);
  if (!ordinary || *ordinary <= 0 || !mentions(f.in.source, "tl.dot") || !matrix_units_share(f) || matrix_units_busy(f)) return false;
  const auto stalled = greatest_stall(f);
  return stalled.reason && std::string_view(stalled.reason) == "long_scoreboard" && severity(limit::stall_share, stalled.share * 100) > 0;
}

std::optional<finding> tensor_cores_idle(const facts& f) {
  const auto* tensor = matrix_units(f);
  const auto* fma = f.first({"sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active", "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", "VALUBusy"});
  constexpr double idle_percent = 2, contraction_intensity = 16; // FLOP/byte
  if (!tensor || !fma || tensor->value > idle_percent) return std::nullopt;
  // Many operations for each element alone are no contraction: steps of an iteration, a long polynomial.
  const bool sums_products = f.in.contracts || mentions(f.in.source, "tl.sum");
  const bool product = mentions(f.in.source, "tl.dot") || (sums_products && f.in.bytes > 0 && f.in.flops / f.in.bytes >= contraction_intensity);
  if (!product) return std::nullopt;
  evidence_for e(f, bottleneck::tensor_cores_idle);
  if (!e.metric(fma->name, limit::fma_without_tensor, "while the matrix units work " + short_number(tensor->value) + "% of the time")) return std::nullopt;
  std::vector<std::string> remedies = {"tl.dot(a, b, acc, input_precision=\"tf32x3\"): three TF32 products on the matrix units give nearly float32's accuracy."};
  if (f.in.products == product_precision::half)
    remedies = {"Give tl.dot the operands as they are loaded: float16 and bfloat16 have matrix units, and their sums are float32 all the same. No .to(tl.float32) before it, no input_precision=\"ieee\"."};
  if (f.in.products == product_precision::tf32) remedies.insert(remedies.begin(), "tl.dot(a, b, acc, input_precision=\"tf32\"): this task allows TF32.");
  if (!mentions(f.in.source, "tl.dot")) remedies.insert(remedies.begin(), "Write the contraction as tl.dot over tiles of at least 16x16x16 instead of tl.sum over products.");
  remedies.push_back("Tiles that the matrix units like: BLOCK_M and BLOCK_N of 64 to 256, BLOCK_K of 32 (TF32) or 64 (FP16), num_warps of 4 or 8, num_stages of 3 or 4.");
  return e.finish("A contraction runs on the ordinary FMA units while the matrix units, which do several times as many operations, are idle.", std::move(remedies));
}

std::optional<finding> compute_bound(const facts& f) {
  evidence_for e(f, bottleneck::compute_bound);
  e.metric("sm__throughput.avg.pct_of_peak_sustained_elapsed", limit::unit_busy, "of what the compute units can do");
  if (f.has_roof && !f.at_bandwidth && f.roof.limit != "launch latency") {
    const double share = f.roof.share * 100;
    e.derived("achieved_gflops", f.roof.gflops, "GFLOP/s", provenance::measured, severity(limit::peak_share, share),
              "achieved " + short_number(f.roof.gflops) + " GFLOP/s, " + short_number(share) + "% of the measured " + f.roof.limit);
  }
  e.metric("VALUBusy", limit::unit_busy, "of the time the vector units worked");
  e.metric("MfmaUtil", limit::unit_busy, "of the time the matrix units worked");
  for (const char* pipe : {"aic_mac_ratio", "aic_cube_ratio", "aiv_vec_ratio"}) e.metric(pipe, limit::unit_ratio, "of the time this arithmetic pipe worked");
  if (!e.any()) return std::nullopt;
  if (tensor_cores_idle(f)) e.scale(nearer_cause); // the units that are busy need not be
  const auto tensor = f.value("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active");
  // The matrix units are busy, and the work that the task needs explains it.
  if (matrix_units_busy(f) && f.has_roof && !f.at_bandwidth && severity(limit::peak_share, f.roof.share * 100) > 0) {
    e.limit_reached(nothing_to_follow);
    return e.finish("The matrix units are near what they can do, with nothing but the products that the task needs: it is at its limit.",
                    {"Stop here, or change what is computed: a lower precision where it is allowed, blocks that are known to be zero left out.",
                     "What is left are tiles and pipelining: BLOCK_M, BLOCK_N and num_stages, tried one by one."});
  }
  std::vector<std::string> remedies;
  if (tensor && *tensor > 30) remedies.push_back("The matrix units are in use: larger tiles and deeper pipelining (num_stages of 3 to 5) keep them fed; fewer conversions around tl.dot.");
  else remedies.push_back("Use cheaper arithmetic: exp2 with a pre-scaled argument, rsqrt, one reciprocal instead of divisions, fused multiply-adds; matrix units (tl.dot) for contractions.");
  remedies.push_back("Compute once what all programs or iterations share; keep index arithmetic out of inner loops (pointers that are advanced, tl.constexpr strides).");
  remedies.push_back("Choose an algorithm with fewer operations: pull factors out of sums, skip blocks that are known to be zero.");
  return e.finish("The arithmetic units are near what they can do: fewer or cheaper operations are the way to be faster.", std::move(remedies));
}

std::optional<finding> latency_bound(const facts& f) {
  const auto busiest = busiest_unit(f);
  evidence_for e(f, bottleneck::latency_bound);
  for (const char* pipe : {"aiv_scalar_ratio", "aic_scalar_ratio"}) e.metric(pipe, limit::scalar_ratio, "of the time goes into scalar work");
  // VALUBusy counts no matrix instruction: of a product nobody knows that its units idle where nobody looked at them.
  const bool matrix_unknown = f.value("VALUBusy") && !f.value("MfmaUtil") && mentions(f.in.source, "tl.dot");
  if (busiest && !matrix_unknown) e.derived("busiest unit", *busiest * 100, "%", provenance::measured, 0.8 * severity(limit::units_idle, *busiest * 100), "the busiest unit is used " + short_number(*busiest * 100) + "%");
  const bool operands = waits_for_operands(f);
  if (operands && !e.any()) { // loads that pass through registers keep L1 busy twice, with what asynchronous ones bring once
    const double share = *matrix_units_share(f) * 100;
    e.derived(matrix_units(f)->name, matrix_units(f)->value, "%", provenance::measured, 0.8 * severity(limit::units_idle, share),
              "the matrix units work " + short_number(share) + "% of the time, while the operands are loaded as ordinary values");
  }
  if (!e.any()) return std::nullopt; // some unit is the limit, or nothing is known
  const auto stalled = greatest_stall(f);
  std::string why = operands ? "Each step of the product waits for its operands, as nothing is loaded ahead while the matrix units work" : "Warps wait while neither memory nor arithmetic is busy";
  std::vector<std::string> remedies = {"Have more work in flight: more warps (num_warps), more programs, larger BLOCK, num_stages of 3 to 5 in loops."};
  if (stalled.reason) {
    const double strength = severity(limit::stall_share, stalled.share * 100);
    const auto value = f.value_or(stalled.metric, 0), best = f.in.best ? f.in.best->value(stalled.metric).value_or(0) : 0;
    e.derived(stalled.metric, value, "instructions", provenance::measured, strength, whole_percent(stalled.share) + " of the cycles between two instructions of a warp go into " + stalled.reason, best, best > 0);
    if (strength > 0) {
      why += ": " + whole_percent(stalled.share) + " of their time they wait " + stalled.meaning;
      remedies = stalled.remedies;
    }
  }
  if (operands) remedies.insert(remedies.begin(), "num_stages of 3 or 4: Triton then loads the operands asynchronously, steps ahead. It does so only for tl.load in the loop itself, whose pointers do not depend on other loads.");
  // Spills, poor access patterns, atomic operations and too few blocks are nearer causes of waiting; their own rules speak of them.
  if (register_spills(f) || uncoalesced_access(f) || bank_conflicts(f) || atomic_contention(f)) e.scale(nearer_cause);
  e.scale(1 - launching_share(f));
  const auto waves = f.value("launch__waves_per_multiprocessor"), grid = f.value("launch__grid_size"), units = f.value("launch__sm_count");
  if ((grid && units && *grid < *units) || (!grid && waves && *waves < 0.5)) e.scale(nearer_cause);
  return e.finish(why + ".", std::move(remedies));
}

std::optional<finding> occupancy_limited(const facts& f) {
  // Few warps are enough where they issue most of the time, or where memory is the limit anyway.
  const auto issued = issue_share(f), busiest = busiest_unit(f);
  if (issued && severity(limit::unit_busy, *issued * 100) > 0) return std::nullopt;
  if (busiest && severity(limit::unit_busy, *busiest * 100) >= 1) return std::nullopt;
  if (matrix_units_busy(f)) return std::nullopt;
  evidence_for e(f, bottleneck::occupancy_limited);
  e.scale(1 - launching_share(f));
  const auto theoretical = f.value("sm__maximum_warps_per_active_cycle_pct"), achieved = f.value("sm__warps_active.avg.pct_of_peak_sustained_active");
  constexpr double few_warps_weight = 0.8; // low occupancy is a reason only where something has to be hidden
  const bool by_limit = e.metric("sm__maximum_warps_per_active_cycle_pct", limit::theoretical_occupancy, "of the warps that a multiprocessor can hold fit at once", few_warps_weight);
  if (theoretical && achieved && *theoretical > 0) {
    const double share = *achieved / *theoretical * 100;
    e.derived("sm__warps_active.avg.pct_of_peak_sustained_active", *achieved, "%", provenance::measured, few_warps_weight * severity(limit::achieved_occupancy, share),
              "only " + short_number(*achieved) + "% of a multiprocessor's warps were there on average, where " + short_number(*theoretical) + "% fit");
  } else if (!theoretical) {
    for (const char* name : {"sm__warps_active.avg.pct_of_peak_sustained_active", "OccupancyPercent"})
      e.metric(name, limit::theoretical_occupancy, "of a compute unit's warps were there on average", few_warps_weight);
  }
  if (!e.any()) return std::nullopt;

  struct cause {
    const char* metric;
    const char* level;
    const char* why;
    std::vector<std::string> remedies;
  };
  static const std::vector<cause> causes = {
      {"launch__occupancy_limit_registers", "registers", "the registers of each thread",
       {"Use fewer registers for each thread: smaller tiles, or more num_warps for the same tile (the tile's values are spread over more threads).",
        "Hold fewer values at once: a loop over the row instead of all of it, partial sums instead of tiles; maxnreg=N in triton.Config as a last resort, as it may spill."}},
      {"launch__occupancy_limit_shared_mem", "shared memory", "the shared memory of each block",
       {"Lower num_stages, or BLOCK_K: each stage holds its tiles in shared memory.", "Use smaller BLOCK_M and BLOCK_N, so that two or more blocks fit."}},
      {"launch__occupancy_limit_warps", "block size", "the size of the block",
       {"Choose num_warps so that whole blocks fill the multiprocessor (4 or 8 rather than 12 or 32)."}},
      {"launch__occupancy_limit_blocks", "block size", "the number of blocks that fit, as each is small",
       {"Use larger blocks: num_warps of 4 or more, several rows for each program."}}};
  const cause* tightest = nullptr;
  double blocks = 0;
  for (const auto& c : causes)
    if (const auto limit = f.value(c.metric); limit && (!tightest || *limit < blocks)) {
      tightest = &c;
      blocks = *limit;
    }
  if (by_limit && tightest) {
    e.result().level = tightest->level;
    return e.finish("Too few warps fit on a multiprocessor to hide latency: " + std::string(tightest->why) + " limits it to " + short_number(blocks) + (blocks == 1 ? " block." : " blocks."), tightest->remedies);
  }
  if (by_limit || !theoretical)
    return e.finish("Too few warps are on a compute unit to hide latency.",
                    {"Use smaller tiles or more num_warps for the same tile, so that more programs fit.", "Start more programs: smaller BLOCK, or split the reduced axis."});
  e.scale(0.8);
  e.result().level = "grid";
  return e.finish("Fewer warps are there than fit: the grid is too small, or blocks end unevenly.",
                  {"Start more programs: smaller BLOCK, fewer rows for each, or a split of the reduced axis with a second kernel that combines the parts.",
                   "Give all programs the same amount of work."});
}

} // namespace pragma::rule::device
