// Diagnosis of devices: rules on kernels recorded with ncu on an H200 (data/h200_kernels.csv) and on made-up figures, the device's
// roofline, and what went wrong with Triton candidates.
#include "diagnosis/conductor.hpp"
#include "tests/diagnosis/device_profiles.hpp"
#include "tests/diagnosis/refused.hpp"

using namespace pragma;

namespace {

std::string names(const std::vector<finding>& found) {
  std::string all;
  for (const auto& f : found) all += json(f.what).get<std::string>() + "/" + f.level + "(" + format_number(f.confidence, 2) + ") ";
  return all;
}

constexpr const char* stall_long = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio";
constexpr const char* stall_barrier = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio";
constexpr const char* sm = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* dram = "dram__throughput.avg.pct_of_peak_sustained_elapsed";

} // namespace

TEST_CASE("recorded kernels: the class that each was written to show comes first") {
  struct expectation {
    const char* kernel;
    const char* source;
    bottleneck what;
    const char* level;
  };
  const expectation table[] = {
      {"copy", "tl.load tl.store", bottleneck::memory_bandwidth_bound, "DRAM"},
      {"strided", "tl.load tl.store", bottleneck::uncoalesced_access, "L1"},
      {"softmax", "tl.max tl.exp tl.sum", bottleneck::memory_bandwidth_bound, "DRAM"},
      {"max_column", "tl.maximum", bottleneck::tail_effect, ""},
      {"matmul_ieee", "acc = tl.dot(x, w, acc, input_precision=P)", bottleneck::tensor_cores_idle, ""},
      {"matmul_tf32x3", "acc = tl.dot(x, w, acc, input_precision=P)", bottleneck::bank_conflicts, "shared memory"},
      {"matmul_spill", "acc = tl.dot(x, w, acc, input_precision=P)", bottleneck::register_spills, "local memory"},
  };
  REQUIRE(recorded().size() == std::size(table));
  for (const auto& e : table) {
    const auto found = run(recorded().at(e.kernel), e.source);
    INFO(e.kernel << ": " << names(found));
    REQUIRE_FALSE(found.empty());
    CHECK(found.front().what == e.what);
    CHECK(found.front().level == e.level);
    CHECK(found.front().confidence > 0.65);
    for (const auto& f : found) {
      CHECK_FALSE(f.remedies.empty());
      REQUIRE_FALSE(f.proof.empty());
      for (const auto& proof : f.proof) CHECK(proof.text.find("(measured") != std::string::npos);
    }
  }
}

TEST_CASE("evidence under a metric's name has that metric's value") {
  const auto limits = h200();
  for (const auto& [kernel, p] : recorded())
    for (const auto& f : run(p, "tl.dot", 1e12, 100e6, 50e6, &limits))
      for (const auto& e : f.proof)
        if (const auto* m = p.find(e.metric)) {
          INFO(kernel << ": " << json(f.what).dump() << ", " << e.metric);
          CHECK(e.value == Approx(m->value));
          if (!m->unit.empty()) CHECK(e.unit == m->unit);
        }
  // Sums are no metric of the profile, so the report calls them derived; their documentation is the first part's.
  const auto spills = run(recorded().at("matmul_spill"), "tl.dot");
  REQUIRE(find(spills, bottleneck::register_spills));
  const auto& sum = find(spills, bottleneck::register_spills)->proof.front();
  CHECK(sum.metric == "smsp__sass_inst_executed_op_local_ld.sum + smsp__sass_inst_executed_op_local_st.sum");
  CHECK(explained_by(sum) == "smsp__sass_inst_executed_op_local_ld.sum");
  const auto strided = run(recorded().at("strided"));
  REQUIRE(find(strided, bottleneck::uncoalesced_access));
  for (const auto& e : find(strided, bottleneck::uncoalesced_access)->proof) CHECK(e.metric != "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum");
}

TEST_CASE("AMD's traffic has AMD's names, and the best version's figure") {
  const auto limits = h200();
  const auto amd = [](double read, double written, double seconds) {
    return device_profile({{"FETCH_SIZE", read, "KB"}, {"WRITE_SIZE", written, "KB"}}, seconds, "rocm");
  };
  const auto best = amd(800e3, 400e3, 600e-6), now = amd(1200e3, 800e3, 600e-6);
  const auto found = run(now, "", 0, 800e6, 400e6, &limits, &best);
  const auto* f = find(found, bottleneck::too_many_passes);
  REQUIRE(f);
  CHECK(f->proof.front().metric == "FETCH_SIZE + WRITE_SIZE");
  CHECK(f->proof.front().value == 2000e3 * 1024);
  CHECK(f->proof.front().has_best);
  CHECK(f->proof.front().best_value == 1200e3 * 1024);
}

TEST_CASE("recorded kernels: what is not wrong with them is not said") {
  CHECK_FALSE(find(run(recorded().at("copy")), bottleneck::uncoalesced_access)); // 16 sectors a request are vectors of four
  CHECK_FALSE(find(run(recorded().at("copy")), bottleneck::latency_bound));
  CHECK_FALSE(find(run(recorded().at("matmul_ieee"), "tl.dot"), bottleneck::occupancy_limited)); // 8 warps that issue 72% of the time
  CHECK_FALSE(find(run(recorded().at("matmul_ieee"), "tl.dot"), bottleneck::register_spills));
  CHECK_FALSE(find(run(recorded().at("matmul_tf32x3"), "tl.dot"), bottleneck::tensor_cores_idle));
  CHECK_FALSE(find(run(recorded().at("softmax"), "tl.exp"), bottleneck::bank_conflicts));
  CHECK_FALSE(find(run(recorded().at("softmax"), "tl.exp"), bottleneck::tensor_cores_idle));
}

TEST_CASE("what warps wait for decides the words of a latency-bound kernel") {
  auto p = device_profile({{sm, 20}, {dram, 25}, {stall_long, 20, "inst"}, {stall_barrier, 2, "inst"}, {"smsp__average_warp_latency_per_inst_issued.ratio", 25, "cycle"}});
  auto found = run(p);
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().what == bottleneck::latency_bound);
  CHECK(found.front().why.find("global or local memory") != std::string::npos);
  CHECK(found.front().remedies.front().find("num_stages") != std::string::npos);
  p = device_profile({{sm, 20}, {dram, 25}, {stall_long, 2, "inst"}, {stall_barrier, 20, "inst"}, {"smsp__average_warp_latency_per_inst_issued.ratio", 25, "cycle"}});
  found = run(p);
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().why.find("at a barrier") != std::string::npos);
  CHECK(found.front().remedies.front().find("num_warps") != std::string::npos);
  // Where memory is the limit the same stalls are how that looks from the warps.
  CHECK_FALSE(find(run(device_profile({{sm, 20}, {dram, 85}, {stall_long, 20, "inst"}})), bottleneck::latency_bound));
}

TEST_CASE("occupancy names the tightest limit") {
  const auto with = [](double registers, double shared) {
    return device_profile({{sm, 30}, {dram, 30}, {"sm__maximum_warps_per_active_cycle_pct", 19}, {"sm__warps_active.avg.pct_of_peak_sustained_active", 18},
                           {"smsp__issue_active.avg.pct_of_peak_sustained_active", 20}, {"launch__occupancy_limit_registers", registers, "block"},
                           {"launch__occupancy_limit_shared_mem", shared, "block"}, {"launch__occupancy_limit_warps", 8, "block"}});
  };
  const auto by_registers = run(with(1, 3)), by_shared = run(with(6, 2));
  REQUIRE(find(by_registers, bottleneck::occupancy_limited));
  CHECK(find(by_registers, bottleneck::occupancy_limited)->level == "registers");
  REQUIRE(find(by_shared, bottleneck::occupancy_limited));
  CHECK(find(by_shared, bottleneck::occupancy_limited)->level == "shared memory");
  CHECK(find(by_shared, bottleneck::occupancy_limited)->remedies.front().find("num_stages") != std::string::npos);
}

TEST_CASE("waves: just above a whole number loses time, just below does not") {
  const auto at = [](double waves, double grid) {
    const auto found = run(device_profile({{"launch__waves_per_multiprocessor", waves, ""}, {"launch__grid_size", grid, ""}, {"launch__sm_count", 132, "SM"}}));
    const auto* f = find(found, bottleneck::tail_effect);
    return f ? f->confidence : 0;
  };
  CHECK(at(1.1, 145) > 0.7);
  CHECK(at(1.97, 260) == 0);
  CHECK(at(20.1, 2653) == 0);
  CHECK(at(0.02, 32) > 0.7);
  CHECK(at(0.25, 132) == 0); // one block on each: nothing idles
  CHECK(at(1.1, 145) > at(2.2, 290));
  const auto text = [](double grid) {
    const auto found = run(device_profile({{"launch__grid_size", grid, ""}, {"launch__sm_count", 132, "SM"}}));
    const auto* f = find(found, bottleneck::tail_effect);
    return f ? f->proof.front().text : std::string();
  };
  CHECK(text(66).find("leave 50% of them idle") != std::string::npos);
  CHECK(text(140).find("some have 2") != std::string::npos); // no multiprocessor is idle all the time
}

TEST_CASE("short calls are launch bound, more so with several kernels") {
  const auto limits = h200();
  const auto at = [&](double seconds, double kernels) {
    const auto found = run(device_profile({{"launches_per_call", kernels, "count"}, {"gpu__time_duration.sum", 2000, "ns"}}, seconds), "", 0, 1e6, 5e5, &limits);
    const auto* f = find(found, bottleneck::launch_bound);
    return f ? f->confidence : 0;
  };
  CHECK(at(6e-6, 3) > 0.7);
  CHECK(at(6e-6, 3) > at(9e-6, 3));
  CHECK(find(run(device_profile({{"gpu__time_duration.sum", 2000, "ns"}}, 4e-6), "", 0, 1e6, 5e5, &limits), bottleneck::launch_bound)->confidence > 0.7); // launches were not counted
  const auto found = run(device_profile({{"launches_per_call", 3, "count"}}, 9e-6), "", 0, 1e6, 5e5, &limits);
  REQUIRE(find(found, bottleneck::launch_bound));
  CHECK(find(found, bottleneck::launch_bound)->remedies.front().find("Fuse the 3 kernels") != std::string::npos);
  CHECK_FALSE(find(run(device_profile({{"gpu__time_duration.sum", 99e3, "ns"}}, 100e-6), "", 0, 1e6, 5e5, &limits), bottleneck::launch_bound));
}

TEST_CASE("a broadcast load is not uncoalesced, bank conflicts in idle shared memory are not the first thing to say") {
  CHECK(run(device_profile({{"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio", 4, "byte/sector"}, {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 1000, "sector"},
                            {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 1000, ""}})).empty());
  const auto conflicts = [](double use) {
    const auto found = run(device_profile({{"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", 70, ""}, {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 100, ""},
                                           {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed", use, "%"}}));
    const auto* f = find(found, bottleneck::bank_conflicts);
    return f ? f->confidence : 0;
  };
  CHECK(conflicts(75) > 0.8);
  CHECK(conflicts(3) < 0.5);
}

TEST_CASE("several kernels that pass data on through memory are too many passes") {
  const auto limits = h200();
  const auto p = device_profile({{"dram__bytes_read.sum", 1.2e9, "byte"}, {"dram__bytes_write.sum", 0.8e9, "byte"}}, 600e-6);
  const auto found = run(p, "", 0, 800e6, 400e6, &limits);
  REQUIRE(find(found, bottleneck::too_many_passes));
  CHECK(found.front().what == bottleneck::too_many_passes);
  CHECK(found.front().remedies.front().find("Fuse") != std::string::npos);
  CHECK_FALSE(find(run(p, "", 0, 1.6e9, 800e6, &limits), bottleneck::too_many_passes));
}

TEST_CASE("TF32 is proposed only where the task allows it") {
  const auto& p = recorded().at("matmul_ieee");
  const auto strict = run(p, "tl.dot"), loose = run(p, "tl.dot", 0, 0, -1, nullptr, nullptr, product_precision::tf32);
  CHECK(find(strict, bottleneck::tensor_cores_idle)->remedies.front().find("tf32x3") != std::string::npos);
  CHECK(find(loose, bottleneck::tensor_cores_idle)->remedies.front().find("\"tf32\"") != std::string::npos);
}

TEST_CASE("evidence shows the best version's figure on devices too") {
  const auto best = device_profile({{dram, 70}}, 1e-3), now = device_profile({{dram, 85}}, 0.9e-3);
  const auto found = run(now, "", 0, 0, -1, nullptr, &best);
  REQUIRE(found.size() == 1);
  CHECK(found.front().proof.front().has_best);
  CHECK(found.front().proof.front().best_value == 70);
}

TEST_CASE("rules for CPUs and for devices do not read each other's profiles") {
  // Metrics of both kinds in one profile: the backend decides.
  const std::vector<given> mixed = {{"topdown.bad_speculation", 60}, {"hot_loop.vector_share", 0}, {dram, 90}, {sm, 10}};
  const auto on_device = run(device_profile(mixed)), on_cpu = run(device_profile(mixed, 1e-3, "cpu"));
  REQUIRE(on_device.size() == 1);
  CHECK(on_device.front().what == bottleneck::memory_bandwidth_bound);
  CHECK(find(on_cpu, bottleneck::bad_speculation));
  CHECK_FALSE(find(on_cpu, bottleneck::memory_bandwidth_bound));
  // A short call: on the CPU it is the call, on a device the launch.
  CHECK(find(run(device_profile({}, 0.3e-6, "cpu")), bottleneck::call_overhead));
  CHECK(find(run(device_profile({}, 3e-6)), bottleneck::launch_bound));
  // Limits of a device are enough to know.
  const auto limits = h200();
  CHECK(find(run(device_profile({}, 3e-6, "cpu"), "", 0, 1e6, 5e5, &limits), bottleneck::launch_bound));
}

TEST_CASE("rocprofv3 and msprof: what maps clearly is understood") {
  CHECK(run(device_profile({{"MemUnitBusy", 90}, {"VALUBusy", 20}}, 1e-3, "rocm")).front().what == bottleneck::memory_bandwidth_bound);
  CHECK(run(device_profile({{"VALUBusy", 90}, {"MemUnitBusy", 20}}, 1e-3, "rocm")).front().what == bottleneck::compute_bound);
  CHECK(run(device_profile({{"MemUnitBusy", 90}, {"VALUBusy", 20}}, 1e-3, "rocm")).front().level.empty()); // any cache may have answered
  CHECK(run(device_profile({{"VALUBusy", 8}, {"MfmaUtil", 85}, {"MemUnitBusy", 30}}, 1e-3, "rocm"), "tl.dot(a, b)").front().what == bottleneck::compute_bound);
  CHECK_FALSE(find(run(device_profile({{"VALUBusy", 8}, {"MfmaUtil", 85}, {"MemUnitBusy", 30}}, 1e-3, "rocm"), "tl.dot(a, b)"), bottleneck::latency_bound));
  CHECK_FALSE(find(run(device_profile({{"VALUBusy", 8}, {"MemUnitBusy", 30}}, 1e-3, "rocm"), "tl.dot(a, b)"), bottleneck::latency_bound)); // nobody looked at the matrix units
  CHECK(find(run(device_profile({{"VALUBusy", 8}, {"MemUnitBusy", 30}}, 1e-3, "rocm"), "tl.exp(a)"), bottleneck::latency_bound));
  CHECK(run(device_profile({{"VALUBusy", 75}, {"MfmaUtil", 0}}, 1e-3, "rocm"), "tl.dot(a, b)").front().what == bottleneck::tensor_cores_idle);
  CHECK(run(device_profile({{"LDSBankConflict", 20}}, 1e-3, "rocm")).front().what == bottleneck::bank_conflicts);
  CHECK(run(device_profile({{"Scratch_Size", 128, "bytes"}}, 1e-3, "rocm")).front().what == bottleneck::register_spills);
  CHECK(run(device_profile({{"aiv_mte2_ratio", 0.85, ""}, {"aiv_vec_ratio", 0.2, ""}}, 1e-3, "ascend")).front().what == bottleneck::memory_bandwidth_bound);
  CHECK(run(device_profile({{"aic_mac_ratio", 0.9, ""}}, 1e-3, "ascend")).front().what == bottleneck::compute_bound);
  CHECK(run(device_profile({{"aiv_scalar_ratio", 0.6, ""}}, 1e-3, "ascend")).front().what == bottleneck::latency_bound);
}

TEST_CASE("a device's profile without metrics says nothing") {
  CHECK(run(device_profile({})).empty());
  CHECK(run(device_profile({{"launch__registers_per_thread", 255, "register/thread"}})).empty());
}

TEST_CASE("a device's roofline: DRAM for what must be read, L2 may keep outputs, launches count") {
  const auto m = h200();
  // 440 MB read at 4400 GB/s: 100 us and a launch.
  auto point = place_on_roofline(200e-6, {0, 440e6, 0}, m);
  CHECK(point.attainable_seconds == Approx(102e-6));
  CHECK(point.limit == "DRAM bandwidth");
  CHECK(point.share == Approx(0.51));
  // 20 MB of outputs stay in L2, of 440 MB only 30 do.
  CHECK(place_on_roofline(1, {0, 20e6 + 440e6, 20e6}, m).attainable_seconds == Approx(102e-6));
  CHECK(place_on_roofline(1, {0, 880e6, 440e6}, m).attainable_seconds > 195e-6);
  // A larger working set than L2 or a smaller one: inputs come from DRAM all the same.
  CHECK(place_on_roofline(1, {0, 8e6, 0}, m).attainable_seconds == Approx(2e-6 + 8e6 / 4400e9));
  CHECK(place_on_roofline(4e-6, {0, 4096, 0}, m).limit == "launch latency");
  CHECK(place_on_roofline(1, {6e12, 1e6, 0}, m).limit == "peak FLOP/s (FP32)");
}

TEST_CASE("a device's roofline is not exceeded by errors of measurement, but by work that was not done") {
  const auto m = h200();
  CHECK(place_on_roofline(100e-6, {0, 440e6, 0}, m).share == 1); // the launch hides behind the reading
  CHECK(place_on_roofline(97e-6, {0, 440e6, 0}, m).share == 1);  // the bandwidth was measured 3% too low
  CHECK(place_on_roofline(50e-6, {0, 440e6, 0}, m).share > 1.5);
  CHECK(place_on_roofline(9.4e-6, {0, 44e6, 0}, m).share < 1.1); // 10 us of reading: the launch is not added to what is not believed
  CHECK(place_on_roofline(1.5e-6, {0, 4096, 0}, m).share == 1); // a graph starts faster than a launch: its outputs are judged elsewhere
  // 40 MB in and out in 13 us would be 6 TB/s, which this DRAM does not give: most of the outputs stay in L2.
  CHECK(place_on_roofline(13e-6, {0, 80e6, 40e6}, m).share <= 1);
  CHECK(place_on_roofline(13e-6, {0, 80e6}, m).share <= 1);
}

TEST_CASE("a device's arithmetic peak is that of the units that the time does not rule out") {
  const auto m = h200();
  const double flops = 600e9; // 10 ms of FP32, 4.5 ms of three TF32 products, 1.5 ms of TF32, 0.75 ms of FP16
  CHECK(place_on_roofline(11e-3, {flops, 1e6, 0}, m).limit == "peak FLOP/s (FP32)");
  CHECK(place_on_roofline(11e-3, {flops, 1e6, 0}, m).share == Approx(0.91).epsilon(0.01));
  CHECK(place_on_roofline(5e-3, {flops, 1e6, 0}, m).limit == "peak FLOP/s (3 x TF32)");
  CHECK(place_on_roofline(2e-3, {flops, 1e6, 0}, m).limit == "peak FLOP/s (TF32)");
  CHECK(place_on_roofline(11e-3, {flops, 1e6, 0, product_precision::tf32}, m).limit == "peak FLOP/s (TF32)");
  CHECK(place_on_roofline(11e-3, {flops, 1e6, 0, product_precision::tf32}, m).share < 0.2);
  CHECK(place_on_roofline(0.1e-3, {flops, 1e6, 0}, m).limit == "launch latency"); // fewer operations than the formula counts
}

TEST_CASE("a device is at its roofline near DRAM's bandwidth or the peak, never by its launches") {
  const auto m = h200();
  auto found = run(device_profile({{dram, 92}, {"hot_loop.vector_share", 0}}, 104e-6), "", 0, 440e6, 0, &m);
  REQUIRE(found.size() == 1);
  CHECK(found.front().what == bottleneck::at_roofline);
  CHECK(found.front().level == "DRAM");
  CHECK(find(run(device_profile({}, 10.1e-3), "", 600e9, 1e6, 0, &m), bottleneck::at_roofline));
  CHECK_FALSE(find(run(device_profile({}, 2.05e-6), "", 0, 4096, 0, &m), bottleneck::at_roofline));
  CHECK_FALSE(find(run(device_profile({}, 140e-6), "", 0, 440e6, 0, &m), bottleneck::at_roofline));
  // 80% of DRAM's bandwidth is bandwidth bound by the clock alone.
  found = run(device_profile({}, 125e-6), "", 0, 440e6, 0, &m);
  REQUIRE(find(found, bottleneck::memory_bandwidth_bound));
  CHECK(find(found, bottleneck::memory_bandwidth_bound)->level == "DRAM");
}

TEST_CASE("devices: metrics to ask for are ncu's, the trace and the first brief speak of kernels") {
  finding idle;
  idle.what = bottleneck::register_spills;
  const auto asked = metrics_to_ask({idle}, "cuda");
  REQUIRE_FALSE(asked.empty());
  CHECK(asked.front() == "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"); // what the rule prefers to the instructions of the default set
  CHECK(metrics_to_ask({idle}, "cpu").empty());
  CHECK(metrics_to_ask({idle}, "rocm").empty());

  iteration_record r;
  r.number = 1;
  r.verdict.stage = verdict_stage::passed;
  r.code.has_profile = true;
  r.code.measured = recorded().at("softmax");
  r.code.measured.time.speedup = {1.5, 1.4, 1.6};
  r.findings = run(r.code.measured, "tl.exp");
  std::string trace;
  for (const auto& line : explain(r, nullptr, judgement::first)) trace += line + "\n";
  INFO(trace);
  CHECK(trace.find("DRAM_throughput = 70.22%") != std::string::npos);
  CHECK(trace.find("Kernel_time = 31.1 us") != std::string::npos);
  CHECK(trace.find("memory bandwidth bound (DRAM)") != std::string::npos);
  CHECK(trace.find("IPC") == std::string::npos);
  CHECK(make_brief(1, nullptr, nullptr, "cuda").actions.front().find("kernel") != std::string::npos);
  CHECK(make_brief(1, nullptr, nullptr).actions.front().find("vectorise") != std::string::npos);
  const auto b = make_brief(2, &r, &r);
  REQUIRE_FALSE(b.meanings.empty());
  CHECK(b.meanings.front().metric == dram);
}

TEST_CASE("failures of Triton candidates lead to the cause") {
  struct known {
    const char* stage;
    const char* text;
    const char* expected; // in the first hint
  };
  const known table[] = {
      {"run", "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 294912, Hardware limit: 232448. Reducing block sizes or `num_stages` may help.", "num_stages"},
      {"run", "triton.compiler.errors.CompilationError: at 6:8:\n    i = tl.arange(0, 100)\n        ^\narange's range must be a power of 2", "next_power_of_2"},
      {"run", "triton.compiler.errors.CompilationError: at 3:4:\n    x = y + 1\n        ^\nNameError('y is not defined')", "line under"},
      {"run", "AttributeError(\"module 'triton.language' has no attribute 'tanh'\")", "libdevice"},
      {"run", "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered", "Mask each tl.load"},
      {"run", "RuntimeError: CUDA error: misaligned address", "aligned"},
      {"run", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 GiB.", "intermediate"},
      {"run", "ValueError: Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)", "device=x.device"},
      {"run", "the candidate did not come back within 20.0 s during the call", "loop bounds"},
      {"run", "AssertionError(\"Loop-carried variable acc has initial type <['128'], fp16> but is re-assigned to <['128'], fp32> in loop! Please make sure that the type stays consistent.\")", "final type"},
      {"run", "Input shapes should have M >= 1, N >= 1 and K >= 16", "at least 16"},
      {"run", "RuntimeError: Triton Error [CUDA]: invalid argument", "one-dimensional grid"},
      {"load", "SyntaxError: '(' was never closed", "not valid Python"},
      {"load", "TypeError: ModelNew.__init__() missing 1 required positional argument: 'eps'", "signature"},
      {"audit", "it ran Torch operators that compute: aten::_softmax (1 call)", "Triton kernels"},
      {"compare", "out0[1] is 0.2501, expected 0.25 (own inputs, seed 1); 100 of 128 elements are wrong", "tf32x3"},
      {"compare", "out0[15, 1021] is 0.9, expected 0.5 (own inputs, seed 2); 48 of 16384 elements are wrong", "masks"},
  };
  for (const auto& k : table) {
    const auto hints = repairs_for(test::refused(k.stage, k.text), "triton");
    REQUIRE_FALSE(hints.empty());
    INFO(k.text << "\n -> " << hints.front().cause << " " << hints.front().remedy);
    CHECK((hints.front().cause + " " + hints.front().remedy).find(k.expected) != std::string::npos);
    for (const auto& h : hints)
      for (const char* word : {"args->", "pragma_kernel", "-march", "-ffast-math", "OpenMP", "<cmath>"}) CHECK((h.cause + h.remedy).find(word) == std::string::npos);
  }
  CHECK(repairs_for(test::refused("run", "something new"), "triton").size() == 1);
  CHECK(repairs_for(test::refused("passed", ""), "triton").empty());
}
