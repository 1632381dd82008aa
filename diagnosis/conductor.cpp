#include "diagnosis/conductor.hpp"

#include "base/text.hpp"
#include "diagnosis/what_limits.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace pragma {

double predicted_ratio(const std::vector<finding>& findings, const std::string& answers) {
  for (const auto& f : findings)
    if (!answers.empty() && f.seconds_without > 0 && json(f.what).get<std::string>() == answers) return f.seconds / f.seconds_without;
  return 0;
}

namespace {

constexpr double notable_change = 0.10; ///< of a metric between two versions
constexpr double believable_share = 1.25; ///< of the roofline, as the limits may be measured too low
constexpr size_t max_changes = 4, max_findings = 3, max_actions = 4, max_asked = 4;

/// The metrics that the trace shows, in the paper's words where it has one; those that a profile lacks are left out.
struct shown_metric {
  const char* name;
  const char* label;
};
/// What would tell more about a finding than the default set does: on a CPU generic event names of perf-list(1), then Intel's.
struct follow_up {
  bottleneck what;
  std::vector<const char*> metrics;
};
const std::vector<follow_up>& follow_ups() {
  static const std::vector<follow_up> table = {
      {bottleneck::front_end_bound, {"L1-icache-load-misses", "iTLB-load-misses", "stalled-cycles-frontend"}},
      {bottleneck::bad_speculation, {"branch-loads", "branch-load-misses"}},
      {bottleneck::memory_bandwidth_bound, {"LLC-load-misses", "LLC-store-misses", "L1-dcache-prefetches"}},
      {bottleneck::memory_latency_bound, {"LLC-load-misses", "dTLB-loads", "node-load-misses", "minor-faults"}},
      {bottleneck::store_bandwidth_bound, {"LLC-stores", "LLC-store-misses", "L1-dcache-stores"}},
      {bottleneck::too_many_passes, {"LLC-loads", "LLC-load-misses"}},
      {bottleneck::strided_access, {"dTLB-loads", "L1-dcache-prefetches", "LLC-loads"}},
      {bottleneck::dependency_chain, {"stalled-cycles-backend", "stalled-cycles-frontend"}},
      {bottleneck::port_pressure, {"stalled-cycles-backend", "assists.fp"}},
      {bottleneck::denormals, {"assists.fp", "fp_assist.any"}},
      {bottleneck::thread_overhead, {"cpu-migrations", "minor-faults"}},
      {bottleneck::load_imbalance, {"cpu-migrations", "node-loads"}},
  };
  return table;
}

/// On an NVIDIA device: names that `ncu --query-metrics` has (checked on an H200), with their suffixes, and that are no defaults of ncu.json.
const std::vector<follow_up>& cuda_follow_ups() {
  static const std::vector<follow_up> table = {
      {bottleneck::memory_bandwidth_bound, {"lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum", "dram__cycles_active.avg.pct_of_peak_sustained_elapsed"}},
      {bottleneck::too_many_passes, {"lts__t_sectors_op_read.sum", "lts__t_sectors_lookup_miss.sum", "lts__t_sectors_op_write.sum"}},
      {bottleneck::compute_bound, {"sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active", "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active"}},
      {bottleneck::latency_bound, {"smsp__issue_inst0.avg.pct_of_peak_sustained_active"}},
      {bottleneck::occupancy_limited, {"sm__ctas_active.avg.per_cycle_active"}},
      {bottleneck::uncoalesced_access, {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum", "lts__t_sectors_op_read.sum"}},
      {bottleneck::bank_conflicts, {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"}},
      {bottleneck::tail_effect, {"sm__cycles_active.min", "sm__cycles_active.max", "sm__ctas_launched.sum"}},
      {bottleneck::tensor_cores_idle, {"sm__inst_executed_pipe_tensor.sum", "sm__sass_thread_inst_executed_op_ffma_pred_on.sum"}},
      {bottleneck::atomic_contention, {"lts__t_sectors_op_red.sum", "lts__t_sectors_op_atom.sum"}},
      {bottleneck::register_spills, {"l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"}},
  };
  return table;
}

constexpr shown_metric shown[] = {
    {"ipc", "IPC"}, {"instructions", "Instructions"}, {"cycles", "Cycles"},
    {"topdown.frontend_bound", "Frontend_bound"}, {"topdown.bad_speculation", "Bad_speculation"},
    {"topdown.backend_bound", "Backend_bound"}, {"topdown.memory_bound", "Memory_bound"}, {"topdown.core_bound", "Core_bound"},
    {"topdown.retiring", "Retiring"}, {"branch_miss_rate", "Branch_miss_rate"},
    {"achieved_gbs", "Bandwidth"}, {"achieved_gflops", "Compute"}, {"roofline_share", "Roofline_share"},
    {"callgrind.Ir", "callgrind.Ir"}, {"callgrind.l1_traffic_ratio", "callgrind.l1_traffic_ratio"},
    {"callgrind.ll_traffic_ratio", "callgrind.ll_traffic_ratio"}, {"callgrind.branch_miss_rate", "callgrind.branch_miss_rate"},
    {"hot_loop.vector_bits", "hot_loop.vector_bits"}, {"hot_loop.vector_share", "hot_loop.vector_share"},
    {"llvm_mca.ipc", "llvm_mca.ipc"}, {"llvm_mca.cycles_per_iteration", "llvm_mca.cycles_per_iteration"},
    {"remarks.vectorized_loops", "remarks.vectorized_loops"},
    {"gpu__time_duration.sum", "Kernel_time"}, {"launches_per_call", "Launches_per_call"},
    {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "SM_throughput"}, {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "DRAM_interface"},
    {"dram__throughput.avg.pct_of_peak_sustained_elapsed", "DRAM_throughput"}, {"lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2_throughput"},
    {"l1tex__throughput.avg.pct_of_peak_sustained_active", "L1_throughput"}, {"sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved_occupancy"},
    {"sm__maximum_warps_per_active_cycle_pct", "Theoretical_occupancy"}, {"launch__registers_per_thread", "Registers_per_thread"},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "Tensor_pipe"}, {"VALUBusy", "VALUBusy"}, {"MfmaUtil", "MfmaUtil"},
    {"MemUnitBusy", "MemUnitBusy"}, {"OccupancyPercent", "OccupancyPercent"}, {"aic_mac_ratio", "aic_mac_ratio"}, {"aiv_vec_ratio", "aiv_vec_ratio"},
    {"aic_mte2_ratio", "aic_mte2_ratio"}, {"aiv_mte2_ratio", "aiv_mte2_ratio"},
};

bool of_one_trip(std::string_view name) {
  static const std::set<std::string_view> names = {"hot_loop.instructions", "hot_loop.flops", "hot_loop.fused", "hot_loop.stores", "hot_loop.streaming_stores", "hot_loop.divides",
                                                   "hot_loop.gathers", "hot_loop.chains", "llvm_mca.cycles_per_iteration", "llvm_mca.block_rthroughput"};
  return names.count(name) != 0;
}

std::string times(double ratio) { return format_number(ratio, 2) + "x"; }

/// "945K", "61.76%", "11.80 GB/s", "1.37".
std::string amount(const metric& m) {
  if (m.unit == "%") return format_number(m.value, 2) + "%";
  if (m.unit == "s") return format_seconds(m.value);
  if (m.unit == "ns") return format_seconds(m.value * 1e-9);
  const double size = std::fabs(m.value);
  if (m.unit == "count" || m.unit == "instructions" || m.unit == "sectors") {
    if (size >= 1e9) return format_number(m.value / 1e9, 2) + "G";
    if (size >= 1e6) return format_number(m.value / 1e6, 2) + "M";
    if (size >= 1e3) return format_number(m.value / 1e3, 0) + "K";
    return format_number(m.value, size == std::floor(size) ? 0 : 2);
  }
  if (m.unit == "bytes" && size >= 1e6) return format_bytes(m.value);
  const bool whole = m.unit == "bits" || m.unit == "bytes" || m.unit == "line" || m.unit == "registers";
  const bool plain = m.unit.empty() || m.unit == "1/cycle" || m.unit == "ratio";
  return format_number(m.value, whole ? 0 : 2) + (plain ? "" : " " + m.unit);
}

std::string with_provenance(const metric& m) {
  return m.how == provenance::measured ? amount(m) : amount(m) + (m.how == provenance::simulated ? " (simulated)" : " (static)");
}

void list_version(const profile& p, std::vector<std::string>& lines) {
  const auto& s = p.time.speedup;
  if (s.value > 0) lines.push_back("  Speedup = " + times(s.value) + " [" + format_number(s.low, 2) + ", " + format_number(s.high, 2) + "]");
  if (p.time.candidate_seconds > 0) lines.push_back("  Time = " + format_seconds(p.time.candidate_seconds));
  for (const auto& row : shown)
    if (const auto* m = p.find(row.name)) lines.push_back(std::string("  ") + row.label + " = " + with_provenance(*m));
}

std::string title_of(bottleneck what) {
  std::string text = json(what).get<std::string>();
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string finding_line(const finding& f) {
  std::string text = f.confidence < explaining_confidence && !f.at_limit ? " - Perhaps " : " - ";
  text += title_of(f.what);
  if (!f.level.empty()) text += " (" + f.level + ")";
  text += place_of(f);
  text += ", confidence " + format_number(f.confidence, 2) + ": " + f.why;
  if (f.seconds_without > 0) text += " Without it: " + format_seconds(f.seconds_without) + " instead of " + format_seconds(f.seconds) + " (predicted).";
  if (!f.proof.empty()) text += " Evidence: " + f.proof.front().text;
  return text;
}

/// Metrics that moved most between two versions, as "callgrind.Ir fell from 1.20M to 160K (simulated)".
std::vector<std::string> changes(const profile& now, const profile& before) {
  static const std::set<std::string> positions = {"callgrind.hottest_line", "hot_loop.line", "samples.count"}; // no quantities of the kernel
  std::vector<std::pair<double, std::string>> moved;
  for (const auto& m : now.metrics) {
    const auto* b = before.find(m.name);
    // A loop that is unrolled by two does twice as much in a trip: that says nothing.
    if (!b || positions.count(m.name) || of_one_trip(m.name) || m.name == "seconds_per_call" || m.value <= 0 || b->value <= 0) continue;
    const double change = std::fabs(std::log(m.value / b->value));
    if (change < std::log1p(notable_change)) continue;
    // Shares of a few percent double without meaning anything.
    if (m.unit == "%" && std::max(m.value, b->value) < 5) continue;
    std::string text = " - " + m.name + (m.value > b->value ? " rose from " : " fell from ") + amount(*b) + " to " + with_provenance(m);
    moved.emplace_back(change, std::move(text));
  }
  std::stable_sort(moved.begin(), moved.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> lines;
  for (size_t i = 0; i < moved.size() && i < max_changes; ++i) lines.push_back(std::move(moved[i].second));
  return lines;
}

/// What IPC, instructions and time say together: the trap that the paper's Listing 1 shows in its first round.
std::string ipc_reading(const profile& now, const profile& before, judgement j) {
  const auto ipc = now.value("ipc"), ipc_before = before.value("ipc");
  if (!ipc || !ipc_before || *ipc_before <= 0 || std::fabs(*ipc / *ipc_before - 1) < 0.05) return {};
  const bool higher = *ipc > *ipc_before;
  const auto n = now.value("instructions"), n_before = before.value("instructions");
  const bool fewer = n && n_before && *n < *n_before * 0.95, more = n && n_before && *n > *n_before * 1.05;
  if (higher && j == judgement::worse) return std::string(" - Higher IPC but worse performance") + (more ? ": it executes more instructions for the same result" : "");
  if (!higher && j == judgement::better) return std::string(" - Lower IPC but better performance") + (fewer ? ": fewer total instructions and cycles" : "");
  if (higher && j == judgement::better) return " - Higher IPC: the pipeline is better used";
  if (!higher && j == judgement::worse) return " - Lower IPC: the pipeline waits more";
  return {};
}

std::string headline(judgement j, const iteration_record& current) {
  switch (j) {
    case judgement::first: return "First correct version";
    case judgement::better: return "Performance improvement recognized";
    case judgement::worse: return "Performance regression detected";
    case judgement::same: return "No significant change";
    case judgement::unknown: return "Not established";
    case judgement::failed: return "Candidate failed (" + current.stage() + ")";
  }
  return {};
}

/// Better or worse by what was measured side by side; the ratios to the reference are of two moments, and only stand in for it.
void add_comparison(const iteration_record& current, const iteration_record& best, judgement j, std::vector<std::string>& lines) {
  const auto& r = current.against_best;
  const auto side_by_side = times(r.value) + " the speed of the best version, side by side [" + format_number(r.low, 2) + ", " + format_number(r.high, 2) + "]";
  if (!(r.value > 0)) {
    lines.push_back(" - Not compared side by side: " + times(best.code.measured.time.speedup.value) + " the reference's speed before, " + times(current.code.measured.time.speedup.value) + " now, at two moments");
    return;
  }
  const double gain = r.value - 1;
  if (j == judgement::better)
    lines.push_back(std::string(gain >= notable_change ? " - Significant speedup improvement (+" : " - Small speedup improvement (+") + format_number(gain * 100, gain < 0.1 ? 1 : 0) + "%): " + side_by_side);
  else if (j == judgement::worse) lines.push_back(" - Speedup dropped: " + side_by_side);
  else lines.push_back(" - Speedup stayed about the same: " + side_by_side + (r.low <= 1 && r.high >= 1 ? ": the interval holds 1" : ""));
  if (const double promised = predicted_ratio(best.findings, current.code.answers); promised > 0)
    lines.push_back(" - It set out to remove: " + title_of(json(current.code.answers).get<bottleneck>()) + ". Predicted " + times(promised) + ", brought " + times(r.value));
}

std::vector<std::string> analysis(const iteration_record& current, const iteration_record* best, judgement j) {
  std::vector<std::string> lines;
  if (j == judgement::unknown) return {" - " + printable(current.verdict.reason), " - That says nothing of the candidate"};
  if (j == judgement::failed) {
    if (!current.verdict.reason.empty()) lines.push_back(" - " + printable(current.verdict.reason));
    for (const auto& hint : repairs_for(current.verdict, current.code.language)) lines.push_back(" - Probable cause: " + hint.cause);
    return lines;
  }
  const auto& now = current.code.measured;
  const double speedup = now.time.speedup.value;
  if (best) {
    add_comparison(current, *best, j, lines);
    if (auto reading = ipc_reading(now, best->code.measured, j); !reading.empty()) lines.push_back(std::move(reading));
    for (auto& line : changes(now, best->code.measured)) lines.push_back(std::move(line));
  } else if (speedup > 0) {
    lines.push_back(" - " + times(speedup) + (speedup >= 1 ? " the speed of the reference" : " the speed of the reference: slower than it"));
  }
  if (now.time.contended) lines.push_back(" - Other work ran on the machine during the measurement: the figures may be off");
  for (const auto& line : table_lines(current.table)) lines.push_back(" - " + trim(line));
  if (!current.findings.empty() && current.findings.front().confidence < explaining_confidence) lines.push_back(" - " + what_limits(current.findings, &now));
  for (size_t i = 0; i < current.findings.size() && i < max_findings; ++i) lines.push_back(finding_line(current.findings[i]));
  if (current.findings.empty())
    lines.push_back(now.metrics.empty() ? " - Not profiled: only the time is known" : " - No bottleneck stands out: no metric is beyond its threshold");
  return lines;
}

/// What to try next, best first.
std::vector<std::string> remedies(const std::vector<finding>& findings, bool profiled, bool device) {
  std::vector<std::string> list;
  const auto add = [&](const std::string& text) {
    if (list.size() < max_actions && std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
  };
  for (const auto& f : findings)
    if (worth_following(f) && !f.remedies.empty()) add(f.remedies.front());
  for (const auto& f : findings)
    if (worth_following(f) && f.remedies.size() > 1) add(f.remedies[1]);
  if (list.empty())
    add(device     ? "Try one change at a time (BLOCK sizes, num_warps, num_stages, fusion, a split of the reduced axis), and keep what is faster."
        : profiled ? "No single bottleneck: vary tile sizes, unrolling and the number of accumulators, and keep what is faster."
                   : "Try one change at a time (vector width, unrolling, fusion, streaming stores), and keep what is faster.");
  return list;
}

} // namespace

std::vector<std::string> actions_of(const iteration_record& r) {
  if (!r.actions.empty()) return {r.actions.begin(), r.actions.begin() + static_cast<long>(std::min(r.actions.size(), max_actions))};
  if (r.passed()) return remedies(r.findings, !r.code.measured.metrics.empty(), r.code.measured.backend != "cpu");
  std::vector<std::string> list;
  if (!r.established()) return list;
  for (const auto& hint : repairs_for(r.verdict, r.code.language)) list.push_back(hint.remedy);
  return list;
}

std::vector<std::string> comparison_of(const iteration_record& r) {
  const auto begin = std::find(r.reasoning.begin(), r.reasoning.end(), "Analysis:");
  if (begin == r.reasoning.end()) return r.reasoning;
  std::set<std::string> told;
  for (const auto& line : table_lines(r.table)) told.insert(" - " + trim(line));
  for (const auto& f : r.findings) told.insert(finding_line(f));
  if (!r.findings.empty()) told.insert(" - " + what_limits(r.findings, &r.code.measured));
  std::vector<std::string> lines;
  for (auto it = begin + 1; it != r.reasoning.end() && *it != "Action:"; ++it)
    if (told.count(*it) == 0) lines.push_back(trim(it->rfind(" - ", 0) == 0 ? it->substr(3) : *it));
  return lines;
}

judgement judge(const iteration_record& current, bool has_best) {
  const auto& against_best = current.against_best;
  if (!current.established()) return judgement::unknown;
  if (!current.passed()) return judgement::failed;
  if (!has_best) return judgement::first;
  if (!(against_best.value > 0)) return judgement::same; // not compared: nothing was shown
  if (against_best.low > 1) return judgement::better;
  if (against_best.high < 1) return judgement::worse;
  return judgement::same;
}

std::vector<std::string> explain(const iteration_record& current, const iteration_record* best, judgement j) {
  std::vector<std::string> lines;
  lines.push_back("Round " + std::to_string(current.number) + ": " + headline(j, current));
  if (best) {
    lines.push_back("Historical best:");
    list_version(best->code.measured, lines);
  }
  if (j != judgement::failed && j != judgement::unknown) {
    lines.push_back("Current code:");
    list_version(current.code.measured, lines);
  }
  lines.push_back("Analysis:");
  for (auto& line : analysis(current, best, j)) lines.push_back(std::move(line));
  lines.push_back("Action:");
  if (j == judgement::first || j == judgement::better) lines.push_back(" - Mark current code as new historical best");
  if (best && (j == judgement::worse || j == judgement::same)) lines.push_back(" - Keep the version of attempt " + std::to_string(best->number) + " as historical best");
  if (best && j == judgement::failed) lines.push_back(" - Repair it, or go on from attempt " + std::to_string(best->number));
  for (const auto& action : actions_of(current)) lines.push_back(" - " + action);
  return lines;
}

std::vector<std::string> metrics_to_ask(const std::vector<finding>& findings, const std::string& backend) {
  std::vector<std::string> names;
  if (backend != "cpu" && backend != "cuda") return names; // of the others' tools no further names are known to us
  const auto& table = backend == "cuda" ? cuda_follow_ups() : follow_ups();
  for (const auto& f : findings)
    for (const auto& row : table)
      for (const auto* name : row.metrics)
        if (row.what == f.what && names.size() < max_asked && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

std::string stop_reason(const stop_rules& rules, const std::vector<iteration_record>& history, double seconds_so_far) {
  const iteration_record* best = nullptr;
  for (const auto& r : history)
    if (r.passed() && r.new_best) best = &r;

  if (best && rules.target_speedup > 0 && best->code.measured.time.speedup.low >= rules.target_speedup)
    return "the target is reached: attempt " + std::to_string(best->number) + " is at least " + times(best->code.measured.time.speedup.low) +
           " as fast as the reference (asked for: " + times(rules.target_speedup) + ")";
  // A figure or a limit that was taken beside other work says nothing about what is left.
  if (best && rules.roofline_share > 0 && !best->code.measured.time.contended) {
    double share = best->code.measured.value("roofline_share").value_or(0) / 100;
    if (share > believable_share) share = 0; // of the work as the reference writes it, part of which is not executed: no limit is near
    for (const auto& f : best->findings)
      if (f.what == bottleneck::at_roofline && !f.proof.empty()) share = std::max(share, f.proof.front().value / 100);
    if (share >= rules.roofline_share)
      return "attempt " + std::to_string(best->number) + " runs at " + format_number(share * 100, 0) + "% of the measured roofline (limit for stopping: " +
             format_number(rules.roofline_share * 100, 0) + "%)";
  }
  if (rules.attempts > 0 && static_cast<int>(history.size()) >= rules.attempts)
    return rules.attempts == 1 ? "its one attempt is used" : "all " + std::to_string(rules.attempts) + " attempts are used";
  if (rules.max_seconds > 0 && !history.empty() && seconds_so_far >= rules.max_seconds)
    return "the time limit of " + format_seconds(rules.max_seconds) + " is reached";
  if (rules.patience > 0) {
    int since = 0;
    for (auto it = history.rbegin(); it != history.rend() && !(it->passed() && it->new_best); ++it) ++since;
    if (since >= rules.patience)
      return std::to_string(since) + (since == 1 ? " attempt" : " attempts in a row") + " brought no new best";
  }
  return {};
}

} // namespace pragma
