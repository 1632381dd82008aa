// Where the time goes, what a finding promises, and that both are right: the cases that misled a model in a trial.
#include "diagnosis/conductor.hpp"
#include "tests/diagnosis/refused.hpp"
#include "diagnosis/what_limits.hpp"

#include <catch2/catch.hpp>
#include <cmath>

using namespace pragma;

namespace {
constexpr auto fixed = provenance::static_analysis;

/// L1 32 KiB, L2 512 KiB, L3 16 MiB; copying 200, 100, 50, 10 GB/s; 3 GHz, two 256-bit multiply-adds a cycle: 96 GFLOP/s.
machine_limits machine() {
  machine_limits m;
  m.simd_bits = 256;
  m.cache_bytes = {32 << 10, 512 << 10, 16 << 20};
  m.copy_gbs = {200, 100, 50, 10};
  m.read_gbs = {200, 100, 50, 12};
  m.peak_gflops = 96;
  m.clock_ghz = 3;
  return m;
}

/// The inner loop of a product, 256-bit: `fused` multiply-adds, each with its own loads where they are not shared.
loop_cost product_loop(int fused, double cycles, double loads) {
  loop_cost l;
  l.function = "pragma_kernel";
  l.line = 20;
  l.how = provenance::measured;
  l.share = 0.95;
  l.cycles = cycles;
  l.least_cycles = cycles * 0.97;
  l.flops = fused * 16;
  l.loaded_bytes = loads * 32;
  l.instructions = static_cast<int>(fused + loads) + 3;
  l.vector_bits = 256;
  l.vector_share = 100;
  l.fused = fused;
  l.chains = fused;
  return l;
}

struct kernel {
  profile p;
  machine_limits limits = machine();
  diagnosis_input in;

  kernel(double seconds, std::vector<loop_cost> loops, double bytes, double flops, double written) {
    p.time.candidate_seconds = seconds;
    p.time.speedup = {1, 0.99, 1.01};
    p.loops = std::move(loops);
    in.bytes = bytes;
    in.flops = flops;
    in.written_bytes = written;
    if (p.loops.empty()) return;
    const auto& l = p.loops.front();
    metric("samples.count", 2000, provenance::measured);
    metric("hot_loop.instructions", l.instructions);
    metric("hot_loop.vector_bits", l.vector_bits);
    if (l.vector_share >= 0) metric("hot_loop.vector_share", l.vector_share);
    metric("llvm_mca.cycles_per_iteration", l.cycles);
    metric("llvm_mca.block_rthroughput", l.least_cycles);
  }
  void metric(const std::string& name, double value, provenance how = fixed, const std::string& unit = "") { p.metrics.push_back({name, value, unit, "test", how, ""}); }
  const diagnosis_input& input() {
    in.current = &p;
    in.limits = &limits;
    return in;
  }
  std::vector<finding> findings() { return diagnose(input()); }
  time_table table() { return table_of(input()); }
};

const finding* find(const std::vector<finding>& found, bottleneck what) {
  for (const auto& f : found)
    if (f.what == what) return &f;
  return nullptr;
}

std::string text(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& l : lines) all += l + "\n";
  return all;
}

std::string all_remedies(const finding& f) { return text(f.remedies); }

/// 2 * 1024^3 FLOP over 12 MiB; 32 flops a multiply-add loop of 8: 1.05e7 trips of 12 cycles are 42 ms.
kernel product(double seconds, double cycles = 12, const std::string& port = "ICXPort2") {
  auto loop = product_loop(8, cycles, 8);
  loop.port = port;
  kernel k(seconds, {loop}, 12 << 20, 2.0 * 1024 * 1024 * 1024, 4 << 20);
  k.metric("llvm_mca.top_port_pressure", 99, fixed, "%");
  k.metric("llvm_mca.resource_pressure", 95, fixed, "%");
  return k;
}

iteration_record passed(int number, bool best, interval against_best, const std::string& idea = "idea") {
  iteration_record r;
  r.number = number;
  r.verdict.stage = verdict_stage::passed;
  r.new_best = best;
  r.against_best = against_best;
  r.code.attempt = number;
  r.code.source = "source " + std::to_string(number);
  r.code.rationale = idea;
  r.code.has_profile = true;
  r.code.measured.time.speedup = {2, 1.9, 2.1};
  return r;
}

} // namespace

TEST_CASE("the table says what the loop as written predicts of the time, and what is left") {
  auto k = product(70e-3);
  const auto t = k.table();
  REQUIRE(t.phases.size() == 2);
  const auto& loop = t.phases[0];
  CHECK(loop.line == 20);
  CHECK(t.share(loop) == Approx(0.95));
  CHECK(loop.core_seconds == Approx(2.0 * 1024 * 1024 * 1024 / 128 * 12 / 3e9).epsilon(0.01)); // 67 ms
  CHECK(loop.by == bound::execution_units);
  CHECK(loop.least_seconds == Approx(2.0 * 1024 * 1024 * 1024 / 96e9).epsilon(0.01));
  CHECK(t.phases[1].phase == "rest of the kernel");
  double sum = 0;
  for (const auto& p : t.phases) sum += p.seconds;
  CHECK(sum == Approx(t.seconds));
  CHECK(t.unexplained_seconds == Approx(70e-3 * 0.05).epsilon(0.05));
  const auto lines = text(table_lines(t));
  CHECK(lines.find("llvm-mca predicts 67.1 ms as written, with all data in L1") != std::string::npos);
  CHECK(lines.find("nothing explains") != std::string::npos);
}

TEST_CASE("what an experiment took away stands in the table, and bytes that hardly anything waits for bound nothing") {
  profile p;
  p.time.candidate_seconds = 1e-3;
  loop_cost l;
  l.line = 7;
  l.share = 1;
  l.how = provenance::measured;
  l.cycles = l.least_cycles = 4;
  l.instructions = 8;
  l.vector_bits = 256;
  l.trips = 0.55e6; // 0.73 ms at 3 GHz
  p.loops = {l};
  p.metrics = {{"samples.count", 1000, "count", "cpu-clock", provenance::measured, ""}, {"callgrind.l1_traffic_ratio", 90, "ratio", "callgrind", provenance::simulated, ""},
               {"experiment.cached_time", 90, "%", "experiment", provenance::measured, "in L1: 0.9 ms instead of 1 ms"},
               {"experiment.ones_time", 100, "%", "experiment", provenance::measured, "ones: 1 ms instead of 1 ms"}};
  const auto limits = machine();
  diagnosis_input in;
  in.current = &p;
  in.limits = &limits;
  in.bytes = 1 << 20;
  in.written_bytes = 1 << 19;
  auto table = table_of(in);
  REQUIRE(table.phases.size() == 1);
  CHECK(table.phases[0].move_seconds > table.phases[0].core_seconds); // by the simulated traffic, which the experiment contradicts
  CHECK(table.phases[0].by == bound::execution_units);
  CHECK(table.tried == std::vector<std::string>{"in L1: 0.9 ms instead of 1 ms"});
  CHECK(text(table_lines(table)).find("tried (measured): in L1") != std::string::npos);
  p.metrics.erase(p.metrics.begin() + 2, p.metrics.end());
  table = table_of(in);
  CHECK(table.phases[0].by == bound::bandwidth);
  CHECK(table.tried.empty());
}

TEST_CASE("a loop that is unrolled by two is not told to have got worse") {
  auto before = passed(1, true, {}), now = passed(2, false, {1.0, 0.99, 1.01});
  const auto measured = [](double times) {
    std::vector<metric> all;
    all.push_back({"llvm_mca.cycles_per_iteration", 30.6 * times, "cycle", "llvm-mca", fixed, ""});
    all.push_back({"hot_loop.instructions", 40 * times, "count", "objdump", fixed, ""});
    all.push_back({"llvm_mca.flops_per_cycle", 20, "FLOP/cycle", "llvm-mca", fixed, ""});
    return all;
  };
  before.code.measured.metrics = measured(1);
  now.code.measured.metrics = measured(56.35 / 30.6);
  const auto lines = text(explain(now, &before, judgement::same));
  CHECK(lines.find("cycles_per_iteration rose") == std::string::npos);
  CHECK(lines.find("hot_loop.instructions rose") == std::string::npos);
  now.code.measured.metrics[2].value = 10;
  CHECK(text(explain(now, &before, judgement::same)).find("llvm_mca.flops_per_cycle fell from") != std::string::npos);
}

TEST_CASE("a product is not advised a polynomial of lower degree, and a full load port asks for fewer loads") {
  auto k = product(70e-3);
  const auto found = k.findings();
  const auto* ports = find(found, bottleneck::port_pressure);
  REQUIRE(ports);
  CHECK(found.front().what == bottleneck::port_pressure);
  CHECK(all_remedies(*ports).find("polynomial") == std::string::npos);
  CHECK(ports->remedies.front().find("Load less") == 0);
  CHECK(all_remedies(*ports).find("wider vectors") == std::string::npos); // 256 bits of 256
  CHECK(all_remedies(*ports).find("fused") == std::string::npos);         // they are
  CHECK(ports->seconds_without < ports->seconds);
  CHECK(ports->seconds_without > 20e-3); // never below what the peak allows
  k.in.contracts = false; // where no result shares what another one loads, the same is a limit and no fault
  k.metric("samples.count", 1500, provenance::measured);
  const auto limit = k.findings();
  const auto* alone = find(limit, bottleneck::port_pressure);
  CHECK((alone && alone->confidence < 0.5 * ports->confidence && all_remedies(*alone).find("Load less") == std::string::npos));
}

TEST_CASE("an element-wise function may have a polynomial of lower degree") {
  loop_cost l;
  l.line = 8;
  l.share = 0.98;
  l.how = provenance::measured;
  l.cycles = 20;
  l.least_cycles = 19;
  l.flops = 240; // 30 operations an element
  l.loaded_bytes = l.stored_bytes = 32;
  l.vector_bits = 256;
  l.vector_share = 100;
  l.instructions = 40;
  l.chains = 0;
  l.fused = 10;
  kernel k(1.0e-3, {l}, 8 << 20, 2 << 20, 4 << 20); // 131,072 trips of 20 cycles: 0.87 ms
  k.metric("llvm_mca.resource_pressure", 95, fixed, "%");
  k.metric("llvm_mca.register_dependencies", 70, fixed, "%");
  const auto found = k.findings();
  const auto* ports = find(found, bottleneck::port_pressure);
  REQUIRE(ports);
  CHECK(all_remedies(*ports).find("polynomial of lower degree") != std::string::npos);
  CHECK_FALSE(find(found, bottleneck::dependency_chain)); // no result goes from one trip to the next
}

TEST_CASE("no chain is claimed where no result goes from one trip to the next") {
  auto chain = product_loop(1, 4, 2);
  chain.least_cycles = 1;
  chain.chains = 1;
  kernel with(1.3e-3, {chain}, 12 << 20, 16e6 * 0.9, 4);
  with.metric("llvm_mca.register_dependencies", 90, fixed, "%");
  const auto found = with.findings();
  REQUIRE(find(found, bottleneck::dependency_chain));
  CHECK(find(found, bottleneck::dependency_chain)->remedies.front().find("(now 1)") != std::string::npos);
  chain.chains = 0;
  kernel without(1.3e-3, {chain}, 12 << 20, 16e6 * 0.9, 4);
  without.metric("llvm_mca.register_dependencies", 90, fixed, "%");
  CHECK_FALSE(find(without.findings(), bottleneck::dependency_chain));
  chain.chains = 10;
  kernel many(1.3e-3, {chain}, 12 << 20, 16e6 * 0.9, 4);
  many.metric("llvm_mca.register_dependencies", 90, fixed, "%");
  const auto of_many = many.findings();
  if (const auto* f = find(of_many, bottleneck::dependency_chain)) CHECK(all_remedies(*f).find("accumulators") == std::string::npos);
}

TEST_CASE("of bandwidth and units the one whose budget fills the time comes first") {
  // 8 MiB through L3 need 0.17 ms of 0.24 ms (70%): the rule for bandwidth speaks. The loop as written needs 0.23 ms of it.
  auto loop = product_loop(4, 21, 4);
  loop.stored_bytes = 32;
  loop.port = "ICXPort0";
  kernel k(0.24e-3, {loop}, 8 << 20, 2 << 20, 1 << 20); // 32,768 trips of 21 cycles
  k.metric("llvm_mca.resource_pressure", 95, fixed, "%");
  k.metric("llvm_mca.top_port_pressure", 99, fixed, "%");
  const auto t = k.table();
  REQUIRE(t.phases.front().core_seconds == Approx(0.229e-3).epsilon(0.01));
  CHECK(t.phases.front().by == bound::execution_units);
  const auto found = k.findings();
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().what == bottleneck::port_pressure);
  // The same kernel with a third of the arithmetic: now the bytes are what takes the time.
  k.p.loops.front().cycles = k.p.loops.front().least_cycles = 7;
  CHECK(k.table().phases.front().by == bound::bandwidth);
  CHECK(k.findings().front().what == bottleneck::memory_bandwidth_bound);
}

TEST_CASE("what the model does not reach is said to be unexplained") {
  auto k = product(700e-3);
  const auto t = k.table();
  CHECK(t.phases.front().by == bound::unknown);
  CHECK(t.unexplained_seconds > 0.85 * t.seconds);
  const auto found = k.findings();
  if (!found.empty()) CHECK(found.front().confidence < explaining_confidence);
}

TEST_CASE("trips that contradict the time are not believed") {
  auto k = product(20e-3);
  CHECK(k.table().phases.front().core_seconds == 0);
  CHECK(k.table().phases.front().by == bound::unknown);
}

TEST_CASE("the share of the roofline never falls when speed rises") {
  const auto m = machine();
  double last = 0;
  for (double seconds = 100e-3; seconds > 1e-4; seconds *= 0.9) {
    const auto point = place_on_roofline(seconds, {2.0 * 1024 * 1024 * 1024, 12 << 20, 4 << 20}, m);
    CHECK(point.share > last);
    CHECK(point.needed_share <= point.share);
    last = point.share;
  }
  const auto causal = place_on_roofline(10e-3, {2.0 * 1024 * 1024 * 1024, 12 << 20, 4 << 20}, m); // needs 22 ms as written
  CHECK(causal.skips_work);
  CHECK(causal.share == Approx(2.237).epsilon(0.01));
  CHECK(causal.needed_share < 0.1);
  CHECK(roofline_text(causal).find("work as the reference writes it") != std::string::npos);
  CHECK(roofline_text(place_on_roofline(50e-3, {2.0 * 1024 * 1024 * 1024, 12 << 20, 4 << 20}, m)) == "45% of the measured peak FLOP/s");
  auto r = passed(1, true, {});
  r.code.measured.metrics = {{"roofline_share", 223.7, "%", "timer", provenance::measured, ""}};
  CHECK(stop_reason({}, {r}, 0).empty()); // and that is no reason to stop
}

TEST_CASE("page faults are a phase of their own, with what is left without them") {
  auto loop = product_loop(4, 8, 4);
  loop.share = 0.6;
  kernel k(1e-3, {loop}, 1 << 20, 0, 4);
  k.metric("samples.system_share", 35, provenance::measured, "%");
  k.metric("software.page_faults", 300, provenance::measured, "count");
  const auto found = k.findings();
  const auto* f = find(found, bottleneck::redundant_work);
  REQUIRE(f);
  CHECK(f->seconds_without == Approx(0.65e-3));
  CHECK(text(table_lines(k.table())).find("operating system: 350 us, bound by operating system") != std::string::npos);
}

TEST_CASE("access against the order of memory promises what its order would give, not only the traffic") {
  loop_cost l;
  l.line = 6;
  l.share = 0.99;
  l.how = provenance::measured;
  l.cycles = 4;
  l.least_cycles = 1;
  l.flops = 1;
  l.loaded_bytes = 4;
  l.instructions = 4;
  l.vector_share = 0;
  l.chains = 1;
  kernel k(3.78e-3, {l}, 4 << 20, 1 << 20, 4096); // a million scalar trips
  k.metric("callgrind.l1_traffic_ratio", 16, provenance::simulated, "ratio");
  k.metric("callgrind.Dr", 1 << 20, provenance::simulated);
  k.metric("callgrind.D1mr", 1 << 20, provenance::simulated);
  const auto found = k.findings();
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().what == bottleneck::strided_access);
  CHECK(found.front().seconds / found.front().seconds_without > 15); // as measured on such a kernel: 33
}

TEST_CASE("a finding that promises next to nothing is held for less sure") {
  auto loop = product_loop(8, 5, 2);
  loop.vector_bits = 128;
  loop.flops = 64;
  loop.share = 0.06;
  loop.trips = 1e5;
  auto other = product_loop(8, 5, 2);
  other.share = 0.9;
  other.line = 40;
  kernel k(10e-3, {loop, other}, 12 << 20, 1e6, 4);
  const auto few = k.findings();
  k.p.loops.front().share = 0.95;
  k.p.loops.pop_back();
  k.p.loops.front().trips = 5.5e6;
  const auto much = k.findings();
  REQUIRE(find(much, bottleneck::not_vectorized));
  const auto* weak = find(few, bottleneck::not_vectorized);
  CHECK((weak ? weak->confidence : 0) < 0.6 * find(much, bottleneck::not_vectorized)->confidence);
}

TEST_CASE("sentences compare side by side") {
  auto best = passed(2, true, {1.5, 1.4, 1.6}), now = passed(3, true, {1.08, 1.06, 1.10});
  best.code.measured.time.speedup = {12.17, 12.0, 12.3};
  now.code.measured.time.speedup = {12.19, 12.0, 12.3};
  auto lines = text(explain(now, &best, judgement::better));
  CHECK(lines.find("+8.0%") != std::string::npos);
  CHECK(lines.find("12.17x to 12.19x") == std::string::npos);
  best.code.measured.time.speedup.value = 6.46;
  now.code.measured.time.speedup.value = 7.76;
  now.against_best = {1.0, 0.97, 1.02};
  lines = text(explain(now, &best, judgement::same));
  CHECK(lines.find("about the same: 1.00x the speed of the best version, side by side [0.97, 1.02]") != std::string::npos);
  CHECK(lines.find("6.46x before") == std::string::npos);
}

TEST_CASE("what a finding promised stands beside what following it brought") {
  auto best = passed(1, true, {});
  finding f;
  f.what = bottleneck::dependency_chain;
  f.confidence = 0.6;
  f.seconds = 3e-3;
  f.seconds_without = 2e-3;
  f.remedies = {"more accumulators"};
  best.findings = {f};
  auto now = passed(2, false, {1.02, 0.99, 1.05});
  now.code.answers = "dependency_chain";
  CHECK(text(explain(now, &best, judgement::same)).find("It set out to remove: dependency chain. Predicted 1.50x, brought 1.02x") != std::string::npos);
  const std::vector<iteration_record> history = {best, now};
  const auto past = past_attempts(history);
  REQUIRE(past.size() == 2);
  CHECK(past[1].predicted == Approx(1.5));
  CHECK(past[1].verdict == "no difference");
  CHECK(past[1].against_best.high == 1.05);
}

TEST_CASE("the brief's reasoning says what no other part of it does") {
  auto best = passed(1, true, {}), now = passed(2, true, {1.5, 1.4, 1.6});
  auto k = product(70e-3);
  now.code.measured = k.p;
  now.findings = k.findings();
  now.table = k.table();
  now.reasoning = explain(now, &best, judgement::better);
  const std::vector<iteration_record> history = {best, now};
  const auto told = text(make_brief(3, &history[1], &history[0], "cpu", history).reasoning);
  CHECK(told.find("1.50x the speed of the best version, side by side") != std::string::npos);
  CHECK(told.find("loop at line 20") == std::string::npos);
  CHECK(told.find("port pressure") == std::string::npos);
  CHECK(told.find("Historical best") == std::string::npos);
  CHECK(text(now.reasoning).find("loop at line 20") != std::string::npos); // the trace for people has it
}

TEST_CASE("advice that brought nothing does not come again") {
  auto first = passed(1, true, {}), second = passed(2, false, {0.99, 0.97, 1.01});
  finding f;
  f.what = bottleneck::memory_bandwidth_bound;
  f.confidence = 0.8;
  f.remedies = {"prefetch", "several streams"};
  first.findings = second.findings = {f};
  const std::vector<iteration_record> history = {first, second};
  CHECK(tried_in_vain(history) == std::set<std::string>{"prefetch"});
  const auto b = make_brief(3, &history[1], &history[0], "cpu", history, 15);
  CHECK(b.actions == std::vector<std::string>{"several streams"});
  CHECK(b.findings.front().remedies == std::vector<std::string>{"several streams"});
  CHECK(b.attempts_left == 13);
  // A new best is no failure of the advice.
  auto better = history;
  better[1].new_best = true;
  CHECK(tried_in_vain(better).empty());
}

TEST_CASE("all attempts are in the brief, with tolerance and worst error") {
  std::vector<iteration_record> history = {passed(1, true, {}, "plain loops"), passed(2, true, {1.9, 1.8, 2.0}, "packs the operand")};
  iteration_record bad;
  bad.number = 3;
  bad.verdict = test::refused("build", "compiling the candidate failed");
  history.push_back(bad);
  history.push_back(passed(4, false, {0.9, 0.88, 0.92}, "unrolls by two"));
  history.back().verdict.tolerance = 1e-4;
  history.back().verdict.worst_error = 0.25;
  const auto b = make_brief(5, &history[3], &history[1], "cpu", history, 6);
  REQUIRE(b.past.size() == 4);
  CHECK(b.past[1].idea == "packs the operand");
  CHECK(b.past[1].verdict == "new best");
  CHECK(b.past[2].verdict == "failed at build: compiling the candidate failed");
  CHECK(b.past[3].verdict == "slower");
  CHECK(b.tolerance == 1e-4);
  CHECK(b.worst_error == 0.25);
  CHECK(b.attempts_left == 2);
}

TEST_CASE("wrong indices are told from borders, named, and recognised when they come again") {
  const std::string reason = "out1[0, 3] is 5, expected 9 (tiny values, seed 3); 3 of 8192 elements are wrong";
  const auto hints = repairs_for(test::refused("compare", reason));
  REQUIRE_FALSE(hints.empty());
  CHECK(hints.front().cause.find("indices are wrong") != std::string::npos);
  for (const auto& h : hints) {
    CHECK(h.cause.find("remainder loop") == std::string::npos);
    CHECK(h.remedy.find("expm1") == std::string::npos);
  }
  iteration_record first;
  first.number = 2;
  first.verdict = test::refused("compare", reason);
  mismatch wrong;
  wrong.input_set = "tiny values, seed 3";
  wrong.output = "out1";
  wrong.wrong_elements = 2;
  wrong.judge = "the float64 oracle";
  wrong.elements = {"[0, 3] is 5, expected 9; the value at the candidate's index is 1e-9, the best is 1.1e-9, 1e-10 apart", "[7, 1] is 2, expected 3"};
  first.verdict.mismatches = {wrong};
  auto again = first;
  again.number = 3;
  again.verdict.mismatches[0].input_set = "tiny values, seed 8";
  again.verdict.mismatches[0].elements[1] = "[7, 1] is 4, expected 3";
  CHECK(same_elements(again, &first).find("The same elements are wrong as in attempt 2") == 0);
  CHECK(same_elements(again, nullptr).empty());
  const std::vector<iteration_record> history = {first, again};
  const auto b = make_brief(4, &history[1], nullptr, "cpu", history);
  CHECK(b.failure.find("All wrong elements of out1 (tiny values, seed 8), judged by the float64 oracle") != std::string::npos);
  CHECK(b.failure.find("1e-10 apart") != std::string::npos);
  CHECK(b.repairs.front().cause.find("The same elements") == 0);
  auto others = again;
  others.verdict.mismatches[0].elements[1] = "[7, 2] is 4, expected 3";
  CHECK(same_elements(others, &first).empty());
}

TEST_CASE("narrow vectors are no finding on a core whose peak does not grow with their width") {
  auto loop = product_loop(8, 8, 2);
  kernel k(45e-3, {loop}, 12 << 20, 2.0 * 1024 * 1024 * 1024, 4 << 20);
  k.limits.simd_bits = 512; // 32 FLOP a cycle all the same: the widest vectors are split
  CHECK_FALSE(find(k.findings(), bottleneck::not_vectorized));
  k.limits.peak_gflops = 192;
  const auto found = k.findings();
  REQUIRE(find(found, bottleneck::not_vectorized));
  k.in.flags = {"-O3", "-march=native", "-mprefer-vector-width=512"};
  const auto with_flag = k.findings();
  REQUIRE(find(with_flag, bottleneck::not_vectorized));
  CHECK(all_remedies(*find(with_flag, bottleneck::not_vectorized)).find("-mprefer-vector-width") == std::string::npos); // fulfilled already
  CHECK(all_remedies(*find(found, bottleneck::not_vectorized)).find("-mprefer-vector-width=512") != std::string::npos);
}
