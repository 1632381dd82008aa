// What each metric of docs/metrics.md means and how to read it. A test holds the two lists together.
#include "diagnosis/catalogue_device.hpp"

namespace pragma {

namespace {

constexpr const char* timer = "pragma, docs/metrics.md (timer)";
constexpr const char* tma = "Yasin, A Top-Down Method for Performance Analysis and Counters Architecture, ISPASS 2014; perf-stat(1)";
constexpr const char* perf = "perf-list(1), perf-stat(1)";
constexpr const char* software = "perf-stat(1) software events, proc(5)";
constexpr const char* experiment = "pragma, docs/metrics.md (experiment)";
constexpr const char* callgrind = "Valgrind manual, chapters Cachegrind and Callgrind";
constexpr const char* loop = "pragma, docs/metrics.md (objdump)";
constexpr const char* mca = "LLVM documentation, llvm-mca";
constexpr const char* remarks = "GCC manual, -fopt-info; clang user's manual, -Rpass";

const std::vector<metric_meaning>& cpu_metrics() {
  static const std::vector<metric_meaning> table = {
      {"seconds_per_call", "s", "Median time of one call, measured in alternation with the reference.", "Lower is better. Below about 2 us the call itself counts.", timer},
      {"achieved_gbs", "GB/s", "Bytes that must move (inputs, parameters, outputs once each) per second.", "Near the measured bandwidth of the level that holds the data: only fewer bytes help. Far below: latency, computing or extra passes.", timer},
      {"achieved_gflops", "GFLOP/s", "The task's floating-point operations per second.", "Near the measured peak: only fewer operations help. Far below with high intensity: no SIMD, dependency chains, poor reuse.", timer},
      {"arithmetic_intensity", "FLOP/byte", "Operations per byte that must move.", "Low (below peak / bandwidth): bandwidth is the limit. High: the execution units are.", timer},
      {"roofline_share", "%", "Least possible time by the measured roofline over the time taken.", "95 and more: done. 50: at most a factor of 2 is left. Above 105: the measurement is suspect.", timer},

      {"cycles", "count", "Core clock cycles of one call, all threads.", "Lower is better; instructions / cycles is the IPC.", perf},
      {"instructions", "count", "Instructions that were completed in one call.", "High per element: scalar code or needless work. Fewer instructions at a lower IPC can be faster.", perf},
      {"branches", "count", "Branch instructions of one call.", "Many per element: the loop is not vectorised or not unrolled.", perf},
      {"branch-misses", "count", "Branches whose direction or target was predicted wrongly.", "Each costs about 15 cycles.", perf},
      {"cache-references", "count", "Accesses that reached the last-level cache (on AMD: L2).", "Compare with bytes / 64: more means that data is fetched repeatedly.", perf},
      {"cache-misses", "count", "Accesses that the last-level cache (on AMD: L2) did not hold.", "Times 64 bytes gives the traffic beyond it, less what was prefetched.", perf},
      {"L1-dcache-loads", "count", "Loads of one call.", "Many per element: scalar loads, or values that were not kept in registers.", perf},
      {"L1-dcache-load-misses", "count", "Loads that L1d did not hold.", "Times 64 bytes over the task's bytes: 1 is one pass, 16 a line per float32 element.", perf},
      {"dTLB-load-misses", "count", "Loads whose page was not in the data TLB.", "More than 5 in 1000 instructions: the accesses jump between pages.", perf},
      {"ipc", "1/cycle", "Instructions completed per cycle.", "Low (below 1): the core waits for memory or for its own results. High is good only if the instructions are needed: vector code has fewer of them and a lower IPC.", perf},
      {"branch_miss_rate", "%", "Mispredicted share of the branches.", "Above 3: branches depend on the data; use selects and masks.", perf},
      {"cache_miss_rate", "%", "Missing share of the accesses to the last-level cache.", "High and many accesses: the working set does not fit.", perf},
      {"l1d_miss_rate", "%", "Share of loads that missed L1d.", "Sequential scalar float32: 6; 256-bit vectors: up to 50. Far above that: strided access.", perf},
      {"topdown.retiring", "%", "Pipeline slots that did useful work.", "High (above 70): the pipeline is well used, only fewer instructions help. Low: look at the other three.", tma},
      {"topdown.bad_speculation", "%", "Slots lost to work that was thrown away.", "Above 15: unpredictable branches (or memory-ordering clears).", tma},
      {"topdown.frontend_bound", "%", "Slots in which the front end delivered no instruction.", "Above 15: code too large, too many jumps.", tma},
      {"topdown.backend_bound", "%", "Slots in which the back end could take no instruction.", "Above 20: memory or execution units; the second level says which.", tma},
      {"topdown.memory_bound", "%", "Part of back-end bound: waiting for loads or stores.", "Above 20: locality, bandwidth or latency of memory.", tma},
      {"topdown.core_bound", "%", "Part of back-end bound: waiting for execution units or results.", "Above 10: long dependency chains (low IPC), dividers, or full ports (high IPC).", tma},
      {"topdown.fetch_latency", "%", "Part of front-end bound: waiting for instruction fetches.", "Above 10: instruction-cache or TLB misses, branch resteers.", tma},
      {"topdown.fetch_bandwidth", "%", "Part of front-end bound: fetched, but too few instructions at a time.", "Above 20: decoding is the limit; smaller loops fit the micro-op cache.", tma},
      {"topdown.branch_mispredicts", "%", "Part of bad speculation: mispredicted branches.", "Above 10: replace branches by selects.", tma},
      {"topdown.machine_clears", "%", "Part of bad speculation: the pipeline was flushed for other reasons.", "Above 10: memory-ordering conflicts (false sharing), self-modifying code, assists.", tma},
      {"topdown.light_operations", "%", "Part of retiring: instructions of one micro-op.", "The usual kind of useful work.", tma},
      {"topdown.heavy_operations", "%", "Part of retiring: instructions of several micro-ops or microcode.", "Above 10: divisions, gathers, denormal assists.", tma},

      {"software.task_clock", "s", "CPU time of one call, all threads together.", "With threads: well above the single-threaded time means that synchronisation costs.", software},
      {"software.cpus_utilized", "CPUs", "CPU time over wall time.", "Below the number of threads: some of them slept or had nothing to do.", software},
      {"software.context_switches", "count", "Times that a thread was taken off its CPU, per call.", "1 and more: threads sleep and wake within a call.", software},
      {"software.cpu_migrations", "count", "Moves of a thread to another CPU, per call.", "Should be 0; each loses warm caches.", software},
      {"software.page_faults", "count", "Pages mapped on first touch, per call.", "1 and more: every call allocates fresh memory.", software},
      {"software.thread_imbalance", "ratio", "CPU time of the busiest thread over the mean.", "1 is balanced; above 1.2 some threads wait. Waiting in a spin loop hides it.", software},

      {"experiment.cached_time", "%", "Time of a call with the pages of all tensors folded onto few that the first-level cache holds, of the usual time.", "Near 100: the core is the limit, not the data's way. Far below: waiting for data takes the rest.", experiment},
      {"experiment.cached_reads_time", "%", "The same with only the inputs folded.", "Near 100 where cached_time is far below: storing the outputs is what costs.", experiment},
      {"experiment.flushed_time", "%", "Time of a call with denormals flushed to zero, of the usual time.", "Far below 100: arithmetic on denormal numbers takes the rest.", experiment},
      {"experiment.ones_time", "%", "Time of a call with every floating-point input 1, of the usual time.", "Far below 100: the time depends on the values, by mispredicted branches or by denormals (see flushed_time).", experiment},
      {"experiment.huge_pages_time", "%", "Time of a call with the tensors on pages of 2 MiB, of the usual time.", "Far below 100: misses of the TLB take the rest; touch fewer pages at a time.", experiment},
      {"experiment.one_thread_time", "%", "Time of a call with one thread, of the time with all.", "100 times the threads: they scale. 100 or less: more threads gain nothing.", experiment},
      {"experiment.one_processor_time", "%", "Time of a call with all its threads on one processor, of the usual time.", "100 or less: on processors of their own the threads wait for lines that another one writes. Far above: they gain, or change places too often here.", experiment},
      {"experiment.in_order_time", "%", "Time that the call's bytes take alone: each input read and each output written once, in order, by as many threads, of the usual time.", "Near 100: the call is as quick as its bytes allow here and now. Far below: the rest is what it does with them.", experiment},
      {"experiment.streaming_time", "%", "Time that the call's bytes take alone, written past the caches, of their time when written through them.", "Far below 100: streaming stores are quicker for outputs as large as these, on this machine.", experiment},
      {"experiment.apart_time", "%", "Time of a call with inputs and outputs at other places of their pages, of the usual time.", "Below 100: loads waited for stores at the same place of another page (4 KiB aliasing).", experiment},
      {"experiment.freed_time", "%", "Time of a call of the same source compiled with leave to reorder sums and to take full vectors, of the usual time.", "Far below 100: the source forbids, or the flags do, what would make it quicker; those flags, or several sums by hand. Near 100: the compiler does not know how.", experiment},
      {"experiment.single_time", "%", "Time of a call of the same source compiled with float in place of double, of the usual time.", "Far below 100: double precision costs the rest.", experiment},
      {"experiment.reciprocal_time", "%", "Time of a call of the same source compiled with leave to multiply by estimates of reciprocals, of the usual time.", "Far below 100: divisions and square roots cost the rest. Near 100: they do not.", experiment},

      {"callgrind.Ir", "count", "Instructions executed, simulated.", "Compare versions with it: it has no noise. It says nothing of how fast they run.", callgrind},
      {"callgrind.Dr", "count", "Instructions that read data.", "Few per element with wide vectors.", callgrind},
      {"callgrind.Dw", "count", "Instructions that write data.", "More than outputs / vector width: temporaries or spilled registers.", callgrind},
      {"callgrind.I1mr", "count", "Instruction fetches that missed the simulated L1i.", "Matters only above 1% of Ir.", callgrind},
      {"callgrind.ILmr", "count", "Instruction fetches that missed the simulated last level.", "Cold misses only, in a healthy kernel.", callgrind},
      {"callgrind.D1mr", "count", "Reads that missed the simulated L1d.", "Times 64 bytes over the task's bytes shows how often the data travels. No prefetcher is simulated.", callgrind},
      {"callgrind.D1mw", "count", "Writes that missed the simulated L1d.", "Each is a line that is first read, unless streaming stores are used.", callgrind},
      {"callgrind.DLmr", "count", "Reads that missed the simulated last level.", "Lines that come from memory.", callgrind},
      {"callgrind.DLmw", "count", "Writes that missed the simulated last level.", "Output that does not fit: streaming stores may help.", callgrind},
      {"callgrind.Bc", "count", "Conditional branches.", "More than one per two elements: little vectorisation or short loops.", callgrind},
      {"callgrind.Bcm", "count", "Conditional branches that the simulated predictor got wrong.", "The real predictor is better; high values still point to branches that depend on data.", callgrind},
      {"callgrind.Bi", "count", "Indirect branches (calls through pointers, switch tables).", "Should be few.", callgrind},
      {"callgrind.Bim", "count", "Indirect branches that the simulated predictor got wrong.", "Should be few.", callgrind},
      {"callgrind.d1_miss_rate", "%", "Simulated L1d misses per data access.", "Depends on the vector width (up to 50 for 256-bit streaming): read callgrind.l1_traffic_ratio first.", callgrind},
      {"callgrind.ll_miss_rate", "%", "Simulated last-level misses per data access.", "As above: read callgrind.ll_traffic_ratio first.", callgrind},
      {"callgrind.branch_miss_rate", "%", "Simulated mispredicted share of the branches.", "Above 5: branches depend on the data.", callgrind},
      {"callgrind.instructions_per_output", "count", "Instructions per output element.", "Compare versions with it; below 1 for vectorised element-wise work.", callgrind},
      {"callgrind.l1_traffic_ratio", "ratio", "Bytes brought into L1d over the bytes that must move.", "1: one pass. 2: two passes. Towards 16: strided access.", callgrind},
      {"callgrind.ll_traffic_ratio", "ratio", "Bytes brought from memory over the bytes that must move.", "1: one pass. 2: two passes over memory, so fusing could halve the time.", callgrind},
      {"callgrind.hottest_line", "line", "Source line with most simulated instructions.", "Start there.", callgrind},
      {"callgrind.hottest_line_share", "%", "Its share of all instructions.", "High: one loop is all that matters.", callgrind},

      {"samples.count", "count", "Samples of the main thread's CPU time, in user mode.", "A few hundred and more: shares are good to some percent.", "perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK"},
      {"samples.outside_loops_share", "%", "CPU time in the candidate's code outside of its innermost loops.", "High: set-up, remainders and outer loops cost more than the loops themselves.", "perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK"},
      {"samples.outside_vectors_share", "%", "Of samples.outside_loops_share: CPU time in instructions on several values at once.", "Near it: no scalar remainder; the bodies of outer loops are vector code.", "perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK"},
      {"samples.library_share", "%", "CPU time in functions that are not the candidate's.", "High: a scalar math function is called for each element.", "perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK"},
      {"samples.moving_share", "%", "CPU time in the C library's memcpy, memmove and memset.", "High beside loops of the kernel's own: the data passes through memory once more than the loops need.", "perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK"},
      {"samples.system_share", "%", "CPU time in the operating system.", "High: pages are touched for the first time in every call.", "perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK"},

      {"samples.split_share", "%", "Share of the hot loop's accesses of 16 bytes and more that cross a line of 64 bytes.", "Each takes two accesses: let rows begin on lines.", "perf_event_open(2), PERF_SAMPLE_REGS_USER"},
      {"samples.sliding_share", "%", "Share of these whose alignment nobody can choose: a load that comes to the same bytes at several places of their lines, as a window does.", "High: fewer loads, or shifts of what is loaded, as no padding helps.", "perf_event_open(2), PERF_SAMPLE_REGS_USER"},
      {"samples.alias_share", "%", "Share of the samples at which a load had the low 12 bits of a store just before it, in another page.", "The load waits for the store for nothing: move one of the buffers by some lines.", "perf_event_open(2), PERF_SAMPLE_REGS_USER"},
      {"samples.far_share", "%", "Share of the hot loop's loads that go to another page at each trip.", "High: each trip needs another entry of the TLB.", "perf_event_open(2), PERF_SAMPLE_REGS_USER"},
      {"samples.one_set_share", "%", "Share of the hot loop's loads that move by a multiple of 4 KiB at each trip.", "High: their lines have few places in L1 and push each other out; let rows begin a line farther apart.", "perf_event_open(2), PERF_SAMPLE_REGS_USER"},
      {"samples.strided_share", "%", "Share of the hot loop's loads that go to another line at each trip and take less than a line there.", "High: most of each line is fetched and not used.", "perf_event_open(2), PERF_SAMPLE_REGS_USER"},

      {"hot_loop.line", "line", "Source line of the loop that most likely takes the time.", "Start there.", loop},
      {"hot_loop.instructions", "count", "Instructions in its body.", "Divide by the elements per iteration. Above 1000 the micro-op cache may not hold it.", loop},
      {"hot_loop.vector_bits", "bits", "Widest vector register used in it.", "0: scalar. Less than the machine has: -march=native and -mprefer-vector-width may be missing.", loop},
      {"hot_loop.vector_share", "%", "Packed share of its floating-point arithmetic.", "100: vectorised. 0: one element at a time.", loop},
      {"hot_loop.divides", "count", "Divisions and square roots in it.", "Each takes some 5 cycles per vector: multiply by reciprocals where possible.", loop},
      {"hot_loop.gathers", "count", "Gather instructions in it.", "They load one element each: make the access contiguous.", loop},
      {"hot_loop.calls", "count", "Function calls in it.", "A call to a scalar function prevents vectorisation.", loop},
      {"hot_loop.streaming_stores", "count", "Stores in it that bypass the caches.", "Useful for outputs larger than the last-level cache, harmful for smaller ones.", loop},
      {"hot_loop.stores", "count", "Stores in it that do not go to the stack.", "Compare with the outputs: more means temporaries.", loop},
      {"hot_loop.chains", "count", "Registers, or places in memory, that carry a floating-point result from one trip to the next.", "0: trips are independent. 1 or 2 in a reduction: its latency is the limit; 8 and more hide it.", loop},
      {"hot_loop.flops", "FLOP", "Floating-point operations of one trip, a multiply-add counted as two.", "Grows with unrolling: it is what other figures of the loop are divided by.", loop},
      {"hot_loop.fused", "count", "Fused multiply-adds in it.", "0 in a loop with products and sums: half of the peak is out of reach.", loop},
      {"hot_loop.blocked_loads", "count", "Loads in it that are wider than the stores just before them to the same place.", "Each waits until the stores are in the cache: load what was stored, or build the vector in registers.", loop},
      {"hot_loop.chained_loads", "count", "Loads in it whose address follows from what they loaded in the trip before.", "None begins before the one before it is done: walk several such chains at once.", loop},
      {"hot_loop.updates_by_value", "count", "Numbers in memory that a trip changes at places which loaded values choose.", "One that is changed again at once waits for the store before: keep several tables and add them at the end.", loop},
      {"hot_loop.tables", "count", "In how many tables these lie.", "1: equal values in succession wait for each other.", loop},
      {"llvm_mca.cycles_per_iteration", "cycle", "Predicted cycles of one iteration if all data is in L1.", "Far below what is measured: the data does not come fast enough.", mca},
      {"llvm_mca.block_rthroughput", "cycle", "Cycles that the execution units need at the least.", "Far below cycles_per_iteration: a dependency chain is the limit.", mca},
      {"llvm_mca.ipc", "1/cycle", "Predicted instructions per cycle.", "Far above the measured IPC: memory is the limit.", mca},
      {"llvm_mca.uops_per_cycle", "1/cycle", "Predicted micro-ops per cycle.", "Near the width of the core: fewer instructions is the only way.", mca},
      {"llvm_mca.backend_pressure", "%", "Cycles in which resources or dependencies held the loop back.", "The parts of it say which.", mca},
      {"llvm_mca.resource_pressure", "%", "Cycles in which execution ports were full.", "High: fewer operations of the kind that the busiest port takes.", mca},
      {"llvm_mca.data_dependencies", "%", "Cycles in which operands were not ready.", "High: more independent work (accumulators, unrolling).", mca},
      {"llvm_mca.register_dependencies", "%", "Of these: results of earlier instructions.", "High: a loop-carried chain; use several accumulators.", mca},
      {"llvm_mca.memory_dependencies", "%", "Of these: loads that wait for earlier stores.", "High: values travel through memory; keep them in registers.", mca},
      {"llvm_mca.top_port_pressure", "%", "Use of the busiest port.", "Near 100: that port is the limit.", mca},
      {"llvm_mca.flops_per_cycle", "FLOP/cycle", "Floating-point operations of the loop in a predicted cycle.", "Does not change when a loop is unrolled: compare versions by it. Far below the peak: something else than arithmetic fills the loop.", mca},

      {"remarks.vectorized_loops", "count", "Source lines with a loop that the compiler vectorised.", "0 in a numeric kernel: look at the reasons in the remarks.", remarks},
      {"remarks.missed_loops", "count", "Source lines with a loop that it did not vectorise.", "Matters where the hot line is one of them.", remarks},
      {"remarks.vector_bytes", "bytes", "Widest vectors that it used.", "16: SSE only; -march=native may be missing.", remarks},
  };
  return table;
}

} // namespace

const std::vector<metric_meaning>& metric_catalogue() {
  static const std::vector<metric_meaning> all = [] {
    auto table = cpu_metrics();
    const auto& devices = diagnosis_detail::device_metrics();
    table.insert(table.end(), devices.begin(), devices.end());
    return table;
  }();
  return all;
}

const metric_meaning* find_meaning(std::string_view metric_name) {
  for (const auto& m : metric_catalogue())
    if (m.name == metric_name) return &m;
  return nullptr;
}

} // namespace pragma
