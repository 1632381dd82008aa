// Names that can be asked for: the table of docs/metrics.md, and what perf lists on this machine.
#include "base/text.hpp"
#include "profilers/sources.hpp"

#include <algorithm>

namespace pragma {

namespace {

struct row {
  const char* name;
  const char* unit;
};

constexpr row timer_rows[] = {{"seconds_per_call", "s"}, {"achieved_gbs", "GB/s"}, {"achieved_gflops", "GFLOP/s"},
                              {"arithmetic_intensity", "FLOP/byte"}, {"roofline_share", "%"}};
constexpr row perf_rows[] = {{"cycles", "count"}, {"instructions", "count"}, {"branches", "count"}, {"branch-misses", "count"},
                             {"cache-references", "count"}, {"cache-misses", "count"}, {"L1-dcache-loads", "count"},
                             {"L1-dcache-load-misses", "count"}, {"dTLB-load-misses", "count"}, {"ipc", "1/cycle"},
                             {"branch_miss_rate", "%"}, {"cache_miss_rate", "%"}, {"l1d_miss_rate", "%"},
                             {"topdown.retiring", "%"}, {"topdown.bad_speculation", "%"}, {"topdown.frontend_bound", "%"},
                             {"topdown.backend_bound", "%"}, {"topdown.memory_bound", "%"}, {"topdown.core_bound", "%"},
                             {"topdown.fetch_latency", "%"}, {"topdown.fetch_bandwidth", "%"}, {"topdown.branch_mispredicts", "%"},
                             {"topdown.machine_clears", "%"}, {"topdown.light_operations", "%"}, {"topdown.heavy_operations", "%"}};
constexpr row software_rows[] = {{"software.task_clock", "s"}, {"software.cpus_utilized", "CPUs"}, {"software.context_switches", "count"},
                                 {"software.cpu_migrations", "count"}, {"software.page_faults", "count"}, {"software.thread_imbalance", "ratio"}};
constexpr row callgrind_rows[] = {{"callgrind.Ir", "count"}, {"callgrind.Dr", "count"}, {"callgrind.Dw", "count"}, {"callgrind.I1mr", "count"},
                                  {"callgrind.D1mr", "count"}, {"callgrind.D1mw", "count"}, {"callgrind.ILmr", "count"},
                                  {"callgrind.DLmr", "count"}, {"callgrind.DLmw", "count"}, {"callgrind.Bc", "count"},
                                  {"callgrind.Bcm", "count"}, {"callgrind.Bi", "count"}, {"callgrind.Bim", "count"},
                                  {"callgrind.d1_miss_rate", "%"}, {"callgrind.ll_miss_rate", "%"}, {"callgrind.branch_miss_rate", "%"},
                                  {"callgrind.instructions_per_output", "count"}, {"callgrind.l1_traffic_ratio", "ratio"},
                                  {"callgrind.ll_traffic_ratio", "ratio"}, {"callgrind.hottest_line", "line"},
                                  {"callgrind.hottest_line_share", "%"}};
constexpr row loop_rows[] = {{"hot_loop.line", "line"}, {"hot_loop.instructions", "count"}, {"hot_loop.vector_bits", "bits"},
                             {"hot_loop.vector_share", "%"}, {"hot_loop.divides", "count"}, {"hot_loop.gathers", "count"},
                             {"hot_loop.calls", "count"}, {"hot_loop.streaming_stores", "count"}, {"hot_loop.stores", "count"},
                             {"hot_loop.chains", "count"}, {"hot_loop.flops", "FLOP"}, {"hot_loop.fused", "count"}, {"hot_loop.blocked_loads", "count"}, {"hot_loop.chained_loads", "count"}, {"hot_loop.updates_by_value", "count"}, {"hot_loop.tables", "count"}};
constexpr row sample_rows[] = {{"samples.count", "count"}, {"samples.outside_loops_share", "%"}, {"samples.outside_vectors_share", "%"}, {"samples.library_share", "%"}, {"samples.moving_share", "%"}, {"samples.system_share", "%"},
                               {"samples.split_share", "%"}, {"samples.sliding_share", "%"}, {"samples.alias_share", "%"}, {"samples.far_share", "%"}, {"samples.one_set_share", "%"}, {"samples.strided_share", "%"}};
constexpr row experiment_rows[] = {{"experiment.cached_time", "%"}, {"experiment.cached_reads_time", "%"}, {"experiment.flushed_time", "%"},
                                   {"experiment.ones_time", "%"}, {"experiment.huge_pages_time", "%"}, {"experiment.one_thread_time", "%"}, {"experiment.one_processor_time", "%"}, {"experiment.in_order_time", "%"},
                                   {"experiment.streaming_time", "%"}, {"experiment.apart_time", "%"}, {"experiment.freed_time", "%"}, {"experiment.single_time", "%"},
                                   {"experiment.reciprocal_time", "%"}};
constexpr row mca_rows[] = {{"llvm_mca.cycles_per_iteration", "cycle"}, {"llvm_mca.block_rthroughput", "cycle"}, {"llvm_mca.ipc", "1/cycle"},
                            {"llvm_mca.uops_per_cycle", "1/cycle"}, {"llvm_mca.backend_pressure", "%"}, {"llvm_mca.resource_pressure", "%"},
                            {"llvm_mca.data_dependencies", "%"}, {"llvm_mca.register_dependencies", "%"},
                            {"llvm_mca.memory_dependencies", "%"}, {"llvm_mca.top_port_pressure", "%"}, {"llvm_mca.flops_per_cycle", "FLOP/cycle"}};
constexpr row remark_rows[] = {{"remarks.vectorized_loops", "count"}, {"remarks.missed_loops", "count"}, {"remarks.vector_bytes", "bytes"}};

std::vector<available_metric> list_all() {
  std::vector<available_metric> all;
  const auto add = [&](const auto& rows, const std::string& tool, provenance how) {
    for (const auto& r : rows) all.push_back({r.name, r.unit, tool, how});
  };
  const auto facts = read_cpu_facts();
  const bool counters = facts && perf_obstacle(*facts).empty();
  add(timer_rows, "timer", provenance::measured);
  if (counters) add(perf_rows, "perf " + perf_version(), provenance::measured);
  add(software_rows, "proc", provenance::measured);
  add(experiment_rows, "experiment", provenance::measured);
  if (!valgrind_version().empty()) add(callgrind_rows, "callgrind " + valgrind_version(), provenance::simulated);
  if (!objdump_version().empty()) add(sample_rows, "cpu-clock", provenance::measured);
  if (!objdump_version().empty()) add(loop_rows, "objdump " + objdump_version(), provenance::static_analysis);
  if (!llvm_mca_program().empty() && !objdump_version().empty()) add(mca_rows, "llvm-mca " + llvm_mca_version(), provenance::static_analysis);
  add(remark_rows, "compiler", provenance::static_analysis);
  for (const auto& event : perf_events())
    if (std::none_of(all.begin(), all.end(), [&](const auto& m) { return m.name == event; }))
      all.push_back({event, event.find("clock") != std::string::npos ? "s" : "count", "perf " + perf_version(), provenance::measured});
  return all;
}

} // namespace

std::vector<available_metric> available_metrics() {
  static const auto all = list_all();
  return all;
}

expected<void> check_metric_names(const std::vector<std::string>& names) {
  const auto all = available_metrics();
  for (const auto& name : names) {
    if (std::any_of(all.begin(), all.end(), [&](const auto& m) { return m.name == name; })) continue;
    std::vector<std::string> known;
    for (const auto& m : all) known.push_back(m.name);
    const auto nearest = nearest_names(name, known);
    // A name that exists, but on other machines only, deserves its reason.
    for (const auto& r : perf_rows)
      if (name == r.name) {
        const auto facts = read_cpu_facts();
        return fail(ec::unsupported, "metric " + name + " cannot be had on this machine: " + (facts ? perf_obstacle(*facts) : facts.error().message),
                    nearest.empty() ? "" : "what this machine has that comes nearest: " + join(nearest, ", "));
      }
    return fail(ec::invalid_argument, "there is no metric named '" + printable(name.substr(0, 100)) + "' on this machine",
                nearest.empty() ? "docs/metrics.md lists all names" : "did you mean " + join(nearest, ", ") + "?");
  }
  return {};
}

} // namespace pragma
