// A finding: one diagnosed bottleneck with its evidence and what to try. Made by diagnose(); read by the Conductor,
// by the built-in coder (which maps each class to schedule moves) and by people in the report.
#pragma once

#include "diagnosis/profile.hpp"

namespace pragma {

/// The closed list of bottleneck classes. docs/diagnosis.md describes each.
enum class bottleneck {
  front_end_bound,
  bad_speculation,
  memory_bandwidth_bound, ///< which level: finding.level
  memory_latency_bound,
  store_bandwidth_bound,  ///< streaming stores may help
  too_many_passes,        ///< more traffic than the compulsory bytes
  strided_access,
  dependency_chain,       ///< core bound: latency of a loop-carried chain (too few accumulators)
  port_pressure,          ///< core bound: one execution port or the FMA units are full
  divider_bound,
  not_vectorized,         ///< finding.line
  scalar_tail,
  thread_overhead,
  load_imbalance,
  false_sharing,          ///< threads write into the same cache line
  split_access,           ///< loads and stores that cross a cache line
  address_aliasing,       ///< a load has the low 12 bits of a store just before it (4 KiB aliasing)
  store_forwarding,       ///< a load is wider than the stores to the same place just before it
  denormals,
  call_overhead,          ///< the kernel is so short that the call itself counts
  at_roofline,            ///< nothing left: the measured limit is reached
  redundant_work,         ///< the reference computes something and throws it away
  // Devices
  compute_bound,          ///< arithmetic units are the limit
  latency_bound,          ///< warps wait, neither memory nor arithmetic is busy; the stall reasons say for what
  occupancy_limited,      ///< by registers, shared memory, block size or the grid
  uncoalesced_access,     ///< more sectors a request than the data needs
  bank_conflicts,         ///< of shared memory
  launch_bound,           ///< launches take as long as the kernels
  tail_effect,            ///< the last wave, or the only one, leaves compute units idle
  tensor_cores_idle,      ///< a contraction on the ordinary units
  atomic_contention,      ///< atomic operations that queue for the same addresses
  register_spills         ///< values that go through local memory
};
NLOHMANN_JSON_SERIALIZE_ENUM(bottleneck, {{bottleneck::front_end_bound, "front_end_bound"},
                                          {bottleneck::bad_speculation, "bad_speculation"},
                                          {bottleneck::memory_bandwidth_bound, "memory_bandwidth_bound"},
                                          {bottleneck::memory_latency_bound, "memory_latency_bound"},
                                          {bottleneck::store_bandwidth_bound, "store_bandwidth_bound"},
                                          {bottleneck::too_many_passes, "too_many_passes"},
                                          {bottleneck::strided_access, "strided_access"},
                                          {bottleneck::dependency_chain, "dependency_chain"},
                                          {bottleneck::port_pressure, "port_pressure"},
                                          {bottleneck::divider_bound, "divider_bound"},
                                          {bottleneck::not_vectorized, "not_vectorized"},
                                          {bottleneck::scalar_tail, "scalar_tail"},
                                          {bottleneck::thread_overhead, "thread_overhead"},
                                          {bottleneck::load_imbalance, "load_imbalance"},
                                          {bottleneck::false_sharing, "false_sharing"},
                                          {bottleneck::split_access, "split_access"},
                                          {bottleneck::address_aliasing, "address_aliasing"},
                                          {bottleneck::store_forwarding, "store_forwarding"},
                                          {bottleneck::denormals, "denormals"},
                                          {bottleneck::call_overhead, "call_overhead"},
                                          {bottleneck::at_roofline, "at_roofline"},
                                          {bottleneck::redundant_work, "redundant_work"},
                                          {bottleneck::compute_bound, "compute_bound"},
                                          {bottleneck::latency_bound, "latency_bound"},
                                          {bottleneck::occupancy_limited, "occupancy_limited"},
                                          {bottleneck::uncoalesced_access, "uncoalesced_access"},
                                          {bottleneck::bank_conflicts, "bank_conflicts"},
                                          {bottleneck::launch_bound, "launch_bound"},
                                          {bottleneck::tail_effect, "tail_effect"},
                                          {bottleneck::tensor_cores_idle, "tensor_cores_idle"},
                                          {bottleneck::atomic_contention, "atomic_contention"},
                                          {bottleneck::register_spills, "register_spills"}})

struct evidence {
  std::string metric;             ///< name in the profile; "a + b" for a sum; or "remark", "source"
  double value = 0;
  std::string unit;
  double best_value = 0;          ///< the same metric of the best version so far
  bool has_best = false;
  std::string text;               ///< "achieved 11.8 GB/s of 12.9 GB/s measured for memory"
};
PRAGMA_JSON(evidence, metric, value, unit, best_value, has_best, text)
/// The metric whose documentation explains this evidence: of a sum, the first.
inline std::string explained_by(const evidence& e) { return e.metric.substr(0, e.metric.find(" + ")); }

/// What the compendium says of a metric that a finding rests on.
struct citation {
  std::string metric;             ///< as the profile names it
  std::string entry;              ///< id of the compendium's entry
  std::string meaning, reading;
  std::string url, quote;         ///< where the documentation says so
};
PRAGMA_JSON(citation, metric, entry, meaning, reading, url, quote)

struct finding {
  bottleneck what = bottleneck::at_roofline;
  double confidence = 0;          ///< 0..1; > 0.7 means that measured evidence supports it
  std::string level;              ///< "L1", "L2", "L3", "memory" where it applies
  int line = 0;                   ///< in the candidate's source, 0 = none
  std::string why;                ///< one or two sentences
  std::vector<evidence> proof;
  std::vector<std::string> remedies; ///< what to try, best first, in words for an LLM or a person
  std::vector<citation> documentation; ///< of the metrics in `proof`, where the compendium has them
  bool at_limit = false;          ///< what the hardware can do, and nothing that the code lacks: no cause to follow
  double seconds = 0, seconds_without = 0; ///< of one call: measured, and as the time table has it without this bottleneck; 0 = no prediction
  std::string part{};             ///< of the source, that holds the line: "region 2 (product)" (source_parts.hpp); "" = unknown
};
PRAGMA_JSON(finding, what, confidence, level, line, why, proof, remedies, documentation, at_limit, seconds, seconds_without, part)

/// ", region 2 (product), line 12": what a finding names of the source; "" = nothing.
inline std::string place_of(const finding& f) { return (f.part.empty() ? "" : ", " + f.part) + (f.line > 0 ? ", line " + std::to_string(f.line) : ""); }

} // namespace pragma
