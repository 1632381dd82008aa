// Rules about the memory side of a device: its measured roofline, what ncu, rocprofv3 and msprof say of DRAM, caches, shared
// and local memory. Metric names are the tools' own.
#include "base/text.hpp"
#include "diagnosis/rule_context.hpp"

#include <algorithm>

namespace pragma::rule::device {

namespace {

constexpr double sector_bytes = 32;
constexpr double once = 1.2;        ///< traffic over the bytes that must move: nothing to be saved
constexpr double uncounted = 0.9;   ///< of the confidence, where the counter that would show a cause was not read

/// Metrics that stand for one thing together. A sum has a name of its own: that of a part is another number's.
using parts = std::initializer_list<std::string_view>;

std::string sum_of(parts names) {
  std::string text;
  for (const auto name : names) text += (text.empty() ? "" : " + ") + std::string(name);
  return text;
}

double best_sum(const facts& f, parts names) {
  double total = 0;
  if (f.in.best)
    for (const auto name : names) total += f.in.best->value(name).value_or(0);
  return total;
}

struct level_use {
  const char* level;
  const metric* use; ///< share of its peak in %
};

} // namespace

std::optional<finding> at_roofline(const facts& f) {
  if (!f.has_roof || f.roof.limit == "launch latency") return std::nullopt; // launch_bound speaks of that
  const double share = f.roof.share * 100;
  if (severity(limit::at_roofline, share) <= 0) return std::nullopt;
  evidence_for e(f, bottleneck::at_roofline);
  e.derived("roofline_share", share, "%", provenance::measured, 1,
            "one call takes " + format_seconds(f.seconds) + "; " + f.roof.limit + " and the launch allow " + format_seconds(f.roof.attainable_seconds) + " at the least");
  e.result().level = f.level;
  const bool suspect = f.roof.share > 1.05;
  std::vector<std::string> remedies = {"Stop here, or change what is computed: fewer bytes (a narrower dtype, fusion with the neighbouring operations)."};
  if (!f.at_bandwidth) remedies.front() = "Stop here, or change what is computed: fewer operations, or a precision that faster units have (tl.dot with input_precision=\"tf32x3\", where allowed \"tf32\").";
  if (suspect) remedies.push_back("Measure the device again with `pragma hardware --again`, with --backend and --device as for the run.");
  return e.finish("The kernel runs at " + format_number(share, 0) + "% of the measured " + f.roof.limit + ": the hardware is the limit, not the code." +
                      (suspect ? " More than 100% means that the limit was measured too low, or that not all the work is done: measure the roofline again." : ""),
                  std::move(remedies));
}

std::optional<finding> register_spills(const facts& f) {
  evidence_for e(f, bottleneck::register_spills);
  const parts local_names = {"l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"};
  const auto local = f.sum(local_names), global = f.sum({"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"});
  if (local && *local > 0 && global && *global > 0) {
    const double share = *local / *global * 100, before = best_sum(f, local_names);
    e.derived(sum_of(local_names), *local, "sectors", provenance::measured, severity(limit::local_share, share),
              short_number(*local) + " sectors of local memory, " + short_number(share) + "% of those of global memory", before, f.in.best && before > 0);
  }
  // Sectors are the better measure: the same instruction may touch one or thirty-two of them.
  const parts instruction_names = {"smsp__sass_inst_executed_op_local_ld.sum", "smsp__sass_inst_executed_op_local_st.sum"};
  const auto instructions = f.sum(instruction_names), requests = f.sum({"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"});
  if (!local && instructions && *instructions > 0 && requests && *requests > 0) {
    const double share = *instructions / *requests * 100, before = best_sum(f, instruction_names);
    e.derived(sum_of(instruction_names), *instructions, "instructions", provenance::measured, severity(limit::local_share, share),
              short_number(*instructions) + " loads and stores of local memory, " + short_number(share) + "% of the requests to global memory", before, f.in.best && before > 0);
  }
  e.metric("Scratch_Size", limit::scratch_bytes, "bytes of scratch memory of each work item");
  if (!e.any()) return std::nullopt;
  if (const auto registers = f.value("launch__registers_per_thread"); registers && *registers >= 250)
    e.derived("launch__registers_per_thread", *registers, "registers", provenance::measured, 0.6, short_number(*registers) + " registers a thread, and 255 are the most there are");
  e.result().level = "local memory";
  return e.finish("The values of a program do not fit into its threads' registers and go through local memory, which lies in DRAM behind the caches.",
                  {"Raise num_warps: the same tile over more threads needs fewer registers in each (4 -> 8, with tiles of 128x128 and more 8 or 16).",
                   "Make the tile smaller (BLOCK_M, BLOCK_N, or BLOCK of a row), or halve BLOCK_K; an accumulator of BLOCK_M x BLOCK_N float32 takes BLOCK_M x BLOCK_N / (32 x num_warps) registers of each thread.",
                   "Keep fewer values alive: work through a long row in a loop with running sums instead of holding all of it, and load again what is cheap to load.",
                   "Lower num_stages where pipelined operands are kept in registers."});
}

std::optional<finding> uncoalesced_access(const facts& f) {
  evidence_for e(f, bottleneck::uncoalesced_access);
  struct direction {
    const char* word;
    const char* bytes;
    const char* ratio;
    const char* sectors;
    const char* requests;
  };
  static constexpr direction directions[] = {
      {"loads", "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio", "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
       "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"},
      {"stores", "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio", "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
       "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"}};
  for (const auto& d : directions) {
    std::optional<double> per_request = f.value(d.ratio);
    const auto sectors = f.value(d.sectors), requests = f.value(d.requests);
    if (!per_request && sectors && requests && *requests > 0) per_request = *sectors / *requests;
    // A warp that reads one element for all its threads uses 4 bytes of a sector, and does no harm: it asks for one sector.
    constexpr double ideal_sectors = 4;
    if (per_request && *per_request <= ideal_sectors) continue;
    if (f.value_or(d.bytes, 0) > 0) // 0: there are none
      e.metric(d.bytes, limit::bytes_per_sector, std::string("so much of each 32-byte sector that ") + d.word + " move is used");
    if (per_request)
      e.derived(d.ratio, *per_request, "sectors", provenance::measured, severity(limit::sectors_per_request, *per_request),
                std::string("global ") + d.word + " touch " + short_number(*per_request) + " sectors a request (4 are ideal for 32-bit elements, 16 for vectors of four)");
  }
  if (!e.any()) return std::nullopt;
  if (f.in.bytes > 0)
    if (const auto moved = f.sum({"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"})) {
      const double ratio = *moved * sector_bytes / f.in.bytes;
      e.derived("global sectors x 32 / compulsory bytes", ratio, "ratio", provenance::measured, 0.5 * severity(limit::stride_traffic, ratio),
                short_number(ratio) + " times the bytes that must move pass through L1");
    }
  e.result().level = "L1";
  return e.finish("Neighbouring threads touch addresses that lie apart, so most of each 32-byte sector is moved for nothing.",
                  {"Let the last dimension of the block run over contiguous addresses: offsets rows[:, None] * stride + columns[None, :] with tl.arange(0, BLOCK) on the contiguous axis.",
                   "For a reduction over another than the last dimension load 2-D tiles with BLOCK_C (32 to 128) contiguous columns and reduce over axis 0 of the tile, one accumulator per column.",
                   "To transpose, load a tile along the rows and store tl.trans(tile) along the columns: Triton exchanges it through shared memory.",
                   "Compute indices with shifts of whole blocks rather than i % R and i // R of a flat index, and tell the compiler what is contiguous (tl.multiple_of, tl.max_contiguous)."});
}

std::optional<finding> bank_conflicts(const facts& f) {
  evidence_for e(f, bottleneck::bank_conflicts);
  const parts conflict_names = {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"};
  std::string named = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";
  auto conflicts = f.value(named);
  if (!conflicts) {
    conflicts = f.sum(conflict_names);
    named = sum_of(conflict_names);
  }
  auto wavefronts = f.value("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum");
  if (!wavefronts) wavefronts = f.sum({"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"});
  if (conflicts && wavefronts && *wavefronts > 0) {
    const double share = std::min(100.0, *conflicts / *wavefronts * 100);
    e.derived(named, *conflicts, "count", provenance::measured, severity(limit::bank_conflict_share, share),
              short_number(share) + "% of the accesses to shared memory are repeats for conflicting banks");
    // They cost time only where shared memory is a good part of the work.
    if (e.any())
      if (const auto use = f.value("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed")) {
        const double strength = severity(limit::unit_busy, *use);
        if (strength > 0) e.derived("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed", *use, "%", provenance::measured, 0.7 * strength, "shared memory is busy " + short_number(*use) + "% of the time");
        else e.scale(std::clamp(*use / 30, 0.3, 1.0));
      }
  }
  e.metric("LDSBankConflict", limit::lds_conflict_share, "of the time conflicts stall the local data share");
  e.result().level = "shared memory";
  return e.finish("Threads of a warp use the same bank of shared memory at once, so their accesses are done one after the other.",
                  {"Change the shape of the tiles that go through shared memory: BLOCK_K of 32 (128 bytes of float32 a row) or 64 lets Triton swizzle them; an operand that must be transposed in shared memory is the usual cause, so load it in the order in which tl.dot wants it.",
                   "Change num_warps: it changes the layouts, and with them the conversion between them.",
                   "Another precision of tl.dot needs other layouts: \"tf32x3\" stores split operands to shared memory, \"ieee\" and \"tf32\" do not.",
                   "Avoid conversions of layout: reduce along the axis that lies within a thread or a warp, and avoid tl.trans and tl.reshape of large tiles in the loop."});
}

std::optional<double> dram_excess(const facts& f) {
  const auto moved = f.sum({"dram__bytes_read.sum", "dram__bytes_write.sum"});
  if (!moved || f.in.bytes <= 0 || f.in.bytes < static_cast<double>(f.last_level_bytes) / 2) return std::nullopt;
  return std::max(1.0, *moved / f.in.bytes);
}

std::optional<finding> too_many_passes(const facts& f) {
  evidence_for e(f, bottleneck::too_many_passes);
  const parts nvidia = {"dram__bytes_read.sum", "dram__bytes_write.sum"}, amd = {"FETCH_SIZE", "WRITE_SIZE"}; // AMD's are in KiB
  const bool is_nvidia = f.sum(nvidia).has_value();
  const parts names = is_nvidia ? nvidia : amd;
  const double unit = is_nvidia ? 1 : 1024;
  auto moved = f.sum(names);
  if (!moved || f.in.bytes <= 0) return std::nullopt;
  *moved *= unit;
  // Small tasks: what else lies in L2 is written back meanwhile, and counts as ours.
  if (f.in.bytes < static_cast<double>(f.last_level_bytes) / 2) return std::nullopt;
  const double ratio = *moved / f.in.bytes, before = unit * best_sum(f, names);
  e.derived(sum_of(names), *moved, "bytes", provenance::measured, severity(limit::passes, ratio),
            format_bytes(*moved) + " move between DRAM and L2, " + short_number(ratio) + " times the " + format_bytes(f.in.bytes) + " that must", before, f.in.best && before > 0);
  if (!e.any()) return std::nullopt;
  if (f.has_roof && f.at_bandwidth)
    e.derived("roofline_share x traffic", std::min(1.0, f.roof.share * ratio) * 100, "%", provenance::measured, severity(limit::bandwidth_share, f.roof.share * ratio * 100),
              "the bytes that really move take " + whole_percent(std::min(1.0, f.roof.share * ratio)) + " of the measured DRAM bandwidth");
  e.result().level = "DRAM";
  return e.finish("The data travels " + short_number(ratio) + " times between DRAM and the chip although each byte is needed once: several kernels pass it on through memory, or one reads it again after L2 has lost it.",
                  {"Fuse the kernels: do the element-wise operations in the kernel that loads or stores the data anyway.",
                   "Read each row once: hold it in registers (one block as long as the row), or keep running statistics (online maximum and sum, Welford) in one pass.",
                   "Order the programs so that those that share data run at the same time: group the program ids (GROUP_M swizzle) in matrix products.",
                   "Write no intermediate tensor; keep partial results per program, and combine those in a small second kernel."});
}

std::optional<finding> atomic_contention(const facts& f) {
  evidence_for e(f, bottleneck::atomic_contention);
  // Operations on one address are done by one slice of L2, one after the other: the mean over all slices says little.
  const char* busiest = "lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed";
  if (!f.value(busiest) && f.in.source.find("tl.atomic_") != std::string::npos) {
    // Not counted (an older list of counters, a processor that lacks it): atomic operations in the source, and no unit that is busy with anything else.
    const auto busy = busiest_unit(f);
    const double idle = busy ? severity(limit::units_idle, *busy * 100) : 0;
    if (idle <= 0) return std::nullopt;
    e.derived("busiest unit", *busy * 100, "%", provenance::measured, 0.8 * idle, "the busiest unit is used " + short_number(*busy * 100) + "%, while L2's work on atomic operations was not counted");
    e.derived("source", 1, "", provenance::static_analysis, 0.5, "the source has atomic operations");
    e.scale(uncounted * (1 - launching_share(f)));
  } else if (!e.metric(busiest, limit::unit_busy, "of the time the busiest slice of L2 worked on atomic operations")) {
    return std::nullopt;
  }
  const parts names = {"l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum"};
  const auto mean = f.value("lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed");
  const bool few = mean && *mean * 2 < f.value_or(busiest, 0);
  if (const auto sectors = f.sum(names); sectors && *sectors > 0)
    e.derived(sum_of(names), *sectors, "sectors", provenance::measured, 0.5, short_number(*sectors) + " atomic operations on sectors in a call", best_sum(f, names), f.in.best && best_sum(f, names) > 0);
  e.result().level = "L2";
  return e.finish(std::string("Atomic operations wait for each other: L2 does those on ") + (few ? "the same few addresses" : "an address") + " one after the other.",
                  {"Write one partial result for each program, and combine those in a second small kernel (tl.sum over the parts).",
                   "Reduce within the program first (tl.sum over the whole block, then one atomic for each result), and let each program work through more of the input.",
                   "Spread the operations: several copies of the result, chosen by the program's id, which are added at the end."});
}

std::optional<finding> memory_bandwidth(const facts& f) {
  evidence_for e(f, bottleneck::memory_bandwidth_bound);
  // DRAM comes first where it is busy: L2 is at least as busy then, as all of DRAM's traffic passes through it.
  const level_use levels[] = {
      {"DRAM", f.first({"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed"})},
      {"L2", f.first({"lts__throughput.avg.pct_of_peak_sustained_elapsed", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"})},
      {"L1", f.first({"l1tex__throughput.avg.pct_of_peak_sustained_active", "l1tex__throughput.avg.pct_of_peak_sustained_elapsed"})}};
  std::string level;
  for (const auto& l : levels) {
    if (!l.use || !e.metric(l.use->name, limit::unit_busy, std::string("of what ") + l.level + " can deliver is used")) continue;
    level = l.level;
    break;
  }
  if (level == "L1" || level == "L2") {
    e.scale(0.9); // often the sign of a poor access pattern, which is the better thing to name
    // The busiest unit is the limit: a cache that is used less than the arithmetic is not. And operands that pass through registers are in L1 twice.
    const auto *use = level == "L2" ? levels[1].use : levels[2].use, *arithmetic = f.first({"sm__throughput.avg.pct_of_peak_sustained_elapsed"});
    if (waits_for_operands(f) || (arithmetic && arithmetic->value > use->value)) e.scale(nearer_cause);
  }
  if (f.has_roof && f.at_bandwidth && (level.empty() || level == "DRAM")) {
    const double share = f.roof.share * 100, strength = severity(limit::bandwidth_share, share);
    if (strength > 0) {
      e.derived("achieved_gbs", f.roof.gbs, "GB/s", provenance::measured, strength, "the compulsory bytes alone take " + short_number(share) + "% of what the measured DRAM bandwidth allows");
      level = "DRAM";
    }
  }
  e.metric("MemUnitBusy", limit::unit_busy, "of the time the memory unit worked, whichever cache answered"); // so it says nothing of the level
  for (const char* pipe : {"aiv_mte2_ratio", "aic_mte2_ratio", "aiv_mte3_ratio"})
    if (e.metric(pipe, limit::unit_ratio, "of the time the pipe that moves data to or from global memory worked") && level.empty()) level = "DRAM";
  e.result().level = level;
  if (const auto excess = dram_excess(f); level == "DRAM" && e.any() && excess && *excess < once) {
    const double share = f.has_roof ? f.roof.share * 100 : 0;
    if (f.has_roof && severity(limit::bandwidth_share, share) <= 0) e.scale(nothing_to_follow); // what keeps it from the measured bandwidth is not known
    else e.limit_reached(nothing_to_follow);
    return e.finish("The time goes into moving data, and each byte moves once: it is " + std::string(e.result().at_limit ? "at its limit, which DRAM sets" : "DRAM's pace") +
                        (f.has_roof ? ", at " + format_number(share, 0) + "% of the measured roofline." : "."),
                    {"Stop here, or change what is computed: fewer bytes (a narrower dtype, fusion with the neighbouring operations).",
                     "What is left is DRAM's pace: 16 bytes a thread, BLOCK of 1024 to 4096, one kernel instead of several, eviction_policy=\"evict_first\" on streamed loads."});
  }
  std::vector<std::string> remedies;
  if (level == "L1")
    remedies = {"Move less through L1 and shared memory: larger BLOCK_M and BLOCK_N reuse each operand more often.",
                "Use 16-byte accesses: contiguous blocks that are multiples of 4 float32 for each thread (BLOCK >= 128 x num_warps).",
                "Keep values in registers between the operations, and avoid conversions of layout (tl.trans, reductions over the outer axis) in the loop."};
  else if (level == "L2")
    remedies = {"Reuse what was loaded: larger tiles, and program ids grouped so that neighbours share operands (GROUP_M swizzle).",
                "Use all of each sector: contiguous addresses over neighbouring threads, 16 bytes for each.",
                "Fuse kernels so that intermediate results need no round trip through L2."};
  else
    remedies = {"Move fewer bytes: fuse operations so that each input is read once and each output written once.",
                "Vectorised loads and stores: 16 bytes a thread (contiguous tl.arange, BLOCK a multiple of 128 x num_warps), rows whose start is aligned (tl.multiple_of).",
                "More bytes in flight: BLOCK of 1024 to 4096, num_stages of 3 to 5 in loops over a row, and at least two programs for each multiprocessor.",
                "Keep out of L2 what is not read again: eviction_policy=\"evict_first\" on streamed loads, \"evict_last\" on what is read again."};
  return e.finish("The time goes into moving data: " + (level.empty() ? std::string("memory") : level) + " is near what it can deliver.", std::move(remedies));
}

} // namespace pragma::rule::device
