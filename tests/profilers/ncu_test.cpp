// Nsight Compute through its manifest, on output recorded on an NVIDIA H200 (tests/profilers/data/README.md).
#include "manifest_fixture.hpp"

using namespace pragma;
namespace fs = std::filesystem;

namespace {

const fs::path ncu = recorded / "ncu";

json ncu_json() { return parse_json(content(tests_folder.parent_path() / "configs/profilers/ncu.json"), "ncu.json").value(); }

/// A program named ncu that prints what the real one was recorded to print when asked for its version and its metrics.
struct stand_in {
  temp_dir folder = std::move(*temp_dir::create("pragma-test-ncu-"));
  json manifest = ncu_json();
  stand_in() {
    const auto program = folder.path() / "ncu";
    const auto data = ncu.string();
    REQUIRE(write_file_atomic(program, "#!/bin/sh\ncase \"$*\" in\n--version) cat " + data + "/version-2025.3.1.txt ;;\n*launch) cat " + data +
                                           "/launch-metrics-2025.3.1-h200.csv ;;\n*source) cat " + data + "/source-metrics-2025.3.1-h200.csv ;;\n*--query-metrics) echo '==PROF== noise'; cat " +
                                           data + "/metrics-2025.3.1-h200.csv ;;\n*) exit 1 ;;\nesac\n"));
    fs::permissions(program, fs::perms::owner_all);
    manifest["collect"]["program"] = {program.string()};
    manifest["collect"]["probe"]["checks"] = json::array(); // about the machine that runs the tests
  }
};

/// Leaves recorded files where the manifest's command lines ask for them.
struct recorded_runs {
  std::string metrics = "direct-2025.3.1-h200.csv", rules = "details-2025.3.1-h200.csv";
  std::vector<std::vector<std::string>> wrappers;
  run_target run() {
    return [this](const std::vector<std::string>& wrapper, const fs::path& scratch, double) {
      wrappers.push_back(wrapper);
      const auto at = std::find(wrapper.begin(), wrapper.end(), "--log-file");
      REQUIRE(at != wrapper.end());
      REQUIRE(fs::path(*(at + 1)).parent_path() == scratch);
      fs::copy_file(ncu / (wrappers.size() == 1 ? metrics : rules), *(at + 1));
      return target_run{true, "", "", "", 1};
    };
  }
};

std::string after(const std::vector<std::string>& words, const std::string& option) {
  const auto at = std::find(words.begin(), words.end(), option);
  REQUIRE(at != words.end());
  return *(at + 1);
}

} // namespace

TEST_CASE("ncu's command line is the one that was recorded to work") {
  stand_in s;
  recorded_runs runs;
  manifest_request request;
  request.extra_metrics = {"dram__cycles_active.avg"};
  request.own_kernels = {"softmax"}; // of tools that cannot be told when to look: all that ncu sees is audited
  source_result out;
  collect_by_manifest(parsed(s.manifest), request, runs.run(), out);
  REQUIRE(runs.wrappers.size() == 2);
  const auto& w = runs.wrappers[0];
  CHECK(w[0] == s.manifest["collect"]["program"][0].get<std::string>());
  CHECK(after(w, "--page") == "raw");
  CHECK(after(w, "--print-units") == "base");
  CHECK(after(w, "--clock-control") == "none");
  CHECK(after(w, "--profile-from-start") == "off");
  CHECK(after(w, "--target-processes") == "all");
  CHECK(after(w, "--launch-count") == "64");
  const auto metrics = split(after(w, "--metrics"), ',');
  CHECK(std::count(metrics.begin(), metrics.end(), "gpu__time_duration.sum") == 1);
  CHECK(std::count(metrics.begin(), metrics.end(), "smsp__average_warps_issue_stalled_branch_resolving_per_issue_active.ratio") == 1);
  CHECK(metrics.back() == "dram__cycles_active.avg");
  CHECK(std::none_of(w.begin(), w.end(), [](const auto& word) { return word.find("softmax") != std::string::npos; }));
  CHECK(after(runs.wrappers[1], "--page") == "details");
  runs.wrappers.clear();
  source_result plain;
  collect_by_manifest(parsed(s.manifest), {}, runs.run(), plain);
  CHECK(out.kernels == plain.kernels);
}

TEST_CASE("seven launches of one call, as ncu printed them: an unknown metric is left out silently by ncu, and named by us") {
  stand_in s;
  recorded_runs runs;
  source_result out;
  collect_by_manifest(parsed(s.manifest), {}, runs.run(), out);
  REQUIRE(metric_of(out, "gpu__time_duration.sum"));
  const auto& time = out.metrics.front();
  CHECK(time.name == "gpu__time_duration.sum");
  CHECK(time.value == 124672 + 126464 + 31488 + 29376 + 413920 + 493856 + 7866880);
  CHECK(time.unit == "ns");
  CHECK(time.tool == "ncu 2025.3.1.0");
  CHECK(metric_of(out, "launches_per_call")->value == 7);
  CHECK(out.kernels == std::vector<std::string>{"copy_kernel", "strided_kernel", "softmax_kernel", "max_column_kernel", "matmul_kernel", "matmul_spill_kernel"});
  CHECK(out.device_seconds == Approx(time.value * 1e-9));
  CHECK(metric_of(out, "launches_per_call")->note.find("matmul_spill_kernel 87%") != std::string::npos);
  // Time-weighted; max and min of the same counter, which ncu adds unasked, are not ours.
  CHECK(metric_of(out, "dram__throughput.avg.pct_of_peak_sustained_elapsed")->value == Approx(20.27).epsilon(0.01));
  CHECK_FALSE(metric_of(out, "dram__throughput.max.pct_of_peak_sustained_elapsed"));
  CHECK_FALSE(metric_of(out, "Process ID"));
  CHECK(metric_of(out, "launch__registers_per_thread")->value == 255);
  CHECK(metric_of(out, "launch__registers_per_thread")->unit == "registers");
  CHECK(metric_of(out, "launch__occupancy_limit_registers")->value == 4);
  CHECK(metric_of(out, "launch__waves_per_multiprocessor")->value == 0.48);
  // That recording asked for a few metrics only.
  CHECK(says(out.missing, "no value for"));
  CHECK(says(out.missing, "more (this device"));
}

TEST_CASE("a run of all sections: every default metric but eight has a value, in the manifest's unit") {
  const auto m = parsed(ncu_json());
  const auto& pass = m.passes.front();
  std::vector<std::string> names;
  for (const auto& [name, unit] : pass.metrics) names.push_back(name);
  const auto table = read_table(content(ncu / "raw-2025.3.1-h200.csv"), pass.outputs.front(), "raw");
  REQUIRE(table);
  const auto read = read_launches(*table, pass.outputs.front(), m, names);
  REQUIRE(read.launches.size() == 7);
  size_t absent = 0;
  for (const auto& [name, unit] : pass.metrics) {
    const auto at = read.launches[2].values.find(name);
    if (at == read.launches[2].values.end()) {
      ++absent; // dram__throughput, sectors per request, the use of shared memory and atomic operations are in no section
      continue;
    }
    INFO(name);
    CHECK(at->second.unit == unit);
  }
  CHECK(absent == 8);
  const auto& softmax = read.launches[2].values;
  CHECK(softmax.at("dram__bytes_read.sum").value == 67124224);
  CHECK(softmax.at("sm__maximum_warps_per_active_cycle_pct").value == 50);
  CHECK(read.launches[1].values.at("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio").value == 4); // strided
  CHECK(read.launches[5].values.at("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum").value == 64148182);
  CHECK(read.launches[6].values.at("smsp__sass_inst_executed_op_local_ld.sum").value == 86370816);
}

TEST_CASE("ncu's own rules are kept beside our findings, the most promising first") {
  stand_in s;
  recorded_runs runs;
  source_result out;
  collect_by_manifest(parsed(s.manifest), {}, runs.run(), out);
  REQUIRE_FALSE(out.notes.empty());
  CHECK(out.notes.size() <= 16);
  const auto& first = out.notes.front();
  CHECK(first.rule == "SharedMemoryConflicts"); // of the matrix product: a small kernel's 94% counts for less
  CHECK(first.text.rfind("matmul_kernel: The memory access pattern for shared stores", 0) == 0);
  CHECK(first.gain_percent == Approx(74.23));
  CHECK(first.tool == "ncu 2025.3.1.0");
  for (const auto& note : out.notes) {
    CHECK(note.rule != "SOLFPRoofline"); // informs only
    if (note.rule == "HighPipeUtilization") CHECK(note.gain_percent == 0); // a local estimate is not about the kernel's time
  }
  manifest_request tight;
  tight.extra_metrics = {"launch__stack_size"};
  tight.default_metrics = false; // only what was asked for: no second run
  runs.wrappers.clear();
  source_result few;
  collect_by_manifest(parsed(s.manifest), tight, runs.run(), few);
  CHECK(runs.wrappers.size() == 1);
  CHECK(metric_of(few, "launch__stack_size")->value == 5616);
  CHECK_FALSE(metric_of(few, "gpu__time_duration.sum"));
}

TEST_CASE("no kernels, no permission, nothing at all: one line each") {
  stand_in s;
  const auto m = parsed(s.manifest);
  recorded_runs none;
  none.metrics = none.rules = "no-kernels-2025.3.1.csv";
  manifest_request request;
  request.max_seconds = 30;
  source_result out;
  collect_by_manifest(m, request, none.run(), out);
  CHECK(out.metrics.empty());
  CHECK(says(out.missing, "ncu: no kernel was launched between cudaProfilerStart and cudaProfilerStop"));
  // ncu's documented text (not recorded: the recording machine gave the permission).
  source_result refused;
  collect_by_manifest(m, request, [](const auto&, const fs::path& scratch, double) {
    REQUIRE(write_file_atomic(scratch / "metrics.csv", "==PROF== Connected to process 12\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
                                                       "Counters on the target device 0.\n==PROF== Disconnected\n"));
    return target_run{false, "", "", "exit code 1", 1};
  }, refused);
  CHECK(says(refused.missing, "ncu: no permission to read the GPU's counters"));
  CHECK(says(refused.missing, "CAP_SYS_ADMIN"));
  source_result other;
  collect_by_manifest(m, request, [](const auto&, const auto&, double) { return target_run{false, "", "==ERROR== Failed to prepare kernel for profiling\n", "exit code 9", 1}; }, other);
  CHECK(says(other.missing, "==ERROR== Failed to prepare kernel for profiling"));
}

TEST_CASE("a metric that is asked for is checked against this device's lists, with its suffix") {
  stand_in s;
  const auto m = parsed(s.manifest);
  CHECK(check_metric_names(m, {"dram__bytes_read.sum.per_second", "dram__throughput.max.pct_of_peak_sustained_elapsed", "lts__t_sector_hit_rate.pct",
                               "launch__stack_size", "derived__memory_l1_conflicts_shared_nway", "sm__maximum_warps_avg_per_active_cycle",
                               "FBSP.TriageCompute.dramc__read_throughput.avg.pct_of_peak_sustained_elapsed"}));
  const auto hint = [&](const std::string& name) {
    const auto known = check_metric_names(m, {name});
    REQUIRE_FALSE(known);
    CHECK(known.error().code == ec::invalid_argument);
    return known.error().hint;
  };
  CHECK(hint("dram__bytes_reed.sum").find("dram__bytes_read.sum") != std::string::npos);
  CHECK(hint("lts__t_sector_hit_rate.avg").find("lts__t_sector_hit_rate.pct") != std::string::npos); // right base, wrong suffix
  CHECK(hint("dram__throughput.avg").find("dram__throughput.avg.pct_of_peak_sustained_") != std::string::npos);
  CHECK(hint("dram__bytes_read").find("dram__bytes_read.") != std::string::npos); // ncu prints no column of a bare name
  CHECK(hint("launch__stack_size.sum").find("launch__stack_size") != std::string::npos);
}
