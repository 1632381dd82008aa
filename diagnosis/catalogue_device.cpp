// What the default metrics of the devices' profilers mean and how to read them, in our own words; the tools' documentation goes
// further, and comes in through the knowledge base. docs/metrics.md lists the same.
#include "diagnosis/catalogue_device.hpp"

namespace pragma::diagnosis_detail {

namespace {

constexpr const char* guide = "Nsight Compute, Profiling Guide (metrics reference)";
constexpr const char* stalls = "Nsight Compute, Profiling Guide (warp stall reasons)";
constexpr const char* rocm = "ROCm, rocprofiler-sdk (counters and derived metrics)";
constexpr const char* ascend = "CANN, msprof (op_summary and PipeUtilization)";

} // namespace

const std::vector<metric_meaning>& device_metrics() {
  static const std::vector<metric_meaning> table = {
      {"launches_per_call", "count", "Kernels that one call launched.", "Each costs a launch, and what it passes on goes through memory.", "pragma, docs/metrics.md (devices)"},

      {"gpu__time_duration.sum", "ns", "Time from the start to the end of a kernel on the device, without launching it.", "Set it against seconds_per_call: what is missing goes into launching. Not comparable with the timer's figures: the clocks differ.", guide},
      {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", "Use of the busiest part of the compute units (issue slots, arithmetic and matrix units).", "Above 80: computing is the limit. Below 60, with memory below 60 as well: warps wait.", guide},
      {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%", "Use of the busiest part of the memory system, from shared memory to DRAM.", "Above 80: some level of memory is the limit; the level's own throughput says which.", guide},
      {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%", "Use of the device's memory, of the interface or of its cells.", "Above 80: DRAM is the limit, only fewer bytes help.", guide},
      {"dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", "The same, of the memory controllers alone.", "Above 80: DRAM is the limit, only fewer bytes help.", guide},
      {"lts__throughput.avg.pct_of_peak_sustained_elapsed", "%", "Use of the L2 cache's slices.", "High while DRAM is not: reuse in larger tiles, or use whole sectors.", guide},
      {"l1tex__throughput.avg.pct_of_peak_sustained_active", "%", "Use of L1 and shared memory.", "High: bank conflicts, narrow accesses, or too little reuse in registers.", guide},
      {"dram__bytes_read.sum", "bytes", "Bytes read from the device's memory.", "Compare with the task's inputs: more means that data is read several times.", guide},
      {"dram__bytes_write.sum", "bytes", "Bytes written to the device's memory.", "Below the outputs: L2 kept the rest. Above: intermediate tensors or spills.", guide},
      {"l1tex__t_sector_hit_rate.pct", "%", "Share of sectors that L1 had.", "0 is right for data that is used once. Low in a kernel that reuses data: it must come from registers or shared memory instead.", guide},
      {"lts__t_sector_hit_rate.pct", "%", "Share of sectors that L2 had; about 50 for a copy, as stores hit.", "Low in a matrix product: group the programs that share operands.", guide},
      {"sm__warps_active.avg.pct_of_peak_sustained_active", "%", "Achieved occupancy: warps that were on a multiprocessor, of those that it can hold.", "Low: little to hide latency with. Enough where the schedulers issue all the same.", guide},
      {"sm__maximum_warps_per_active_cycle_pct", "%", "Theoretical occupancy: warps that registers, shared memory and block size let it hold.", "The launch__occupancy_limit_* metrics say which of them is the limit.", guide},
      {"launch__registers_per_thread", "registers", "Registers of each thread.", "255 is the most there are: the rest spills. 65536 a multiprocessor, so 128 leave room for 16 warps.", guide},
      {"launch__shared_mem_per_block", "bytes", "Shared memory of each block.", "Grows with num_stages and BLOCK_K; one multiprocessor of a Hopper device has 228 KiB.", guide},
      {"launch__occupancy_limit_registers", "blocks", "Blocks of a multiprocessor that the registers allow.", "The smallest of the four limits decides.", guide},
      {"launch__occupancy_limit_shared_mem", "blocks", "Blocks of a multiprocessor that the shared memory allows.", "The smallest of the four limits decides.", guide},
      {"launch__occupancy_limit_warps", "blocks", "Blocks of a multiprocessor that the places for warps allow.", "The smallest of the four limits decides.", guide},
      {"launch__occupancy_limit_blocks", "blocks", "Blocks that a multiprocessor can hold at all.", "The limit for very small blocks.", guide},
      {"launch__waves_per_multiprocessor", "ratio", "Blocks over the blocks that the device holds at once.", "Just above a whole number: the last wave is nearly empty. Below 1: places are empty from the start.", guide},
      {"launch__grid_size", "count", "Blocks (Triton: programs) of the launch.", "Below the number of multiprocessors some of them idle.", guide},
      {"launch__block_size", "count", "Threads of a block: 32 x num_warps.", "More warps spread a tile over more registers; fewer need fewer barriers.", guide},
      {"launch__sm_count", "count", "Multiprocessors of the device.", "The grid should be twice as large at the least.", guide},
      {"smsp__issue_active.avg.pct_of_peak_sustained_active", "%", "Cycles in which a scheduler issued an instruction.", "Above 60 few warps are enough. Low: warps wait, the stall reasons say for what.", guide},
      {"smsp__warps_eligible.avg.per_cycle_active", "warps", "Warps that could have issued, per scheduler and cycle.", "Below 1 the scheduler often has nothing to issue.", guide},
      {"smsp__inst_executed.sum", "instructions", "Instructions that warps executed.", "Compare versions: fewer is better at the same use of the units.", guide},
      {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%", "Cycles in which the matrix units worked.", "0 in a contraction: tl.dot runs on the FMA units (float32 with input_precision=\"ieee\").", guide},
      {"sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active", "%", "Cycles in which the float32 multiply-add units worked.", "High: arithmetic is the limit. In a contraction the matrix units would do more.", guide},
      {"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio", "bytes", "Bytes of each 32-byte sector that global loads use.", "32 is ideal, 4 one float32 of a sector (0: no such loads, or asynchronous ones).", guide},
      {"smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio", "bytes", "Bytes of each 32-byte sector that global stores use.", "32 is ideal, 4 one float32 of a sector (0: no such stores).", guide},
      {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "sectors", "Sectors of 32 bytes that global loads asked L1 for.", "Over the requests: 4 is ideal for 32-bit elements, 16 for vectors of four, 32 is one sector for each thread.", guide},
      {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "sectors", "Sectors of 32 bytes that global stores wrote.", "Over the requests, as for loads.", guide},
      {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "count", "Global loads of warps that reached L1.", "Fewer and wider ones are better.", guide},
      {"l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "count", "Global stores of warps that reached L1.", "Fewer and wider ones are better.", guide},
      {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio", "sectors", "Sectors that one global load of a warp touches.", "4 is ideal for 32-bit elements, 16 for vectors of four, 32 is one sector for each thread.", guide},
      {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio", "sectors", "Sectors that one global store of a warp touches.", "4 is ideal for 32-bit elements, 16 for vectors of four, 32 is one sector for each thread.", guide},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "count", "Repeats of accesses to shared memory because two threads needed the same bank.", "Over the wavefronts: above a fifth they cost time where shared memory is busy.", guide},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "count", "The same, of loads alone.", "Often an operand that is read against the order in which it was stored.", guide},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", "count", "The same, of stores alone.", "Often a conversion of layout before tl.dot.", guide},
      {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "count", "Passes through shared memory that all accesses took.", "The more, the more of them are conflicts or conversions of layout.", guide},
      {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed", "%", "Use of shared memory.", "Above 60 shared memory is the limit.", guide},
      {"smsp__sass_inst_executed_op_local_ld.sum", "instructions", "Loads of warps from local memory.", "Above 0: registers spill, or an array is indexed at run time.", guide},
      {"smsp__sass_inst_executed_op_local_st.sum", "instructions", "Stores of warps to local memory.", "Above 0: registers spill.", guide},
      {"sm__cycles_active.avg", "cycles", "Cycles in which a multiprocessor had work, on average.", "Far below the kernel's cycles: the grid is too small or uneven.", guide},
      {"sm__inst_executed.avg.per_cycle_active", "1/cycle", "Instructions of warps for each cycle of a multiprocessor; 4 are the most.", "Low: warps wait. High and slow: too many instructions.", guide},
      {"dram__bytes.sum.per_second", "bytes/s", "Bytes that move between L2 and the device's memory, per second.", "Compare with the measured DRAM bandwidth.", guide},
      {"launch__occupancy_limit_barriers", "blocks", "Blocks of a multiprocessor that the barriers allow.", "Rarely the limit.", guide},
      {"smsp__warps_active.avg.per_cycle_active", "warps", "Warps on a scheduler; 16 are the most.", "Few: each needs independent instructions of its own.", guide},
      {"smsp__thread_inst_executed_per_inst_executed.ratio", "count", "Threads that an instruction ran for, of 32.", "Below 32: branches that differ within a warp, or blocks smaller than a warp.", guide},
      {"smsp__thread_inst_executed_pred_on_per_inst_executed.ratio", "count", "The same, without threads that a predicate switched off.", "Low: masks switch off most of the block.", guide},
      {"l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "sectors", "Sectors of local memory that were loaded.", "Above 0: registers spill.", guide},
      {"l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", "sectors", "Sectors of local memory that were stored.", "Above 0: registers spill.", guide},
      {"l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum", "sectors", "Sectors that atomic operations without a result sent to L2; threads of a warp with the same address count one each.", "Reduce within the program first: one for each result.", guide},
      {"l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum", "sectors", "The same, of atomic operations whose result is used.", "Write partial results, and combine them in a second kernel.", guide},
      {"lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed", "%", "Time in which the busiest slice of L2 worked on atomic operations.", "Above 60: operations on the same addresses wait for each other.", guide},
      {"lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed", "%", "The same, of all slices on average.", "Far below the busiest one: few addresses.", guide},
      {"smsp__average_warp_latency_per_inst_issued.ratio", "cycles", "Cycles between two instructions of a warp; the stall reasons are its parts.", "Large is harmless while there are enough warps.", guide},

      {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "instructions", "Warps that wait for data from global or local memory, on average for each instruction issued.", "The usual one in kernels that stream; harmful only while DRAM is not busy: load ahead, more warps.", stalls},
      {"smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio", "instructions", "Warps that wait for shared memory or a special function.", "Fewer reductions across threads, fewer exp and log, no conversions of layout in the loop.", stalls},
      {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "instructions", "Warps that wait for the others of their block.", "Fewer warps for each program, one reduction after the loop.", stalls},
      {"smsp__average_warps_issue_stalled_branch_resolving_per_issue_active.ratio", "instructions", "Warps that wait for the target of a branch.", "Longer iterations, fewer conditions.", stalls},
      {"smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio", "instructions", "Warps that the dispatcher holds back.", "Rarely the reason; vary num_warps.", stalls},
      {"smsp__average_warps_issue_stalled_drain_per_issue_active.ratio", "instructions", "Warps that wait for their last stores before they end.", "Wide stores, fewer and longer programs.", stalls},
      {"smsp__average_warps_issue_stalled_imc_miss_per_issue_active.ratio", "instructions", "Warps that wait for the constant cache.", "Usual at the start of short kernels.", stalls},
      {"smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio", "instructions", "Warps that wait because the queue of global and local accesses is full.", "Wider accesses, no scattered elements, no spills.", stalls},
      {"smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio", "instructions", "Warps that wait for an arithmetic unit.", "That unit is the limit: fewer operations of its kind.", stalls},
      {"smsp__average_warps_issue_stalled_membar_per_issue_active.ratio", "instructions", "Warps that wait for a memory fence.", "Avoid atomics and fences.", stalls},
      {"smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio", "instructions", "Warps that wait because the queue of shared memory and special functions is full.", "Fewer accesses to shared memory, fewer conversions of layout.", stalls},
      {"smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio", "instructions", "Warps that wait for instructions to be fetched.", "Very short kernels, or code larger than the instruction cache.", stalls},
      {"smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio", "instructions", "Warps that could have issued while another one did.", "High: there are more warps than needed, and larger tiles would not hurt.", stalls},
      {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "instructions", "Warps that wait for the fixed latency of their last instruction.", "More independent work for each thread.", stalls},

      {"VALUBusy", "%", "Time in which the vector units of a compute unit worked.", "Above 80: arithmetic is the limit.", rocm},
      {"MfmaUtil", "%", "Time in which the matrix units worked.", "0 in a contraction: use tl.dot in a precision that they have.", rocm},
      {"MemUnitBusy", "%", "Time in which the memory unit worked, waiting included.", "Above 80: memory is the limit.", rocm},
      {"OccupancyPercent", "%", "Waves that were on a compute unit, of those that it can hold.", "Low: little to hide latency with.", rocm},
      {"LDSBankConflict", "%", "Time in which bank conflicts stalled the local data share.", "Above 5: change tiles or layouts.", rocm},
      {"kernel_duration", "ns", "Time of the kernels of a call, from their trace.", "Set it against seconds_per_call: what is missing goes into launching.", rocm},
      {"VALUUtilization", "%", "Lanes of the vector units that were switched on.", "Low: branches or masks.", rocm},
      {"MemUnitStalled", "%", "Time in which the memory unit was stalled.", "High: accesses are too small or scattered.", rocm},
      {"FETCH_SIZE", "KB", "Data fetched from the device's memory, in 1024 bytes.", "Compare with the task's inputs.", rocm},
      {"WRITE_SIZE", "KB", "Data written to the device's memory, in 1024 bytes.", "Compare with the task's outputs.", rocm},
      {"L2CacheHit", "%", "Share of requests that L2 had.", "Low in a matrix product: group the programs that share operands.", rocm},
      {"Scratch_Size", "bytes", "Scratch memory of a work item.", "Above 0: registers spill.", rocm},

      {"Task Duration(us)", "us", "Time of an operator on the device.", "Set it against seconds_per_call.", ascend},
      {"aic_mac_ratio", "ratio", "Share of the time in which the cube unit worked.", "Above 0.8: it is the limit.", ascend},
      {"aic_cube_ratio", "ratio", "The same, as newer versions call it.", "Above 0.8: it is the limit.", ascend},
      {"aiv_vec_ratio", "ratio", "Share of the time in which the vector unit worked.", "Above 0.8: it is the limit.", ascend},
      {"aic_mte2_ratio", "ratio", "Share of the time in which data moved from global memory to the cube core.", "Above 0.8: memory is the limit.", ascend},
      {"aiv_mte2_ratio", "ratio", "Share of the time in which data moved from global memory to the vector core.", "Above 0.8: memory is the limit.", ascend},
      {"aiv_mte3_ratio", "ratio", "Share of the time in which data moved from the vector core to global memory.", "Above 0.8: memory is the limit.", ascend},
      {"aic_scalar_ratio", "ratio", "Share of the time that scalar instructions of the cube core took.", "Above 0.3: too little work for each instruction.", ascend},
      {"aiv_scalar_ratio", "ratio", "Share of the time that scalar instructions of the vector core took.", "Above 0.3: too little work for each instruction; larger blocks.", ascend},
  };
  return table;
}

} // namespace pragma::diagnosis_detail
