// What removing a cause would bring, and what is no finding: the kernels of bench/diagnosis_truth that were told something wrong, as profiles with round figures.
#include "made_up_kernel.hpp"

#include <catch2/catch.hpp>

using namespace pragma;
using namespace made_up;

TEST_CASE("no finding promises less time than each byte needs once") {
  // 16 MB through a cache of 50 GB/s need 320 us; the scalar ends of short rows take all of 640 us, and vectors would be 16 times as fast.
  auto l = vector_loop(4, 4, 0, 2);
  l.vector_bits = 0;
  l.vector_share = 0;
  l.share = 0.2;
  kernel k(640e-6, l, 16 * MB, 4096);
  k.with("samples.outside_loops_share", 80).with("remarks.vectorized_loops", 1, fixed).with("experiment.cached_time", 90);
  const auto found = k.findings();
  REQUIRE(find(found, bottleneck::scalar_tail));
  CHECK(gain(found, bottleneck::scalar_tail) == Approx(2).epsilon(0.01));
}

TEST_CASE("vector code outside of the innermost loops is no scalar tail") {
  kernel k(640e-6, vector_loop(4, 64, 64), 4 * MB, 4096);
  k.p.loops.front().share = 0.3;
  k.with("samples.outside_loops_share", 70).with("remarks.vectorized_loops", 1, fixed).with("experiment.cached_time", 90);
  CHECK(confidence(k.findings(), bottleneck::scalar_tail) > 0.5);
  k.with("samples.outside_vectors_share", 66);
  CHECK(confidence(k.findings(), bottleneck::scalar_tail) < 0.1);
}

TEST_CASE("a loop of vectors that values decide about is none without branches") {
  const auto sure = [](int branches) {
    auto l = vector_loop(4, 64, 64);
    l.branches = branches;
    kernel k(300e-6, l, 4 * MB, 2 * MB);
    k.with("experiment.ones_time", 50).with("experiment.flushed_time", 100).with("experiment.cached_time", 40);
    return confidence(k.findings(), bottleneck::bad_speculation);
  };
  CHECK(sure(1) > 0.5);
  CHECK(sure(0) < 0.1);
}

TEST_CASE("what passes cost is what is left with all data in L1, or the bytes once") {
  kernel k(2e-3, vector_loop(4, 64, 64), 16 * MB, 8 * MB);
  k.with("callgrind.l1_traffic_ratio", 3, provenance::simulated).with("experiment.cached_time", 40).with("experiment.cached_reads_time", 60);
  CHECK(gain(k.findings(), bottleneck::too_many_passes) == Approx(1 / 0.4).epsilon(0.01)); // 0.8 ms; the bytes need 0.32
  k.p.metrics[k.p.metrics.size() - 2].value = 10;
  CHECK(gain(k.findings(), bottleneck::too_many_passes) == Approx(2e-3 / 320e-6).epsilon(0.01));
}

TEST_CASE("outputs stay in a cache only beside all that the call reads") {
  // 16 MB of outputs would fit into 16 MiB, but with 32 MB of inputs nothing of them is left: two inputs and an output, 0.9 of the time waits.
  kernel k(6e-3, vector_loop(2, 128, 64), 48 * MB, 16 * MB);
  k.with("experiment.cached_time", 10).with("experiment.cached_reads_time", 28);
  const auto found = k.findings();
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().what == bottleneck::store_bandwidth_bound);
  CHECK(gain(found, bottleneck::store_bandwidth_bound) == Approx(6e-3 / 4.8e-3).epsilon(0.01)); // 1 - 0.9 * 16 / 64 of it would be 4.65 ms: less than memory allows
  kernel small(2e-3, vector_loop(2, 64, 64), 30 * MB, 15 * MB);
  small.with("experiment.cached_time", 10).with("experiment.cached_reads_time", 40);
  CHECK_FALSE(find(small.findings(), bottleneck::store_bandwidth_bound));
}

TEST_CASE("bandwidth that is used once by each byte is a limit, no finding to follow") {
  kernel k(365e-6, vector_loop(1, 64, 0), 16 * MB, 4096); // 88% of 50 GB/s
  k.with("experiment.cached_time", 10).with("callgrind.l1_traffic_ratio", 1, provenance::simulated);
  CHECK(confidence(k.findings(), bottleneck::memory_bandwidth_bound) < 0.5);
  k.p.metrics.pop_back(); // without a simulation: one loop, in order
  CHECK(confidence(k.findings(), bottleneck::memory_bandwidth_bound) < 0.5);
  k.with("callgrind.l1_traffic_ratio", 1.4, provenance::simulated);
  CHECK(confidence(k.findings(), bottleneck::memory_bandwidth_bound) > 0.5);
}

TEST_CASE("a sum beside a long polynomial is no chain that a trip waits for") {
  auto l = vector_loop(16, 64, 64, 400);
  l.least_cycles = 8;
  l.chains = 1;
  l.chain_operations = 1; // 4 of 16 cycles
  kernel k(600e-6, l, 16 * MB, 8 * MB);
  k.with("experiment.cached_time", 95).with("llvm_mca.register_dependencies", 70, fixed);
  CHECK_FALSE(find(k.findings(), bottleneck::dependency_chain));
  k.p.loops.front().chain_operations = 4; // all of them
  CHECK(find(k.findings(), bottleneck::dependency_chain));
}

TEST_CASE("many operations for each element are told as such, though their latencies follow one another within a trip") {
  auto l = vector_loop(40, 64, 64, 16 * 130);
  l.least_cycles = 25;
  l.fused = 60;
  kernel k(1.3e-3, l, 16 * MB, 8 * MB);
  k.with("experiment.cached_time", 90);
  const auto found = k.findings();
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().what == bottleneck::port_pressure);
  CHECK(found.front().remedies.front().find("lower degree") != std::string::npos);
  k.p.loops.front().flops = 16 * 27; // an exponential with what it needs
  CHECK(confidence(k.findings(), bottleneck::port_pressure) < 0.5);
}

TEST_CASE("full units are a limit where a loop of vectors has nothing to leave out, and a fault where its numbers are widened") {
  auto l = vector_loop(8, 4, 0, 64); // comparisons with a number that is loaded for all of a vector
  l.least_cycles = 7.5;
  l.instructions = 16;
  l.vector_instructions = 13;
  l.multiplies = 0;
  kernel k(600e-6, l, 1 * MB, 1 * MB);
  k.with("experiment.cached_time", 95).with("samples.count", 1000).with("llvm_mca.resource_pressure", 95, fixed);
  REQUIRE(find(k.findings(), bottleneck::port_pressure));
  CHECK(confidence(k.findings(), bottleneck::port_pressure) < 0.5);
  k.p.loops.front().vector_instructions = 5; // the rest goes into addresses and conditions
  CHECK(confidence(k.findings(), bottleneck::port_pressure) > 0.5);
  k.p.loops.front().vector_instructions = 13;
  k.p.loops.front().widened = 4;
  const auto found = k.findings();
  CHECK(confidence(found, bottleneck::port_pressure) > 0.5);
  CHECK(find(found, bottleneck::port_pressure)->remedies.front().find("float32") != std::string::npos);
}

TEST_CASE("the divider's time grows with the width of its vectors") {
  auto l = vector_loop(22, 64, 64, 64);
  l.divides = 2;
  kernel k(300e-6, l, 4 * MB, 2 * MB);
  k.with("hot_loop.divides", 2, fixed).with("experiment.cached_time", 95);
  CHECK(confidence(k.findings(), bottleneck::divider_bound) > 0.5);
  k.p.loops.front().vector_bits = 256;
  CHECK(confidence(k.findings(), bottleneck::divider_bound) < 0.5);
}

TEST_CASE("accesses across lines cost a second access each, whatever the rest of the call takes") {
  auto l = vector_loop(5, 512, 0, 256);
  l.share = 0.4;
  kernel k(20e-6, l, 0.5 * MB, 256);
  k.with("samples.split_share", 100).with("samples.library_share", 45).with("samples.outside_loops_share", 15).with("experiment.cached_time", 90);
  const auto found = k.findings();
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().what == bottleneck::split_access);
  CHECK(gain(found, bottleneck::split_access) >= 1 / (1 - 0.4 * 4 / 9)); // 8 loads, 4 cycles more beside 5; the rest of the call may have them, too
  k.p.metrics.back().value = 20; // and none where the time waits for data
  CHECK(confidence(k.findings(), bottleneck::split_access) < 0.5);
}

TEST_CASE("the branch of a loop of vectors is not decided by values") {
  kernel k(1e-3, vector_loop(2, 64, 0), 16 * MB, 4096);
  k.with("experiment.cached_time", 60).with("experiment.ones_time", 70).with("experiment.flushed_time", 100);
  CHECK_FALSE(find(k.findings(), bottleneck::bad_speculation));
}

TEST_CASE("scalar functions that take the time are measured, and come before their own branches") {
  auto l = vector_loop(1, 4, 0, 0);
  l.vector_bits = 0;
  l.vector_share = -1;
  l.calls = 1;
  l.share = 0.03;
  kernel k(8e-3, l, 16 * MB, 8 * MB);
  k.with("hot_loop.calls", 1, fixed).with("samples.library_share", 97).with("experiment.cached_time", 70).with("experiment.ones_time", 60).with("experiment.flushed_time", 100);
  k.without("hot_loop.vector_share");
  const auto found = k.findings();
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().what == bottleneck::not_vectorized);
  CHECK(found.front().confidence > 0.8);
}

TEST_CASE("a product in tiles reads its operands often, and in order: no stride") {
  auto l = vector_loop(13, 176, 0, 768);
  l.fused = 24;
  l.chains = 24;
  kernel k(0.7e-3, l, 1.8 * MB, 0.6 * MB, 113e6);
  k.with("callgrind.l1_traffic_ratio", 15, provenance::simulated).with("experiment.cached_reads_time", 87);
  const auto found = k.findings();
  CHECK_FALSE(find(found, bottleneck::strided_access));
  for (const auto& f : found) CHECK(f.confidence < 0.5);
  k.p.metrics[2].value = 80; // samples.strided_share
  CHECK(find(k.findings(), bottleneck::strided_access));
}

TEST_CASE("a sum that is kept in memory runs once for each input, not once for each result") {
  auto l = vector_loop(3, 96, 32);
  kernel k(1e-3, l, 4 * MB, 4096);
  k.in.current = &k.p;
  k.in.limits = &k.limits;
  CHECK(trips_of(l, k.in, 1e-3) == Approx(4 * MB / 96).epsilon(0.01));
}

TEST_CASE("threads that write into one line are found where one of them alone says nothing") {
  kernel k(700e-6, vector_loop(3, 96, 32), 4 * MB, 4096);
  k.in.threads = k.limits.threads = 2;
  k.in.source = "#pragma omp parallel num_threads(2)\n{ const int t = omp_get_thread_num(); }";
  k.with("samples.library_share", 2).with("software.cpus_utilized", 1.95).with("software.thread_imbalance", 1).with("experiment.cached_reads_time", 80);
  const auto found = k.findings();
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().what == bottleneck::false_sharing);
  CHECK(gain(found, bottleneck::false_sharing) > 3);
}

TEST_CASE("memory that the C library copies beside the kernel's loops is a pass of its own; a kernel that only copies is none") {
  kernel k(20e-3, vector_loop(2, 128, 64), 96 * MB, 32 * MB);
  k.p.loops.front().share = 0.45;
  k.with("samples.library_share", 30).with("samples.moving_share", 30);
  const auto found = k.findings();
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().what == bottleneck::too_many_passes);
  CHECK(gain(found, bottleneck::too_many_passes) == Approx(20e-3 / (96 * MB / 10e9 + 32 * MB / 64 * 2 / 4e9)).epsilon(0.01)); // its bytes once, and its own loop
  k.p.loops.front().share = 0.02;
  CHECK_FALSE(find(k.findings(), bottleneck::too_many_passes));
}

TEST_CASE("traffic of loops that go in order is passes, however much it is; single elements that jump are a stride") {
  kernel k(550e-6, vector_loop(10, 192, 64), 4 * MB, 2 * MB);
  k.with("callgrind.l1_traffic_ratio", 5, provenance::simulated).with("experiment.cached_time", 60);
  CHECK(confidence(k.findings(), bottleneck::too_many_passes) > 0.3);
  CHECK_FALSE(find(k.findings(), bottleneck::strided_access));
  k.p.loops.front().vector_share = 0;
  CHECK_FALSE(find(k.findings(), bottleneck::too_many_passes));
  CHECK(find(k.findings(), bottleneck::strided_access));
}

TEST_CASE("the divider's time is this machine's, where it was measured") {
  // A loop with 34% of the time that divides three times; the model's divider takes 10 cycles for each, this one 5: 30 cycles a trip would be longer than was measured.
  auto first = vector_loop(16, 64, 64, 448), dividing = vector_loop(30, 64, 64, 48);
  first.share = 0.4;
  dividing.share = 0.34;
  dividing.divides = 3;
  dividing.line = 12;
  kernel k(1.7e-3, first, 16 * MB, 8 * MB);
  k.p.loops.push_back(dividing);
  k.with("experiment.cached_time", 82);
  const auto of_line_12 = [&] {
    const auto table = table_of(k.in);
    return *std::find_if(table.phases.begin(), table.phases.end(), [](const time_phase& p) { return p.line == 12; });
  };
  REQUIRE_FALSE(k.findings().empty());
  CHECK(of_line_12().by == bound::unknown); // by the model it would take longer than it does
  k.limits.divide_cycles = 5;
  const auto found = k.findings();
  CHECK(of_line_12().by == bound::divider);
  REQUIRE(find(found, bottleneck::divider_bound));
  CHECK(find(found, bottleneck::divider_bound)->line == 12);
  CHECK(gain(found, bottleneck::divider_bound) > 1.1);
  CHECK(gain(found, bottleneck::divider_bound) < 1 / (1 - 0.34));
}

TEST_CASE("how often a loop runs is not read from a few results beside many inputs") {
  auto l = vector_loop(54, 260, 4, 64);
  kernel k(65e-6, l, 4 * MB, 2048);
  k.in.current = &k.p;
  k.in.limits = &k.limits;
  CHECK(trips_of(l, k.in, 65e-6) == 0); // by the inputs 15,000, which would take 200 us; by the results 512
}

TEST_CASE("what is promised is at the speed of as many bytes as are timed in turn") {
  kernel k(6e-3, vector_loop(4, 64, 0), 8 * MB, 4096);
  const auto least = place_on_roofline(6e-3, {0, 8 * MB, 4096}, k.limits);
  CHECK(least.likely_seconds == least.attainable_seconds);
  k.limits.set_bytes = {4 << 20, 16 << 20, 64 << 20};
  k.limits.set_copy_gbs = k.limits.set_read_gbs = {50, 40, 10};
  const auto likely = place_on_roofline(6e-3, {0, 8 * MB, 4096}, k.limits); // four inputs: 32 MB, between 40 and 10 GB/s
  CHECK(likely.attainable_seconds == least.attainable_seconds);
  CHECK(likely.likely_seconds > 8 * MB / 40e9);
  CHECK(likely.likely_seconds < 8 * MB / 10e9);
  CHECK(place_on_roofline(1e-3, {0, 32 * MB, 4096}, k.limits).likely_seconds == Approx(32 * MB / 10e9).epsilon(0.01));
  CHECK(place_on_roofline(1e-3, {0, 0.1 * MB, 64}, k.limits).likely_seconds == place_on_roofline(1e-3, {0, 0.1 * MB, 64}, k.limits).attainable_seconds); // all in L2
}

TEST_CASE("single elements that no longer wait become vectors") {
  auto l = vector_loop(4, 4, 0, 1);
  l.vector_bits = 0;
  l.vector_share = 0;
  l.least_cycles = 1;
  l.chains = l.chain_operations = 1;
  kernel k(1e-3, l, 4 * MB, 4096);
  k.with("experiment.cached_time", 98);
  CHECK(gain(k.findings(), bottleneck::dependency_chain) > 8); // 4 by the chain alone
}

TEST_CASE("a loop that takes none of the time is not told to become vectors") {
  auto l = vector_loop(1, 0, 0, 0);
  l.vector_bits = 0;
  l.vector_share = -1;
  l.calls = 1;
  l.share = 0.01;
  kernel k(450e-6, l, 8 * MB, 4 * MB);
  k.with("hot_loop.calls", 1, fixed).with("samples.library_share", 0).with("samples.outside_loops_share", 99);
  k.without("hot_loop.vector_share");
  CHECK(confidence(k.findings(), bottleneck::not_vectorized) < 0.5); // its own function does the work, in straight code
}
