// What a call would take without its bottleneck: each case is a kernel of bench/diagnosis_truth whose gain had been promised wrongly, with round figures.
#include "made_up_kernel.hpp"

#include <catch2/catch.hpp>

using namespace pragma;
using namespace made_up;

namespace {

/// Single elements, one after the other.
loop_cost scalar_loop(double cycles, double loaded, double stored) {
  auto l = vector_loop(cycles, loaded, stored, 1);
  l.vector_bits = 0;
  l.vector_share = 0;
  return l;
}

} // namespace

TEST_CASE("nothing is promised below what the bytes took in order beside the call") {
  auto l = scalar_loop(4, 4, 0);
  l.least_cycles = 1;
  l.chains = l.chain_operations = 1;
  kernel k(1e-3, l, 4 * MB, 4096);
  k.with("experiment.cached_time", 98);
  const double by_limits = gain(k.findings(), bottleneck::dependency_chain);
  k.with("experiment.in_order_time", 20); // 200 us: pages, neighbours, a cache that others use; 80 by the bandwidth measured at another time
  const auto found = k.findings();
  CHECK(gain(found, bottleneck::dependency_chain) < by_limits);
  CHECK(gain(found, bottleneck::dependency_chain) == Approx(5).epsilon(0.01));
  CHECK(by_limits < 12); // bandwidths that were measured at the machine's best: the arithmetic's time is added
  k.p.metrics.back().value = 3; // quicker than the limits allow: those count
  CHECK(gain(k.findings(), bottleneck::dependency_chain) == Approx(1000 / 80.0).epsilon(0.01));
}

TEST_CASE("what stores that read lines cost is what streaming ones took beside the call") {
  kernel k(12e-3, vector_loop(2, 64, 64), 64 * MB, 32 * MB);
  k.with("experiment.cached_time", 20).with("experiment.cached_reads_time", 60);
  const double by_formula = gain(k.findings(), bottleneck::store_bandwidth_bound);
  k.with("experiment.in_order_time", 60);
  CHECK(gain(k.findings(), bottleneck::store_bandwidth_bound) == Approx(1 / 0.6).epsilon(0.01));
  CHECK(by_formula == Approx(1 / (1 - 0.8 / 3)).epsilon(0.01));
}

TEST_CASE("loads that wait because they jump are promised their order") {
  kernel k(4e-3, scalar_loop(1.6, 4, 4), 8 * MB, 4 * MB);
  k.with("experiment.cached_time", 80).with("callgrind.l1_traffic_ratio", 8, provenance::simulated).with("experiment.in_order_time", 10);
  k.without("samples.strided_share");
  k.without("samples.far_share");
  k.with("samples.strided_share", 50).with("samples.far_share", 50);
  const auto found = k.findings();
  REQUIRE(find(found, bottleneck::memory_latency_bound));
  CHECK(gain(found, bottleneck::memory_latency_bound) > 7); // 400 us for the bytes, 20 to 50 for the arithmetic in vectors; with eight times the bytes 3
}

TEST_CASE("a loop is scalar whose vectors are its remainder; in a product the arithmetic is what is left") {
  auto l = vector_loop(64, 0, 0, 32);
  l.vector_share = 6;
  l.fused = 0;
  kernel k(48e-3, l, 1.8 * MB, 0.6 * MB, 113e6);
  k.with("experiment.cached_time", 99);
  k.without("hot_loop.vector_share");
  k.with("hot_loop.vector_share", 6, fixed);
  CHECK(gain(k.findings(), bottleneck::not_vectorized) > 30); // 0.44 ms at the peak; nothing was promised
}

TEST_CASE("vectors of part of the width hide their waiting, and full ones would") {
  auto l = vector_loop(14, 16, 16, 108);
  l.vector_bits = 128;
  l.fused = 10;
  kernel k(400e-6, l, 4 * MB, 2 * MB);
  k.with("experiment.cached_time", 98);
  CHECK(gain(k.findings(), bottleneck::not_vectorized) == Approx(4).epsilon(0.05)); // 100 us; the bytes' 80 lie beside them
}

TEST_CASE("calls of scalar functions become a usual function's operations") {
  auto l = vector_loop(1, 4, 0, 0);
  l.vector_bits = 0;
  l.vector_share = -1;
  l.calls = 1;
  l.share = 0.01;
  const auto promised = [&](double seconds) {
    kernel k(seconds, l, 4 * MB, 2 * MB);
    k.with("hot_loop.calls", 1, fixed).with("samples.library_share", 99).with("experiment.cached_time", 80);
    k.without("hot_loop.vector_share");
    return gain(k.findings(), bottleneck::not_vectorized);
  };
  // 0.5 million results of 34 operations at 128 G a second: 133 us, and 80 us for the bytes.
  CHECK(promised(11e-3) > 40);
  CHECK(promised(1e-3) < 8); // a sixteenth of its time, which is less
}

TEST_CASE("a vector that is put together in registers needs neither the narrow stores nor the wait for them") {
  auto l = vector_loop(17, 64, 64);
  l.instructions = 40;
  kernel k(100e-6, l, 1 * MB, 0.5 * MB);
  k.with("hot_loop.blocked_loads", 1, fixed).with("experiment.cached_time", 99);
  // 16 of 40 instructions load an element, 16 store it: 8 are left, 2 cycles instead of 17, and 10 us for the bytes.
  CHECK(gain(k.findings(), bottleneck::store_forwarding) == Approx(100 / (10 + 8192 * 2 / 4e3 * 0.5)).epsilon(0.15));
}

TEST_CASE("threads that no longer share lines, or wait, take what the core and the bytes need") {
  kernel k(700e-6, vector_loop(3, 96, 32), 4 * MB, 4096);
  k.in.threads = k.limits.threads = 2;
  k.in.source = "#pragma omp parallel num_threads(2)\n{ const int t = omp_get_thread_num(); }";
  k.with("samples.library_share", 2).with("software.cpus_utilized", 1.95).with("software.thread_imbalance", 1).with("experiment.cached_reads_time", 50);
  CHECK(gain(k.findings(), bottleneck::false_sharing) > 5); // 16 us of the core, 80 us for the bytes, 14 us of the library's; by the fold half of the time stayed

  kernel barriers(400e-6, vector_loop(16, 128, 64, 432), 4 * MB, 2 * MB);
  barriers.p.loops.front().share = 0.5;
  barriers.p.loops.front().fused = 10;
  barriers.in.threads = barriers.limits.threads = 2;
  barriers.in.source = "#pragma omp parallel num_threads(2)\n for (;;)\n#pragma omp for\n";
  barriers.with("samples.library_share", 38).with("samples.system_share", 12).with("software.cpus_utilized", 1.97).with("software.context_switches", 2)
      .with("experiment.cached_reads_time", 80).with("experiment.one_thread_time", 100);
  const auto found = barriers.findings();
  REQUIRE(find(found, bottleneck::thread_overhead));
  CHECK(gain(found, bottleneck::thread_overhead) > 2.5); // half of one thread's time would be 2
}

TEST_CASE("evenly divided work takes half of what one of two threads takes, where that was seen") {
  kernel k(160e-6, vector_loop(4, 256, 0, 64), 1 * MB, 1024);
  k.in.threads = k.limits.threads = 2;
  k.in.source = "#pragma omp parallel for num_threads(2)\n";
  k.with("software.cpus_utilized", 1.4).with("software.thread_imbalance", 1.4);
  CHECK(gain(k.findings(), bottleneck::load_imbalance) == Approx(2 / 1.4).epsilon(0.01));
  k.with("experiment.one_thread_time", 65); // with an idle processor that is woken in each call
  CHECK(gain(k.findings(), bottleneck::load_imbalance) == Approx(2 / 0.65).epsilon(0.01));
}

TEST_CASE("what the compiler makes of more leave is what a finding promises, and where it brings nothing the finding counts less") {
  auto chain = scalar_loop(4, 4, 0);
  chain.least_cycles = 1;
  chain.chains = chain.chain_operations = 1;
  kernel k(1e-3, chain, 4 * MB, 4096);
  k.with("experiment.cached_time", 98);
  const double by_model = gain(k.findings(), bottleneck::dependency_chain), sure = confidence(k.findings(), bottleneck::dependency_chain);
  k.with("experiment.freed_time", 97); // it does not know how: nothing is said
  CHECK(gain(k.findings(), bottleneck::dependency_chain) == Approx(by_model));
  CHECK(confidence(k.findings(), bottleneck::dependency_chain) == Approx(sure));
  k.p.metrics.back().value = 40;
  CHECK(gain(k.findings(), bottleneck::dependency_chain) == Approx(2.5).epsilon(0.01));
  CHECK(gain(k.findings(), bottleneck::not_vectorized) == Approx(2.5).epsilon(0.01));
  CHECK(confidence(k.findings(), bottleneck::dependency_chain) > sure);
  CHECK(find(k.findings(), bottleneck::dependency_chain)->remedies.front().find("-ffast-math and vectors of full width (-mprefer-vector-width): tried here, 1.00 ms become 400 us") != std::string::npos);

  auto divides = vector_loop(22, 64, 64, 64);
  divides.divides = 2;
  kernel d(300e-6, divides, 4 * MB, 2 * MB);
  d.with("hot_loop.divides", 2, fixed).with("experiment.cached_time", 95);
  const double before = confidence(d.findings(), bottleneck::divider_bound);
  REQUIRE(before > 0.5);
  const double fewer = gain(d.findings(), bottleneck::divider_bound);
  d.with("experiment.reciprocal_time", 30);
  CHECK(gain(d.findings(), bottleneck::divider_bound) == Approx(1 / 0.3).epsilon(0.01));
  d.p.metrics.back().value = 85; // a compiler makes divisions quicker, and never fewer
  CHECK(gain(d.findings(), bottleneck::divider_bound) == Approx(fewer));
  d.p.metrics.back().value = 99;
  CHECK(confidence(d.findings(), bottleneck::divider_bound) < 0.4 * before);

  auto doubles = vector_loop(8, 64, 64, 64);
  doubles.least_cycles = 7.5;
  doubles.widened = 2;
  kernel w(1e-3, doubles, 4 * MB, 2 * MB);
  w.with("experiment.cached_time", 95).with("samples.count", 1000).with("experiment.single_time", 40);
  CHECK(gain(w.findings(), bottleneck::port_pressure) == Approx(2.5).epsilon(0.01));
  const double costly = confidence(w.findings(), bottleneck::port_pressure);
  w.p.metrics.back().value = 99;
  CHECK(confidence(w.findings(), bottleneck::port_pressure) < costly);
}

TEST_CASE("a loop that calls a function of its own for each element is promised that function in vectors, and advised to let it in") {
  auto l = scalar_loop(1.3, 4, 4);
  l.calls = 1;
  l.share = 0.27;
  kernel k(3.2e-3, l, 8 * MB, 4 * MB);
  k.with("samples.outside_loops_share", 73).with("hot_loop.calls", 1, fixed).with("hot_loop.vector_share", 0, fixed).with("experiment.cached_time", 90).with("experiment.in_order_time", 16);
  const auto found = k.findings();
  REQUIRE(find(found, bottleneck::not_vectorized));
  CHECK(gain(found, bottleneck::not_vectorized) > 4);
  CHECK(find(found, bottleneck::not_vectorized)->remedies.front().find("into the loop") != std::string::npos);
  k.with("samples.library_share", 70); // the C library's, by what samples saw
  CHECK(find(k.findings(), bottleneck::not_vectorized)->remedies.front().find("expf") != std::string::npos);
}
