// What the rules of diagnose() share: the facts they read, the one table of thresholds, and how evidence becomes a
// finding's confidence. Internal to diagnosis/: everybody else calls diagnose() and thresholds().
#pragma once

#include "diagnosis/rules.hpp"
#include "diagnosis/time_table.hpp"

namespace pragma::rule {

/// Rows of the table of thresholds (thresholds.cpp), in its order.
enum class limit : size_t {
  frontend_bound, bad_speculation, memory_bound, core_bound, retiring, fetch_latency, branch_mispredicts, machine_clears,
  heavy_operations, low_ipc, high_ipc, branch_miss_rate, mispredict_cost, simulated_branch_miss_rate, instruction_miss_rate,
  loop_instructions, bandwidth_share, low_bandwidth_share, peak_share, at_roofline, stored_share, store_bandwidth_share, passes, stride_traffic,
  stride_miss_rate, tlb_misses, register_dependencies, latency_ratio, resource_pressure, port_pressure, core_share, divide_share,
  scalar_share, instructions_per_element, outside_hot_loop, branches_per_element, context_switches, parallel_call, cpus_share,
  thread_imbalance, thread_gain, library_waiting, library_moving, seconds_per_instruction, page_faults, call_seconds, element_operations,
  waiting_share, storing_share, without_denormals, without_surprises, with_huge_pages, with_streaming, with_tensors_apart, recompiled, unmodelled_share, split_share, alias_share, far_share, one_set_share, strided_share, scalar_time,
  // of devices
  unit_busy, units_idle, stall_share, theoretical_occupancy, achieved_occupancy, bytes_per_sector, sectors_per_request, bank_conflict_share,
  lds_conflict_share, local_share, scratch_bytes, tail_share, launch_share, outside_kernels, device_call_seconds, fma_without_tensor, unit_ratio, scalar_ratio,
  least_confidence, worsened, count
};

/// A model that needs so many times the measured time for a loop is wrong about it.
constexpr double refuted_by = 1.3;

const threshold& row(limit which);
inline double at(limit which) { return row(which).value; }
/// 0 on the good side of the threshold, 0.5 at it, rising to 1 at `full`.
double severity(limit which, double value);

/// What the rules read, with the derived figures that several of them need.
struct facts {
  explicit facts(const diagnosis_input& input);

  const diagnosis_input& in;
  bool device = false;                   ///< a GPU's or an NPU's profile: other rules read it
  double seconds = 0;                    ///< of one call; 0 = not measured
  bool slower_than_best = false;
  bool has_roof = false;
  roofline_point roof;
  bool at_bandwidth = false;             ///< the roofline's limit is a bandwidth
  double least_seconds = 0;              ///< what is left of a call at best: roof.likely_seconds, or what its bytes took beside it (experiment.in_order_time), where that was longer; 0 = unknown
  bool bytes_measured = false;           ///< experiment.in_order_time is there
  std::string level;                     ///< which: "L1", "L2", "L3", "memory"; on devices "DRAM"
  double traffic_ratio = 1;              ///< simulated traffic / compulsory bytes at the serving level, at least 1
  double elements = 0;                   ///< bytes / 4: float32 elements that one call touches
  double written_bytes = 0;              ///< 0 = unknown
  bool streaming_stores = false;         ///< in the source or in the hot loop
  bool prefetches = false;               ///< in the source
  bool parallel_source = false;          ///< starts or uses threads
  int accumulators = 0;                  ///< distinct variables that the source accumulates into; 0 = none seen
  int64_t last_level_bytes = 0;          ///< the largest cache; 0 = unknown
  std::vector<loop_cost> loops;          ///< where the time goes, the most first
  time_table table;

  std::optional<double> value(std::string_view name) const { return in.current->value(name); }
  double value_or(std::string_view name, double otherwise) const { return value(name).value_or(otherwise); }
  /// The first of these metrics that the profile has; null when it has none. Tools name the same thing differently.
  const metric* first(std::initializer_list<std::string_view> names) const;
  /// Sum over the metrics of these names that the profile has; nothing when it has none.
  std::optional<double> sum(std::initializer_list<std::string_view> names) const;
  bool has_flag(std::string_view start) const; ///< a flag that begins so was given
  /// The task does several operations for each element that it reads or writes: products, convolutions.
  bool contracts() const { return elements > 0 && in.flops >= 8 * elements; }
  /// Arithmetic of one trip of the hot loop for each element that it stores (or loads, where it stores none); 0 = unknown.
  double operations_per_element() const;
  const time_phase* longest_loop() const; ///< the first phase with a line; null without a table
  bool scalar_hot_loop() const;          ///< known to be mostly scalar
  bool vector_hot_loop() const;          ///< known to be mostly packed
  /// Time that the loops would take with all data in L1 (the table's core_seconds) over the time measured; 0 = unknown. Far below 1 the core is not
  /// what takes the time.
  double core_share = 0;
  /// The same as an experiment measured it, with the tensors folded into the first cache; nothing where none was made or it says nothing (streaming stores).
  /// `core_share` then is this figure.
  std::optional<double> cached;
  /// Of the time, what waits for data beyond the first cache, by that experiment; nothing without it.
  std::optional<double> waiting() const { return cached ? std::optional<double>(1 - *cached) : std::nullopt; }
  /// Of the time, what storing the outputs costs, by folding them as well as the inputs; nothing where that was not tried.
  std::optional<double> storing() const;
  /// What an experiment left of the time, 0..1; nothing where it was not made.
  std::optional<double> left_by(std::string_view experiment) const;
  /// Of the time, what neither the units and chains of the loops as llvm-mca has them nor waiting for data beyond the first cache explains; nothing without
  /// the experiment, where a loop's trips or cycles are unknown, or where the model needs far longer than the call took, which refutes it.
  std::optional<double> unmodelled() const;
  /// Of the time, what accesses across lines cost by the hot loop's loads: each takes the place of two. 0 = none, or unknown.
  double split_cost() const;
  /// One loop does the work, and goes through memory in order: each byte moves once. By the simulated traffic where there is one.
  bool moves_bytes_once() const;
  /// The loops that take the time load full vectors from one address after the other, by what samples saw: traffic then is no line that is fetched for little of it.
  bool goes_in_order() const;
  /// Of what samples saw outside of the innermost loops, the part in instructions on single values, 0..1; 1 where none saw it.
  double outside_scalar_part() const;
  /// The hot loop calls functions, and they are the candidate's own, by where samples saw the time.
  bool calls_its_own() const;
  /// Of the time, what was seen in the candidate's own innermost loops.
  double own_loops_share() const;
  /// Of n threads' ideal gain, what one thread instead of all showed, 0..1; nothing where that was not tried.
  std::optional<double> thread_gain() const;
  /// The same for a team that splits its work by numbers: with all threads on one processor, where none waits for another's line. Only a small one tells something: threads that wait
  /// for each other often take long to change places there.
  std::optional<double> processor_gain() const;
  /// How far llvm-mca's figures can be relied on: less where the loop calls functions that it does not see.
  double mca_trust = 1;
  /// What is left to gain for findings about the core: 1 while the memory side is far from its limit, towards 0 at it.
  double core_weight() const;
  /// The same for findings about bandwidth: less where the core's own time accounts for more of the call than its bytes do.
  double memory_weight() const;
};

/// Collects evidence for one class.
class evidence_for {
public:
  evidence_for(const facts& f, bottleneck what) : f_(f) { finding_.what = what; }

  /// A metric of the profile, if it is there and on the bad side of the threshold. Returns whether it counted.
  bool metric(std::string_view name, limit which, const std::string& reading, double weight = 1);
  /// A figure derived from several metrics, the source or a remark; `strength` 0..1.
  void derived(std::string name, double value, std::string unit, provenance how, double strength, std::string text, double best = 0, bool has_best = false);
  bool any() const { return !finding_.proof.empty(); }
  bool measured() const { return measured_; }
  /// Lowers the confidence by a factor 0..1.
  void scale(double factor) { doubt_ *= factor; }
  /// It is what the hardware can do: nothing to follow, and told so.
  void limit_reached(double factor) {
    scale(factor);
    finding_.at_limit = true;
  }
  finding& result() { return finding_; }
  /// The finding with its confidence; nothing when there was no evidence or too little.
  std::optional<finding> finish(std::string why, std::vector<std::string> remedies);

private:
  void add(evidence e, provenance how, double strength, bool got_worse);
  const facts& f_;
  finding finding_;
  double unexplained_ = 1;  ///< product of (1 - weight x strength)
  double doubt_ = 1;
  bool measured_ = false;
  std::string worse_;       ///< the first metric that is worse than the best version's
};

const char* word(provenance how);
/// "12.3", "4.51", "1.2e+09": three significant digits for people.
std::string short_number(double value);

using rule_function = std::optional<finding> (*)(const facts&);

// rules_memory.cpp
std::optional<finding> at_roofline(const facts&);
std::optional<finding> too_many_passes(const facts&);
std::optional<finding> strided_access(const facts&);
std::optional<finding> store_bandwidth(const facts&);
std::optional<finding> memory_bandwidth(const facts&);
std::optional<finding> memory_latency(const facts&);
std::optional<finding> split_access(const facts&);
std::optional<finding> address_aliasing(const facts&);
std::optional<finding> store_forwarding(const facts&);
// rules_core.cpp
std::optional<finding> not_vectorized(const facts&);
std::optional<finding> divider(const facts&);
std::optional<finding> dependency_chain(const facts&);
std::optional<finding> port_pressure(const facts&);
std::optional<finding> scalar_tail(const facts&);
std::optional<finding> front_end(const facts&);
std::optional<finding> bad_speculation(const facts&);
std::optional<finding> denormals(const facts&);
// rules_call.cpp
std::optional<finding> call_overhead(const facts&);
std::optional<finding> thread_overhead(const facts&);
std::optional<finding> load_imbalance(const facts&);
std::optional<finding> false_sharing(const facts&);
std::optional<finding> redundant_work(const facts&);

// Rules that read the profiles of devices; those above never do.
constexpr double nothing_to_follow = 0.45; ///< of the confidence, for a limit of the hardware where nothing is lacking that would help

namespace device {
/// Share of all warps' waiting that the greatest stall reason takes, 0..1, and its row in the table of reasons.
struct stall {
  const char* reason = nullptr; ///< "long_scoreboard"; null = none measured
  const char* meaning = "";
  std::vector<std::string> remedies;
  std::string metric;
  double share = 0;
};
stall greatest_stall(const facts&);
/// Share of the time that the busiest of the units (arithmetic, caches, memory) was busy, 0..1; nothing when unknown.
std::optional<double> busiest_unit(const facts&);
/// Share of the time in which schedulers issued an instruction, 0..1; nothing when unknown.
std::optional<double> issue_share(const facts&);
/// Share of the time in which the matrix units worked, 0..1, of the multiprocessors that had a block; nothing when unknown.
std::optional<double> matrix_units_share(const facts&);
/// A product whose operands are loaded as ordinary values, so that each step waits for them: asynchronous loads, which run while the matrix units work, do not
/// count among the loads whose bytes ncu weighs, and what warps wait for most is data.
bool waits_for_operands(const facts&);
/// Traffic with DRAM over the bytes that must move, at least 1; nothing when unknown, or when it is too little to be told from what else L2 writes back.
std::optional<double> dram_excess(const facts&);
/// Share of the call that its launches take, 0..1: no warp waits in it, and no unit could work. 0 = unknown.
double launching_share(const facts&);
constexpr double nearer_cause = 0.7;       ///< of the confidence, where another rule names a cause of the same symptoms

// rules_device_memory.cpp
std::optional<finding> at_roofline(const facts&);
std::optional<finding> register_spills(const facts&);
std::optional<finding> uncoalesced_access(const facts&);
std::optional<finding> bank_conflicts(const facts&);
std::optional<finding> too_many_passes(const facts&);
std::optional<finding> memory_bandwidth(const facts&);
std::optional<finding> atomic_contention(const facts&);
// rules_device_core.cpp
std::optional<finding> tensor_cores_idle(const facts&);
std::optional<finding> compute_bound(const facts&);
std::optional<finding> latency_bound(const facts&);
std::optional<finding> occupancy_limited(const facts&);
// rules_device_launch.cpp
std::optional<finding> launch_bound(const facts&);
std::optional<finding> tail_effect(const facts&);
} // namespace device

} // namespace pragma::rule
