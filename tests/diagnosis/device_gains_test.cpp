// What a call on a device would take without a bottleneck, and atomic operations that wait for each other: made-up figures, and the kernels recorded on an H200.
#include "tests/diagnosis/device_profiles.hpp"

using namespace pragma;

namespace {

constexpr const char* sm = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* dram = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* l2 = "lts__throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* l1 = "l1tex__throughput.avg.pct_of_peak_sustained_active";
constexpr const char* atomics = "lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed";

/// Time with a bottleneck over the time that is promised without it; 0 = there is no such finding, or it promises nothing.
double promise(const std::vector<finding>& found, bottleneck what) {
  const auto* f = find(found, what);
  return f && f->seconds_without > 0 ? f->seconds / f->seconds_without : 0;
}

} // namespace

TEST_CASE("a device: without a bottleneck the other units still have their work") {
  // Strided loads: L1 and L2 are busy with them, DRAM at a quarter of what it can do.
  const auto strided = run(device_profile({{sm, 16}, {dram, 22.5}, {l2, 94}, {l1, 60}, {"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio", 4, "bytes"},
                                           {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio", 32, "sectors"}}));
  CHECK(promise(strided, bottleneck::uncoalesced_access) == Approx(4));
  // Warps wait: the busiest unit could do twice as much.
  CHECK(promise(run(device_profile({{sm, 10}, {dram, 45}})), bottleneck::latency_bound) == Approx(2));
  // Spills keep all caches and DRAM busy, and the matrix units have 30% of their work.
  const auto spilled = run(device_profile({{sm, 30}, {dram, 20}, {l2, 60}, {l1, 70}, {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", 30},
                                           {"l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", 1000, "sectors"}, {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 1000, "sectors"}}));
  CHECK(promise(spilled, bottleneck::register_spills) == Approx(3));
  // Arithmetic that memory does not wait for.
  CHECK(promise(run(device_profile({{sm, 90}, {dram, 30}})), bottleneck::compute_bound) == Approx(3));
  // Recorded: what a copy promises is little, as its memory is busy.
  for (const auto& f : run(recorded().at("copy"))) CHECK(f.seconds_without == 0);
  CHECK(promise(run(recorded().at("matmul_ieee"), "tl.dot"), bottleneck::tensor_cores_idle) > 5);
}

TEST_CASE("a device: passes, waves and launches that are not needed") {
  const auto limits = h200();
  // 1.6 GB move at DRAM's pace where 0.8 GB must: half of the time.
  const auto passes = run(device_profile({{dram, 92}, {l2, 92}, {sm, 10}, {"dram__bytes_read.sum", 0.8e9, "bytes"}, {"dram__bytes_write.sum", 0.8e9, "bytes"}}, 420e-6), "", 0, 0.8e9, 0.4e9, &limits);
  CHECK(promise(passes, bottleneck::too_many_passes) == Approx(2));
  // 140 blocks where 132 fit at once take two turns; evenly spread one and a bit.
  const auto tail = run(device_profile({{sm, 50}, {"launch__waves_per_multiprocessor", 140.0 / 132, ""}, {"launch__grid_size", 140, ""}, {"launch__sm_count", 132, ""}}));
  CHECK(promise(tail, bottleneck::tail_effect) == Approx(2 * 132.0 / 140));
  CHECK(promise(run(device_profile({{"launch__grid_size", 33, ""}, {"launch__sm_count", 132, ""}})), bottleneck::tail_effect) == Approx(4));
  // ... unless DRAM is busy all the same.
  CHECK(promise(run(device_profile({{dram, 60}, {"launch__grid_size", 33, ""}, {"launch__sm_count", 132, ""}})), bottleneck::tail_effect) == Approx(1.5));
  CHECK(promise(run(device_profile({{"launches_per_call", 5, "count"}}, 15e-6), "", 0, 1e6, 5e5, &limits), bottleneck::launch_bound) == Approx(15 / (2 + 13.0 / 5)));
  // Never below the roofline: 88 MB need 20 us and a launch.
  const auto bound = run(device_profile({{sm, 5}, {dram, 1}}, 44e-6), "", 0, 88e6, 0, &limits);
  CHECK(promise(bound, bottleneck::latency_bound) == Approx(2));
}

TEST_CASE("many operations for each element are no contraction: its matrix units may be idle") {
  const auto p = device_profile({{"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", 0}, {"sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active", 85}, {sm, 85}});
  diagnosis_input in;
  in.current = &p;
  in.flops = 100e6;
  in.bytes = 1e6;
  in.contracts = false;
  in.source = "value = value + 0.02 * (goal - value)";
  CHECK_FALSE(find(diagnose(in), bottleneck::tensor_cores_idle));
  in.source = "total += tl.sum(rows * columns, 1)"; // written out, by a task that has no operator of a product
  CHECK(find(diagnose(in), bottleneck::tensor_cores_idle));
  in.source = "value = value + 0.02 * (goal - value)";
  in.contracts = true;
  CHECK(find(diagnose(in), bottleneck::tensor_cores_idle));
  task t;
  t.category = "others";
  CHECK_FALSE(work_of(t, tf32_use::none).contracts);
  t.category = "conv";
  CHECK(work_of(t, tf32_use::none).contracts);
}

TEST_CASE("a finding of a device that promises nothing is hardly one") {
  const auto confidence = [](double busiest) {
    const auto found = run(device_profile({{sm, busiest}, {"launch__waves_per_multiprocessor", 1.2, ""}, {dram, busiest}}));
    const auto* f = find(found, bottleneck::tail_effect);
    return f ? f->confidence : 0;
  };
  CHECK(confidence(20) > 0.7);
  CHECK(confidence(89) < 0.4);
}

TEST_CASE("atomic operations on one address: one slice of L2 works, all others and all warps wait") {
  const auto one_address = device_profile({{sm, 3}, {dram, 2}, {l2, 4}, {atomics, 97}, {"lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed", 1},
                                           {"l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum", 5e5, "sectors"}});
  const auto found = run(one_address);
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().what == bottleneck::atomic_contention);
  CHECK(found.front().confidence > 0.8);
  CHECK(found.front().why.find("the same few addresses") != std::string::npos);
  CHECK(found.front().remedies.front().find("partial result") != std::string::npos);
  CHECK(promise(found, bottleneck::atomic_contention) > 10);
  CHECK_FALSE(find(run(device_profile({{sm, 3}, {dram, 70}, {atomics, 20}})), bottleneck::atomic_contention));
}
