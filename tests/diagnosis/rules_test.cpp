#include "base/files.hpp"
#include "diagnosis/rules.hpp"
#include "diagnosis/what_limits.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdio>
#include <set>

using namespace pragma;

namespace {

struct given {
  const char* name;
  double value;
  provenance how = provenance::measured;
  const char* unit = "";
};

constexpr auto simulated = provenance::simulated;
constexpr auto fixed = provenance::static_analysis; // read from the code

profile make_profile(std::vector<given> metrics, double seconds = 1e-3, double speedup = 1) {
  profile p;
  p.time.candidate_seconds = seconds;
  p.time.speedup = {speedup, speedup * 0.98, speedup * 1.02};
  for (const auto& m : metrics) p.metrics.push_back({m.name, m.value, m.unit, "test", m.how, ""});
  return p;
}

/// A machine with round figures: L1 32 KiB, L2 512 KiB, L3 16 MiB; copying 200, 100, 50, 10 GB/s; 100 GFLOP/s.
machine_limits machine(int threads = 1) {
  machine_limits m;
  m.threads = threads;
  m.cores = 4;
  m.simd_bits = 256;
  m.cache_bytes = {32 << 10, 512 << 10, 16 << 20};
  m.copy_gbs = {200, 100, 50, 10};
  m.read_gbs = {200, 100, 50, 12};
  m.peak_gflops = 100;
  return m;
}

std::vector<finding> run(const profile& p, double bytes = 0, double flops = 0, double written = -1, const std::string& source = "", int threads = 1,
                         const profile* best = nullptr) {
  static machine_limits limits;
  limits = machine(threads);
  diagnosis_input in;
  in.current = &p;
  in.best = best;
  in.limits = bytes > 0 || flops > 0 ? &limits : nullptr;
  in.bytes = bytes;
  in.flops = flops;
  in.written_bytes = written;
  in.source = source;
  in.threads = threads;
  return diagnose(in);
}

std::string names(const std::vector<finding>& found) {
  std::string all;
  for (const auto& f : found) all += json(f.what).get<std::string>() + "(" + std::to_string(f.confidence) + ") ";
  return all;
}

const finding* find(const std::vector<finding>& found, bottleneck what) {
  for (const auto& f : found)
    if (f.what == what) return &f;
  return nullptr;
}

constexpr double MB = 1e6;

struct example {
  std::string label;
  bottleneck expected;
  std::vector<given> metrics;
  double seconds = 1e-3, bytes = 0, flops = 0, written = -1;
  std::string source = {};
  int threads = 1;
};

/// For each class: measurements that show it, and it comes first.
std::vector<example> examples() {
  const std::string parallel = "#pragma omp parallel for\nfor (int i = 0; i < n; ++i) y[i] = x[i];";
  return {
      {"front end, measured", bottleneck::front_end_bound, {{"topdown.frontend_bound", 35}, {"topdown.fetch_latency", 25}, {"ipc", 0.9}}},
      {"front end, simulated", bottleneck::front_end_bound, {{"callgrind.Ir", 1e6, simulated}, {"callgrind.I1mr", 40000, simulated}}},
      {"bad speculation, measured", bottleneck::bad_speculation, {{"topdown.bad_speculation", 30}, {"topdown.branch_mispredicts", 28}, {"branch_miss_rate", 8}}},
      {"bad speculation, simulated", bottleneck::bad_speculation, {{"callgrind.Ir", 1e6, simulated}, {"callgrind.Bc", 2e5, simulated}, {"callgrind.Bcm", 4e4, simulated}, {"callgrind.branch_miss_rate", 20, simulated, "%"}}},
      {"memory bandwidth by the clock", bottleneck::memory_bandwidth_bound, {{"hot_loop.streaming_stores", 2, fixed}}, 14e-3, 128 * MB, 32e6, 64 * MB},
      {"memory bandwidth by counters", bottleneck::memory_bandwidth_bound, {{"topdown.memory_bound", 60}}, 8e-6, 400e3, 0, 100e3},
      {"memory latency", bottleneck::memory_latency_bound, {{"topdown.memory_bound", 55}, {"dTLB-load-misses", 3e5}, {"instructions", 1e7}}, 80e-3, 128 * MB},
      {"stores that fetch their lines", bottleneck::store_bandwidth_bound, {}, 19e-3, 128 * MB, 0, 64 * MB, "for (i) y[i] = x[i]; // _mm256_stream_ps would be better"},
      {"three passes over memory", bottleneck::too_many_passes, {{"callgrind.ll_traffic_ratio", 3, simulated, "ratio"}, {"hot_loop.vector_share", 100, fixed}}, 33e-3, 128 * MB, 0, 16 * MB},
      {"a column at a time", bottleneck::strided_access, {{"callgrind.l1_traffic_ratio", 14, simulated, "ratio"}, {"callgrind.Dr", 1e6, simulated}, {"callgrind.D1mr", 9e5, simulated}, {"hot_loop.vector_share", 0, fixed}}, 5e-3, 4 * MB},
      {"one accumulator", bottleneck::dependency_chain, {{"llvm_mca.register_dependencies", 90, fixed}, {"llvm_mca.cycles_per_iteration", 4, fixed}, {"llvm_mca.block_rthroughput", 0.5, fixed}, {"hot_loop.vector_share", 100, fixed}}, 1e-3, 1 * MB, 0, 4, "for (i) acc = _mm256_add_ps(acc, load(x + i));"},
      {"a chain, by counters", bottleneck::dependency_chain, {{"topdown.core_bound", 60}, {"ipc", 0.6}, {"llvm_mca.register_dependencies", 60, fixed}}},
      {"full ports", bottleneck::port_pressure, {{"llvm_mca.resource_pressure", 95, fixed, "%"}, {"llvm_mca.top_port_pressure", 99, fixed, "%"}, {"llvm_mca.cycles_per_iteration", 20, fixed}, {"llvm_mca.block_rthroughput", 19.5, fixed}, {"hot_loop.vector_share", 100, fixed}}, 1e-3, 1 * MB},
      {"near the peak", bottleneck::port_pressure, {{"hot_loop.vector_share", 100, fixed}}, 1e-3, 1 * MB, 85e6},
      {"the divider", bottleneck::divider_bound, {{"hot_loop.divides", 2, fixed}, {"llvm_mca.cycles_per_iteration", 10, fixed}, {"llvm_mca.block_rthroughput", 10, fixed}, {"hot_loop.vector_share", 100, fixed}}, 1e-3, 1 * MB},
      {"scalar code", bottleneck::not_vectorized, {{"hot_loop.vector_share", 0, fixed, "%"}, {"hot_loop.calls", 1, fixed}, {"hot_loop.line", 12, fixed}, {"callgrind.Ir", 2e7, simulated}}, 5e-3, 4 * MB},
      {"128-bit vectors", bottleneck::not_vectorized, {{"hot_loop.vector_bits", 128, fixed, "bits"}, {"hot_loop.vector_share", 100, fixed, "%"}}, 1e-3, 1 * MB},
      {"short rows", bottleneck::scalar_tail, {{"hot_loop.vector_bits", 256, fixed}, {"hot_loop.vector_share", 100, fixed}, {"hot_loop.instructions", 8, fixed}, {"callgrind.Ir", 4e6, simulated}, {"callgrind.Bc", 3e5, simulated}}, 1e-3, 1 * MB},
      {"threads for too little work", bottleneck::thread_overhead, {{"software.context_switches", 4}, {"software.cpus_utilized", 2}}, 12e-6, 64e3, 0, -1, parallel, 2},
      {"threads that wait for each other in each row", bottleneck::thread_overhead, {{"samples.library_share", 45}, {"software.cpus_utilized", 2}, {"software.thread_imbalance", 1}}, 5e-3, 1 * MB, 0, -1, parallel, 2},
      {"an uneven split", bottleneck::load_imbalance, {{"software.thread_imbalance", 1.8}, {"software.cpus_utilized", 1.1}}, 5e-3, 1 * MB, 0, -1, parallel, 2},
      {"idle threads", bottleneck::load_imbalance, {{"software.cpus_utilized", 1.0}}, 5e-3, 1 * MB, 0, -1, "for (i) y[i] = x[i];", 2},
      {"threads that write into one line", bottleneck::false_sharing, {{"experiment.one_thread_time", 105}, {"samples.library_share", 3}, {"software.cpus_utilized", 2}, {"software.thread_imbalance", 1}}, 5e-3, 1 * MB, 0, -1, parallel, 2},
      {"threads with fixed parts that write into one line", bottleneck::false_sharing, {{"experiment.one_processor_time", 12}, {"samples.library_share", 1}, {"software.cpus_utilized", 2}, {"software.thread_imbalance", 1}}, 5e-3, 1 * MB, 0, -1, parallel, 2},
      {"threads with fixed parts that wait for each other, and longer on one processor", bottleneck::thread_overhead, {{"experiment.one_processor_time", 257}, {"samples.library_share", 45}, {"software.cpus_utilized", 2}, {"software.thread_imbalance", 1}}, 5e-3, 1 * MB, 0, -1, parallel, 2},
      {"threads that write into one line, while others use the machine", bottleneck::false_sharing, {{"experiment.one_thread_time", 105}, {"samples.library_share", 3}, {"software.context_switches", 1.8}, {"software.cpus_utilized", 1.9}, {"software.thread_imbalance", 1}}, 5e-3, 1 * MB, 0, -1, parallel, 2},
      {"rows off the lines", bottleneck::split_access, {{"samples.split_share", 60}, {"hot_loop.line", 12, fixed}, {"samples.count", 1000}, {"experiment.cached_time", 98}, {"hot_loop.instructions", 8, fixed}, {"llvm_mca.cycles_per_iteration", 4, fixed}, {"callgrind.Ir", 4e6, simulated}, {"hot_loop.vector_bits", 256, fixed}}, 1.5e-3, 1 * MB},
      {"two buffers a page apart", bottleneck::address_aliasing, {{"samples.alias_share", 100}, {"hot_loop.line", 12, fixed}, {"samples.count", 1000}, {"experiment.cached_time", 98}, {"hot_loop.instructions", 8, fixed}, {"llvm_mca.cycles_per_iteration", 4, fixed}, {"callgrind.Ir", 4e6, simulated}, {"hot_loop.vector_bits", 256, fixed}}, 1.5e-3, 1 * MB},
      {"two buffers a page apart, by an experiment", bottleneck::address_aliasing, {{"samples.alias_share", 100}, {"hot_loop.line", 12, fixed}, {"samples.count", 1000}, {"experiment.apart_time", 70}}, 1.5e-3, 1 * MB},
      {"rows a page apart", bottleneck::address_aliasing, {{"samples.one_set_share", 95}, {"samples.far_share", 95}, {"samples.strided_share", 5}, {"callgrind.l1_traffic_ratio", 30, simulated, "ratio"}, {"hot_loop.line", 12, fixed}, {"samples.count", 1000}}, 1.5e-3, 1 * MB},
      {"lanes through memory", bottleneck::store_forwarding, {{"hot_loop.blocked_loads", 1, fixed}, {"hot_loop.line", 12, fixed}, {"samples.count", 1000}, {"experiment.cached_time", 98}, {"hot_loop.instructions", 8, fixed}, {"llvm_mca.cycles_per_iteration", 4, fixed}, {"callgrind.Ir", 4e6, simulated}, {"hot_loop.vector_bits", 256, fixed}}, 1.5e-3, 1 * MB},
      {"denormals, by an experiment", bottleneck::denormals, {{"experiment.flushed_time", 30}, {"experiment.ones_time", 30}, {"experiment.cached_time", 92}}, 5e-3, 1 * MB},
      {"branches, by an experiment", bottleneck::bad_speculation, {{"experiment.flushed_time", 100}, {"experiment.ones_time", 20}, {"experiment.cached_time", 22}}, 5e-3, 1 * MB},
      {"pages, by an experiment", bottleneck::memory_latency_bound, {{"experiment.huge_pages_time", 50}}, 5e-3, 1 * MB},
      {"loads that lead to loads", bottleneck::memory_latency_bound, {{"hot_loop.chained_loads", 1, fixed}, {"experiment.cached_time", 12}, {"hot_loop.vector_share", 0, fixed, "%"}, {"hot_loop.line", 12, fixed}}, 80e-3, 64 * MB},
      {"stores, by an experiment", bottleneck::store_bandwidth_bound, {{"experiment.cached_time", 16}, {"experiment.cached_reads_time", 69}}, 26e-3, 128 * MB, 0, 64 * MB, "for (i) y[i] = x[i];"},
      {"streaming stores, by an experiment, whatever the machine says of its caches", bottleneck::store_bandwidth_bound, {{"experiment.streaming_time", 60}, {"experiment.cached_time", 30}}, 1e-3, 4 * MB, 0, 3 * MB, "for (i) y[i] = x[i];"},
      {"denormals", bottleneck::denormals, {{"callgrind.Ir", 1e6, simulated}, {"hot_loop.vector_share", 100, fixed}, {"topdown.heavy_operations", 35}}, 30e-3, 1 * MB},
      {"a tiny kernel", bottleneck::call_overhead, {}, 0.3e-6, 4096},
      {"at the limit", bottleneck::at_roofline, {{"hot_loop.vector_share", 0, fixed}}, 12.9e-3, 128 * MB, 0, 64 * MB},
      {"fresh memory in each call", bottleneck::redundant_work, {{"software.page_faults", 200}}, 5e-3, 1 * MB},
  };
}

} // namespace

TEST_CASE("each class is found first from the metrics that show it") {
  std::set<bottleneck> covered;
  for (const auto& e : examples()) {
    const auto p = make_profile(e.metrics, e.seconds);
    const auto found = run(p, e.bytes, e.flops, e.written, e.source, e.threads);
    INFO(e.label << ": " << names(found));
    REQUIRE_FALSE(found.empty());
    CHECK(found.front().what == e.expected);
    for (const auto& f : found) {
      CHECK(f.confidence > 0);
      CHECK(f.confidence < 1);
      CHECK_FALSE(f.why.empty());
      CHECK_FALSE(f.remedies.empty());
      REQUIRE_FALSE(f.proof.empty());
      for (const auto& proof : f.proof) {
        CHECK_FALSE(proof.text.empty());
        CHECK(std::isfinite(proof.value));
      }
    }
    covered.insert(e.expected);
  }
  CHECK(covered.size() == static_cast<size_t>(bottleneck::redundant_work) + 1); // the whole list of classes of CPUs; device_test.cpp has the others
}

TEST_CASE("an inconspicuous profile gives no finding") {
  const auto p = make_profile({{"topdown.frontend_bound", 8}, {"topdown.bad_speculation", 2}, {"topdown.memory_bound", 15}, {"topdown.core_bound", 8},
                               {"topdown.retiring", 60}, {"ipc", 1.8}, {"branch_miss_rate", 0.5}, {"callgrind.Ir", 1e6, simulated}, {"callgrind.I1mr", 10, simulated},
                               {"callgrind.Dr", 1.3e5, simulated}, {"callgrind.D1mr", 3e4, simulated}, {"callgrind.l1_traffic_ratio", 1.02, simulated},
                               {"callgrind.Bc", 4e4, simulated}, {"callgrind.Bcm", 50, simulated}, {"hot_loop.vector_bits", 256, fixed},
                               {"hot_loop.vector_share", 100, fixed}, {"hot_loop.instructions", 30, fixed}, {"hot_loop.divides", 0, fixed}, {"hot_loop.calls", 0, fixed},
                               {"llvm_mca.cycles_per_iteration", 10, fixed}, {"llvm_mca.block_rthroughput", 9, fixed}, {"llvm_mca.register_dependencies", 10, fixed},
                               {"llvm_mca.resource_pressure", 30, fixed}, {"llvm_mca.top_port_pressure", 70, fixed}, {"software.context_switches", 0.01},
                               {"software.page_faults", 0}, {"software.cpus_utilized", 1}},
                              200e-6);
  const auto found = run(p, 4 * MB, 1e6, 1 * MB, "for (i) y[i] = x[i];");
  INFO(names(found));
  CHECK(found.empty());
  CHECK(run(make_profile({})).empty());
}

TEST_CASE("a machine without a PMU still gets a reason, of at most 0.7 without a measurement") {
  const auto p = make_profile({{"hot_loop.vector_share", 0, fixed}, {"callgrind.Ir", 4e7, simulated}, {"hot_loop.calls", 2, fixed}, {"callgrind.l1_traffic_ratio", 15, simulated}}, 10e-3);
  const auto found = run(p, 4 * MB);
  REQUIRE(found.size() >= 2);
  for (const auto& f : found) CHECK(f.confidence <= 0.7);
}

TEST_CASE("stronger symptoms never lower the confidence") {
  struct sweep {
    bottleneck what;
    const char* metric;
    provenance how;
    std::vector<double> values; // from mild to strong
  };
  const std::vector<sweep> sweeps = {
      {bottleneck::front_end_bound, "topdown.frontend_bound", provenance::measured, {10, 15, 20, 30, 50, 90}},
      {bottleneck::bad_speculation, "topdown.bad_speculation", provenance::measured, {10, 15, 20, 30, 50, 90}},
      {bottleneck::too_many_passes, "callgrind.ll_traffic_ratio", simulated, {1.2, 1.5, 2, 2.5, 3, 3.9}},
      {bottleneck::dependency_chain, "llvm_mca.register_dependencies", fixed, {10, 30, 50, 80, 100}},
      {bottleneck::load_imbalance, "software.thread_imbalance", provenance::measured, {1, 1.2, 1.5, 2, 4}},
  };
  for (const auto& s : sweeps) {
    double before = 0;
    for (double value : s.values) {
      const auto found = run(make_profile({{s.metric, value, s.how}}), 0, 0, -1, "#pragma omp parallel for", 2);
      const auto* f = find(found, s.what);
      const double confidence = f ? f->confidence : 0;
      INFO(s.metric << " = " << value);
      CHECK(confidence >= before);
      before = confidence;
    }
    CHECK(before > 0);
  }
}

TEST_CASE("measured evidence counts more than simulated, simulated more than static") {
  double last = 1;
  for (auto how : {provenance::measured, simulated, fixed}) {
    const auto found = run(make_profile({{"topdown.bad_speculation", 60, how}}));
    REQUIRE(found.size() == 1);
    CHECK(found.front().confidence < last);
    CHECK((found.front().confidence > 0.7) == (how == provenance::measured));
    CHECK(found.front().proof.front().text.find(json(how).get<std::string>()) != std::string::npos);
    last = found.front().confidence;
  }
}

TEST_CASE("evidence shows the best version's figure, and getting worse counts") {
  const auto best = make_profile({{"topdown.bad_speculation", 16}}, 1e-3, 3);
  const auto slower = make_profile({{"topdown.bad_speculation", 25}}, 2e-3, 1.5);
  const auto alone = run(slower), compared = run(slower, 0, 0, -1, "", 1, &best);
  REQUIRE(compared.size() == 1);
  CHECK(compared.front().proof.front().has_best);
  CHECK(compared.front().proof.front().best_value == 16);
  CHECK(compared.front().confidence > alone.front().confidence);
  CHECK(compared.front().why.find("worse") != std::string::npos);
}

TEST_CASE("at the roofline nothing else is said; far above it the measurement is doubted") {
  const auto p = make_profile({{"hot_loop.vector_share", 0, fixed}, {"topdown.bad_speculation", 60}}, 12.8e-3);
  auto found = run(p, 128 * MB, 0, 64 * MB);
  REQUIRE(found.size() == 1);
  CHECK(found.front().what == bottleneck::at_roofline);
  CHECK(found.front().level == "memory");
  found = run(make_profile({}, 10e-3), 128 * MB, 0, 64 * MB);
  REQUIRE(found.size() == 1);
  CHECK(found.front().why.find("too low") != std::string::npos);
}

TEST_CASE("streaming stores are proposed only where they can help") {
  const auto p = make_profile({}, 19e-3);
  const std::string plain = "for (i) y[i] = x[i];";
  CHECK(find(run(p, 128 * MB, 0, 64 * MB, plain), bottleneck::store_bandwidth_bound));
  CHECK_FALSE(find(run(p, 128 * MB, 0, 64 * MB, "_mm256_stream_ps(y + i, v);"), bottleneck::store_bandwidth_bound));
  CHECK_FALSE(find(run(p, 128 * MB, 0, 1 * MB, plain), bottleneck::store_bandwidth_bound));            // a reduction
  CHECK_FALSE(find(run(make_profile({}, 0.4e-3), 12 * MB, 0, 6 * MB, plain), bottleneck::store_bandwidth_bound)); // fits L3
}

TEST_CASE("vectorisation that does not matter is not reported before the bandwidth") {
  // The same scalar loop: slow for its computing, or hidden behind memory.
  const std::vector<given> metrics = {{"hot_loop.vector_share", 0, fixed}};
  const auto computing = run(make_profile(metrics, 100e-3), 128 * MB, 0, 1 * MB), waiting = run(make_profile(metrics, 12.5e-3), 128 * MB, 0, 1 * MB);
  CHECK(computing.front().what == bottleneck::not_vectorized);
  CHECK(waiting.front().what == bottleneck::memory_bandwidth_bound);
}

TEST_CASE("what llvm-mca says counts only as far as the core explains the measured time") {
  // 1e6 instructions in iterations of 10 that take 8 cycles: 0.8e6 cycles, at the 3.125 GHz that 100 GFLOP/s imply 256 us.
  const std::vector<given> metrics = {{"llvm_mca.register_dependencies", 90, fixed}, {"llvm_mca.cycles_per_iteration", 8, fixed}, {"llvm_mca.block_rthroughput", 2, fixed},
                                      {"hot_loop.instructions", 10, fixed}, {"hot_loop.vector_share", 100, fixed}, {"callgrind.Ir", 1e6, simulated}};
  const auto confidence = [&](double seconds) {
    const auto found = run(make_profile(metrics, seconds), 1 * MB);
    const auto* f = find(found, bottleneck::dependency_chain);
    return f ? f->confidence : 0;
  };
  CHECK(confidence(270e-6) >= confidence(600e-6));
  CHECK(confidence(600e-6) > confidence(2e-3));
  CHECK(confidence(270e-6) > 0.6);
  // A function that the loop calls is not part of llvm-mca's figures.
  auto calling = metrics;
  calling.push_back({"hot_loop.calls", 1, fixed});
  const auto found = run(make_profile(calling, 270e-6), 1 * MB);
  const auto* f = find(found, bottleneck::dependency_chain);
  CHECK((f ? f->confidence : 0) < confidence(270e-6));
}

TEST_CASE("waiting inside an iteration is no chain from one to the next") {
  const std::vector<given> hidden = {{"llvm_mca.register_dependencies", 70, fixed}, {"llvm_mca.cycles_per_iteration", 8.1, fixed}, {"llvm_mca.block_rthroughput", 8, fixed}};
  CHECK_FALSE(find(run(make_profile(hidden)), bottleneck::dependency_chain));
}

TEST_CASE("the compiler's reason at the hot line is part of the finding") {
  auto p = make_profile({{"hot_loop.vector_share", 0, fixed}, {"hot_loop.line", 21, fixed}}, 5e-3);
  p.remarks = {{5, "gcc 12.2.0", "missed", "couldn't vectorize loop: some other place"},
               {21, "gcc 12.2.0", "missed", "not vectorized: control flow in loop."}};
  const auto found = run(p, 4 * MB);
  const auto* f = find(found, bottleneck::not_vectorized);
  REQUIRE(f);
  CHECK(f->line == 21);
  CHECK(f->why.find("control flow in loop.") != std::string::npos);
  CHECK(f->why.find("..") == std::string::npos);
  // A line that has a vectorised version as well (a versioned loop) is no complaint.
  p.metrics.clear();
  p.remarks.push_back({21, "gcc 12.2.0", "vectorized", "loop vectorized using 32 byte vectors"});
  CHECK_FALSE(find(run(p, 4 * MB), bottleneck::not_vectorized));
}

TEST_CASE("the working set decides which level is the limit") {
  const auto m = machine();
  CHECK(place_on_roofline(1e-6, {0, 16 << 10}, m).limit == "L1 bandwidth");
  CHECK(place_on_roofline(1e-5, {0, 200 << 10}, m).limit == "L2 bandwidth");
  CHECK(place_on_roofline(1e-4, {0, 8 << 20}, m).limit == "L3 bandwidth");
  CHECK(place_on_roofline(1e-1, {0, 128 << 20}, m).limit == "memory bandwidth");
  CHECK(place_on_roofline(1e-1, {1e9, 8 << 20}, m).limit == "peak FLOP/s");
  // Far faster than its FLOPs allow: there is a way with fewer, so only the bytes limit.
  auto with_tiles = m; // ten times the vectors' peak
  with_tiles.half_gflops = 10 * m.peak_gflops;
  CHECK(place_on_roofline(1, {0.9e9 * m.peak_gflops, 0}, with_tiles).limit == "peak FLOP/s");
  const auto on_tiles = place_on_roofline(1, {5e9 * m.peak_gflops, 0}, with_tiles), of_bytes = place_on_roofline(1, {15e9 * m.peak_gflops, 0}, with_tiles);
  CHECK(on_tiles.limit == "peak FLOP/s (bfloat16 tiles)");
  CHECK(on_tiles.share == Approx(0.5));
  CHECK(of_bytes.limit == "peak FLOP/s (int8 tiles)");
  CHECK(of_bytes.share == Approx(0.75));
  CHECK(place_on_roofline(1, {50e9 * m.peak_gflops, 0}, with_tiles).skips_work);
  const auto shorter_way = place_on_roofline(1e-3, {1e12, 8 << 20}, m);
  CHECK(shorter_way.limit == "L3 bandwidth");
  CHECK(shorter_way.skips_work);
  CHECK(shorter_way.needed_share < 1);
  // Private caches of all threads count together, the shared one once.
  CHECK(place_on_roofline(1e-5, {0, 1 << 20}, machine(4)).limit == "L2 bandwidth");
  CHECK(place_on_roofline(1e-3, {0, 40 << 20}, machine(4)).limit == "memory bandwidth");
}

TEST_CASE("roofline figures") {
  const auto m = machine();
  auto point = place_on_roofline(20e-3, {64e6, 128e6, 64e6}, m); // a copy at 6.4 of 10 GB/s
  CHECK(point.gbs == Approx(6.4));
  CHECK(point.gflops == Approx(3.2));
  CHECK(point.intensity == Approx(0.5));
  CHECK(point.attainable_seconds == Approx(12.8e-3));
  CHECK(point.share == Approx(0.64));
  CHECK(place_on_roofline(20e-3, {0, 120e6, 0}, m).attainable_seconds == Approx(10e-3)); // reading at 12 GB/s
  // Without knowing what is written the limit is never too slow.
  CHECK(place_on_roofline(20e-3, {0, 128e6}, m).attainable_seconds <= place_on_roofline(20e-3, {0, 128e6, 64e6}, m).attainable_seconds);
  // No jump at a cache's size.
  const double below = place_on_roofline(1, {0, (16 << 20) - 64}, m).attainable_seconds, above = place_on_roofline(1, {0, (16 << 20) + 64}, m).attainable_seconds;
  CHECK(above == Approx(below).epsilon(0.01));
  double last = 0;
  for (double bytes = 1024; bytes < 256e6; bytes *= 1.1) {
    const double t = place_on_roofline(1, {0, bytes}, m).attainable_seconds;
    CHECK(t >= last);
    last = t;
  }
}

TEST_CASE("odd input to the roofline gives no nonsense") {
  CHECK(place_on_roofline(0, {1, 1}, machine()).share == 0);
  CHECK(place_on_roofline(1, {0, 0}, machine()).share == 0);
  const auto point = place_on_roofline(1, {1e9, 1e9}, machine_limits{});
  CHECK(point.share == 0);
  CHECK(point.limit.empty());
  diagnosis_input nothing;
  CHECK(diagnose(nothing).empty());
}

TEST_CASE("every metric of the documentation is in the catalogue, with its unit, and the other way round") {
  auto text = read_file(std::string(TESTS_DIR) + "/../docs/metrics.md");
  REQUIRE(text);
  std::set<std::string> documented;
  size_t start = 0;
  while (start < text->size()) {
    auto end = text->find('\n', start);
    if (end == std::string::npos) end = text->size();
    const auto line = text->substr(start, end - start);
    start = end + 1;
    if (line.rfind("| `", 0) != 0) continue;
    const auto bar = line.find('|', 2), bar2 = line.find('|', bar + 1);
    auto unit = line.substr(bar + 1, bar2 - bar - 1);
    unit = unit.substr(unit.find_first_not_of(' '), unit.find_last_not_of(' ') - unit.find_first_not_of(' ') + 1);
    for (size_t at = line.find('`'); at < bar; at = line.find('`', at)) {
      const auto close = line.find('`', at + 1);
      const auto name = line.substr(at + 1, close - at - 1);
      documented.insert(name);
      INFO(name);
      const auto* m = find_meaning(name);
      REQUIRE(m);
      CHECK(m->unit == unit);
      at = close + 1;
    }
  }
  CHECK(documented.size() > 60);
  for (const auto& m : metric_catalogue()) {
    INFO(m.name);
    CHECK(documented.count(m.name) == 1);
    CHECK_FALSE(m.meaning.empty());
    CHECK_FALSE(m.reading.empty());
    CHECK_FALSE(m.source.empty());
  }
  CHECK_FALSE(find_meaning("no such metric"));
}

TEST_CASE("every threshold has a source and stands in the documentation with the same figures") {
  auto text = read_file(std::string(TESTS_DIR) + "/../docs/diagnosis.md");
  REQUIRE(text);
  for (const auto& t : thresholds()) {
    CHECK_FALSE(t.source.empty());
    CHECK(t.value != t.full);
    char figures[64];
    std::snprintf(figures, sizeof figures, " | %g | %g |", t.value, t.full);
    INFO(t.name << figures);
    CHECK(text->find("| " + t.name + figures) != std::string::npos);
  }
}

TEST_CASE("every class is described in the documentation") {
  auto text = read_file(std::string(TESTS_DIR) + "/../docs/diagnosis.md");
  REQUIRE(text);
  for (int i = 0; i <= static_cast<int>(bottleneck::register_spills); ++i) {
    const auto name = json(static_cast<bottleneck>(i)).get<std::string>();
    INFO(name);
    CHECK(text->find("`" + name + "`") != std::string::npos);
  }
}

TEST_CASE("what a registered profiler's rule reads from its metric is a finding with that metric as evidence") {
  auto p = make_profile({{"slack", 12.5, provenance::measured, "%"}});
  p.told.push_back({"memory_latency_bound", "shelltool", "slack", "%", "The widgets wait.", 12.5, 10, false, 0.8, {"oil them"}});
  p.told.push_back({"no_such_class", "shelltool", "slack", "%", "?", 12.5, 10, false, 0.9, {}});
  const auto found = run(p);
  const auto it = std::find_if(found.begin(), found.end(), [](const finding& f) { return f.why == "The widgets wait."; });
  REQUIRE(it != found.end());
  CHECK(it->what == bottleneck::memory_latency_bound);
  CHECK(it->confidence == 0.8);
  REQUIRE(it->proof.size() == 1);
  CHECK(explained_by(it->proof[0]) == "slack");
  CHECK(it->proof[0].text.find("above 10") != std::string::npos);
  CHECK(it->proof[0].text.find("shelltool") != std::string::npos);
  CHECK(it->remedies == std::vector<std::string>{"oil them"});
  CHECK(std::none_of(found.begin(), found.end(), [](const finding& f) { return f.why == "?"; })); // of a pragma that knew another class
}

TEST_CASE("what limits a kernel is said as surely as it is known") {
  const auto measured = make_profile({{"roofline_share", 13, provenance::measured, "%"}, {"hot_loop.vector_share", 100, fixed, "%"}, {"callgrind.branch_miss_rate", 0.02, simulated, "%"}});
  finding f;
  f.what = bottleneck::port_pressure;
  f.why = "The execution units are busy all the time.";
  f.confidence = 0.38;
  const auto weak = what_limits({f}, &measured);
  CHECK(weak.find("no finding explains the time; port_pressure comes nearest, with a confidence of 0.38") == 0);
  CHECK(weak.find("busy all the time") == std::string::npos);
  CHECK(weak.find("Ruled out: bandwidth and arithmetic peak (13% of the measured roofline), scalar code (100% of the hot loop is vectors), branches (0.02% mispredicted)") != std::string::npos);
  f.confidence = 0.5;
  CHECK(what_limits({f}, &measured) == "port_pressure - The execution units are busy all the time.");
  f.confidence = 0.38;
  const auto nothing_known = make_profile({{"roofline_share", 80, provenance::measured, "%"}, {"hot_loop.vector_share", 20, fixed, "%"}});
  CHECK(what_limits({f}, &nothing_known).find("Ruled out") == std::string::npos);
  CHECK(what_limits({}, nullptr) == "no finding explains the time");
}

TEST_CASE("what is kept beside a profile makes the same diagnosis again") {
  const std::string source = "void f(const float* x, float* y) {\n  for (int i = 0; i < 1000; ++i) y[i] = x[i];\n}\n";
  const auto p = make_profile({{"llvm_mca.resource_pressure", 60, fixed}, {"topdown.memory_bound", 60}}, 1e-3);
  const auto before = run(p, 8 * MB, 1e6, 4 * MB, source, 2);
  REQUIRE_FALSE(before.empty());
  diagnosed_with with;
  with.work = {1e6, 8 * MB, 4 * MB, product_precision::half, false};
  with.limits = machine(2);
  with.source = source;
  with.flags = {"-O3"};
  with.threads = 2;
  const auto kept = parse_json(json(with).dump(), "what was kept");
  REQUIRE(kept);
  const auto back = from_json_value<diagnosed_with>(*kept, "what was kept");
  REQUIRE(back);
  CHECK(json(*back) == json(with));
  CHECK(back->work.products == product_precision::half);
  auto again = *back;
  again.work.products = product_precision::float32; // as run() asks
  again.work.contracts = true;
  CHECK(json(diagnose(diagnosis_of(again, p))) == json(before));
  again.limits = {};
  CHECK(diagnosis_of(again, p).limits == nullptr); // of a machine that nobody measured
}
