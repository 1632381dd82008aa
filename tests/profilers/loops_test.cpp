// Which loop takes the time, what one trip through it does, and which results it carries to the next.
#include "profilers/sources.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <functional>

using namespace pragma;
using namespace pragma::formats;

namespace {

/// A function whose instructions lie four bytes apart, from `first` on; lines "mnemonic operands", a jump names its target's index as "@2".
code_function function_of(const std::string& name, uint64_t first, const std::vector<std::string>& lines) {
  code_function f;
  f.name = name;
  for (size_t i = 0; i < lines.size(); ++i) {
    instruction one;
    one.address = first + 4 * i;
    one.file = "candidate.cpp";
    one.line = one.own_line = static_cast<int>(10 + i);
    const auto space = lines[i].find(' ');
    one.mnemonic = lines[i].substr(0, space);
    one.operands = space == std::string::npos ? "" : lines[i].substr(space + 1);
    if (const auto at = one.operands.find('@'); at != std::string::npos) one.target = first + 4 * std::stoul(one.operands.substr(at + 1));
    f.body.push_back(std::move(one));
  }
  return f;
}

std::vector<instruction> body_of(const std::vector<std::string>& lines) { return function_of("f", 0x1000, lines).body; }

} // namespace

TEST_CASE("a sum carries its accumulators, an element-wise loop nothing") {
  CHECK(carried_by(body_of({"vaddps (%rax),%zmm0,%zmm0", "add $0x40,%rax", "cmp %rdx,%rax", "jne @0"})).registers == 1);
  CHECK(carried_by(body_of({"vfmadd231ps (%rax),%ymm4,%ymm0", "vfmadd231ps 0x20(%rax),%ymm4,%ymm1", "add $0x40,%rax", "jne @0"})).registers == 2);
  CHECK(carried_by(body_of({"addss (%rax),%xmm0", "add $0x4,%rax", "jne @0"})).registers == 1);
  const auto element_wise = carried_by(body_of({"vmovups (%rax),%zmm1", "vmulps %zmm5,%zmm1,%zmm1", "vfmadd132ps %zmm6,%zmm7,%zmm1", "vmovups %zmm1,(%rcx,%rax)", "add $0x40,%rax", "jne @0"}));
  CHECK(element_wise.registers == 0);
  CHECK(element_wise.in_memory == 0);
  // The result goes back through a move.
  CHECK(carried_by(body_of({"vmovaps %ymm0,%ymm1", "vaddps (%rax),%ymm0,%ymm2", "vmovaps %ymm2,%ymm0", "jne @0"})).registers == 1);
  // A trip begins with a copy of what the last one handed on, as GCC rotates such loops.
  const auto rotated = carried_by(body_of({"vmovaps %ymm0,%ymm1", "vmovups (%rax),%ymm5", "add $0x20,%rax", "vmulps %ymm5,%ymm5,%ymm0", "vaddps %ymm1,%ymm0,%ymm0", "jne @0"}));
  CHECK(rotated.registers == 1);
  CHECK(rotated.operations == 1);
  // A copy that is only stored.
  CHECK(carried_by(body_of({"vmovaps %ymm0,%ymm1", "vmulps (%rax),%ymm5,%ymm0", "vmovups %ymm1,(%rcx,%rax)", "add $0x20,%rax", "jne @0"})).registers == 0);
}

TEST_CASE("a sum that is kept in memory is a chain, an array that is added to is none") {
  CHECK(carried_by(body_of({"vmovss (%rdi),%xmm0", "vaddss (%rsi,%rax,4),%xmm0,%xmm0", "vmovss %xmm0,(%rdi)", "inc %rax", "jne @0"})).in_memory == 1);
  CHECK(carried_by(body_of({"vmovups (%rdi,%rax),%ymm0", "vfmadd231ps (%rsi,%rax),%ymm3,%ymm0", "vmovups %ymm0,(%rdi,%rax)", "add $0x20,%rax", "jne @0"})).in_memory == 0);
}

TEST_CASE("a chain is as long as the operations from what a trip is given to what it hands on") {
  CHECK(carried_by(body_of({"vaddps (%rax),%zmm0,%zmm0", "add $0x40,%rax", "jne @0"})).operations == 1);
  CHECK(carried_by(body_of({"vaddss (%rax),%xmm0,%xmm0", "vaddss 0x4(%rax),%xmm0,%xmm0", "vaddss 0x8(%rax),%xmm0,%xmm0", "jne @0"})).operations == 3);
  // A sum beside a polynomial, which begins anew in each trip with constants that stay in registers.
  const auto beside = carried_by(body_of({"vmovups (%rax),%zmm1", "vmulps %zmm5,%zmm1,%zmm2", "vfmadd213ps %zmm6,%zmm1,%zmm2", "vfmadd213ps %zmm7,%zmm1,%zmm2", "vaddps %zmm2,%zmm0,%zmm0", "jne @0"}));
  CHECK(beside.registers == 1);
  CHECK(beside.operations == 1);
  CHECK(carried_by(body_of({"vmovss (%rdi),%xmm0", "vaddss (%rsi,%rax,4),%xmm0,%xmm0", "vmovss %xmm0,(%rdi)", "inc %rax", "jne @0"})).operations == 1);
  CHECK(carried_by(body_of({"vmovups (%rax),%zmm1", "vmulps %zmm5,%zmm1,%zmm1", "vmovups %zmm1,(%rcx,%rax)", "jne @0"})).operations == 0);
}

TEST_CASE("a number that is changed where it lies in memory is loaded and stored") {
  const auto counters = innermost_loops({function_of("f", 0x1000, {"movslq (%rsi,%rax),%rdx", "addl $0x1,(%rcx,%rdx,4)", "add %edi,(%r8,%rdx,4)", "incq 0x8(%r9)", "addl $0x1,0x8(%rsp)", "add $0x4,%rax", "jne 1000 @0"})});
  REQUIRE(counters.size() == 1);
  CHECK(counters[0].stored_bytes == 4 + 4 + 8); // not what lies on the stack, nor a register
  CHECK(counters[0].loaded_bytes == 4 + 4 + 8);
}

TEST_CASE("what one trip does is counted, however far it is unrolled") {
  const auto once = innermost_loops({function_of("f", 0x1000, {"vmovups (%rsi,%rax),%ymm1", "vfmadd231ps (%rdi,%rax),%ymm1,%ymm0", "vmovups %ymm1,(%rcx,%rax)", "add $0x20,%rax", "jne 1000 @0"})});
  REQUIRE(once.size() == 1);
  CHECK(once[0].flops == 16);
  CHECK(once[0].fused == 1);
  CHECK(once[0].loaded_bytes == 64);
  CHECK(once[0].stored_bytes == 32);
  CHECK(once[0].chains == 1);
  CHECK(once[0].branches == 0);
  CHECK(innermost_loops({function_of("f", 0x1000, {"kortestw %k1,%k1", "je 100c @3", "vmovups %zmm0,(%rax)", "add $0x40,%rax", "jne 1000 @0"})}).at(0).branches == 1);
  const auto broadcast = innermost_loops({function_of("f", 0x1000, {"vfmadd231ps (%rdi){1to16},%zmm1,%zmm0", "vbroadcastss (%rsi),%zmm2", "vmovntps %zmm2,(%rcx)", "vmovups 0x40(%rsp),%zmm3", "jne 1000 @0"})});
  REQUIRE(broadcast.size() == 1);
  CHECK(broadcast[0].flops == 32);
  CHECK(broadcast[0].loaded_bytes == 8);  // two floats; the stack is left out
  CHECK(broadcast[0].streamed_bytes == 64);
}

TEST_CASE("what a loop keeps for rare values is not what it does") {
  // Estimates and a multiplication; where a vector has a value that is too large, a root and a division out of line.
  const auto loops = innermost_loops({function_of("f", 0x1000, {"vrsqrt14ps (%rax),%zmm1", "vmulps %zmm1,%zmm2,%zmm2", "kortestw %k1,%k1", "jne 1018 @6", "add $0x40,%rax", "jne 1000 @0", "vsqrtps %zmm3,%zmm3", "vdivps %zmm3,%zmm4,%zmm4", "jmp 1010 @4"})});
  REQUIRE(loops.size() == 1);
  CHECK(loops[0].divides == 2);
  const auto usual = without_unseen(loops[0], [](const instruction& i) { return i.address < 0x1018 ? 100 : 0; });
  CHECK(usual.divides == 0);
  CHECK(usual.body.size() == 6);
  CHECK(usual.instructions == 6);
  const auto rare = without_unseen(loops[0], [](const instruction& i) { return i.address == 0x101c ? 1 : 0; });
  CHECK(rare.divides == 2); // it was seen once, so it runs
  CHECK(rare.body.size() == 9);
}

TEST_CASE("the loop with the samples is the hot one, not the one with most arithmetic") {
  disassembled code;
  code.functions = {function_of("pragma_kernel", 0x1000, {"vaddps %ymm1,%ymm0,%ymm0", "vaddps %ymm3,%ymm2,%ymm2", "vmulps %ymm4,%ymm4,%ymm4", "jne 1000 @0", "vaddss (%rax),%xmm5,%xmm5", "jne 1010 @4", "vmulps %zmm0,%zmm1,%zmm1", "ret"})};
  code.names = {{0x1000, "pragma_kernel"}, {0x2000, "expf"}, {0x3000, "__memmove_avx512_unaligned_erms"}};
  auto loops = innermost_loops(code.functions);
  REQUIRE(loops.size() == 2);
  CHECK(loops[0].body.size() == 4); // by its arithmetic: the remainder of a trial
  time_samples samples;
  samples.at = {{0x1004, 10}, {0x1010, 700}, {0x1014, 90}, {0x1018, 30}, {0x101c, 20}, {0x2008, 100}, {0x3010, 50}};
  samples.count = 1000;
  samples.sampled_seconds = 0.2;
  samples.cpu_seconds = 0.25; // a fifth was spent where no samples are taken
  source_result out;
  attribute_samples(samples, code, loops, out);
  CHECK(loops[0].body.size() == 2);
  CHECK(loops[0].share == Approx(0.79 * 0.8));
  CHECK(loops[1].share == Approx(0.01 * 0.8));
  const auto value = [&](const std::string& name) {
    const auto at = std::find_if(out.metrics.begin(), out.metrics.end(), [&](const metric& m) { return m.name == name; });
    REQUIRE(at != out.metrics.end());
    return at->value;
  };
  CHECK(value("samples.outside_loops_share") == Approx(4));
  CHECK(value("samples.outside_vectors_share") == Approx(2.4)); // the body of an outer loop
  CHECK(value("samples.library_share") == Approx(12));
  CHECK(value("samples.moving_share") == Approx(4));
  CHECK(value("samples.system_share") == Approx(20));
  CHECK(std::any_of(out.metrics.begin(), out.metrics.end(), [](const metric& m) { return m.note == "most in expf"; }));
  const auto cost = cost_of(loops[0], nullptr, 0, false);
  CHECK(cost.how == provenance::measured);
  CHECK(cost.trips == 0);
}

namespace {

/// Samples in the loop of `lines`, the k-th with registers that `at` gives: ax, bx, cx, dx, si, di.
std::vector<metric> addresses(const std::vector<std::string>& lines, const std::function<std::array<uint64_t, 6>(uint64_t)>& at) {
  const auto loops = innermost_loops({function_of("f", 0x1000, lines)});
  REQUIRE(loops.size() == 1);
  time_samples samples;
  for (uint64_t k = 0; k < 100; ++k) {
    sampled_registers r;
    r.address = 0x1000;
    const auto values = at(k);
    std::copy(values.begin(), values.end(), r.values.begin());
    samples.registers.push_back(r);
  }
  source_result out;
  address_metrics(samples, loops[0], out);
  return out.metrics;
}

double named(const std::vector<metric>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const metric& m) { return m.name == name; });
  return found == all.end() ? -1 : found->value;
}

} // namespace

TEST_CASE("the registers of the samples say what a loop touches") {
  const std::vector<std::string> copy = {"vmovups (%rsi,%rax,1),%zmm0", "vmovups %zmm0,(%rdi,%rax,1)", "add $0x40,%rax", "jne 1000 @0"};
  const auto apart = addresses(copy, [](uint64_t k) { return std::array<uint64_t, 6>{64 * k, 0, 0, 0, 0x100000, 0x200800}; });
  CHECK(named(apart, "samples.split_share") == 0);
  CHECK(named(apart, "samples.alias_share") == 0);
  CHECK(named(apart, "samples.far_share") == 0);
  const auto off = addresses(copy, [](uint64_t k) { return std::array<uint64_t, 6>{64 * k, 0, 0, 0, 0x100004, 0x200800}; });
  CHECK(named(off, "samples.split_share") == 50); // the loads, not the stores
  const auto behind = addresses(copy, [](uint64_t k) { return std::array<uint64_t, 6>{64 * k, 0, 0, 0, 0x100000, 0x200080}; });
  CHECK(named(behind, "samples.alias_share") == 100); // what is loaded has the low bits of what was stored two trips before
  const auto ahead = addresses(copy, [](uint64_t k) { return std::array<uint64_t, 6>{64 * k, 0, 0, 0, 0x100080, 0x200000}; });
  CHECK(named(ahead, "samples.alias_share") == 0);
  const auto rows = addresses({"vaddps (%rsi),%zmm0,%zmm0", "add %rdx,%rsi", "jne 1000 @0"}, [](uint64_t k) { return std::array<uint64_t, 6>{0, 0, 0, 8192, 0x100000 + 8192 * k, 0}; });
  CHECK(named(rows, "samples.far_share") == 100);
  CHECK(named(rows, "samples.one_set_share") == 100);
  const auto padded = addresses({"vaddps (%rsi),%zmm0,%zmm0", "add %rdx,%rsi", "jne 1000 @0"}, [](uint64_t k) { return std::array<uint64_t, 6>{0, 0, 0, 8256, 0x100000 + 8256 * k, 0}; });
  CHECK(named(padded, "samples.far_share") == 100);
  CHECK(named(padded, "samples.one_set_share") == 0);
  // Three taps of a filter: whatever is done, two of them cross lines; rows that begin on a line spare one of three.
  const std::vector<std::string> taps = {"vmulps (%rsi),%zmm1,%zmm0", "vfmadd231ps 0x4(%rsi),%zmm2,%zmm0", "vfmadd231ps 0x8(%rsi),%zmm3,%zmm0", "add $0x40,%rsi", "jne 1000 @0"};
  CHECK(named(addresses(taps, [](uint64_t k) { return std::array<uint64_t, 6>{0, 0, 0, 0, 0x100000 + 64 * k, 0}; }), "samples.split_share") == 0);
  CHECK(named(addresses(taps, [](uint64_t k) { return std::array<uint64_t, 6>{0, 0, 0, 0, 0x100010 + 64 * k, 0}; }), "samples.split_share") == Approx(100.0 / 3));
  CHECK(named(addresses({"vaddps (%rsi),%zmm0,%zmm0", "sub $0xffffffffffffff80,%rsi", "jne 1000 @0"}, [](uint64_t) { return std::array<uint64_t, 6>{}; }), "samples.far_share") == 0);
}

TEST_CASE("a load that is wider than the stores just before it cannot be served by them") {
  const auto blocked = [](const std::vector<std::string>& lines) { return blocked_loads(innermost_loops({function_of("f", 0x1000, lines)}).at(0)); };
  CHECK(blocked({"vmovss %xmm0,0x40(%rsp)", "vmovss %xmm1,0x44(%rsp)", "vmovaps 0x40(%rsp),%zmm2", "jne 1000 @0"}) == 1);
  CHECK(blocked({"vmovaps %zmm0,0x40(%rsp)", "vmovaps 0x40(%rsp),%zmm2", "jne 1000 @0"}) == 0);
  CHECK(blocked({"vmovss %xmm0,0x80(%rsp)", "vmovaps 0x40(%rsp),%zmm2", "jne 1000 @0"}) == 0); // beside it
  CHECK(blocked({"vmovaps 0x40(%rsp),%zmm2", "vmovss %xmm0,0x40(%rsp)", "jne 1000 @0"}) == 1); // of the next trip
  CHECK(blocked({"vmovaps 0x40(%rax),%zmm2", "vmovss %xmm0,0x40(%rax)", "add $0x40,%rax", "jne 1000 @0"}) == 0); // which loads from another place
  // A state in two halves at 0x4000, by addresses relative to the next instruction.
  CHECK(blocked({"vmovaps 0x2ffc(%rip),%ymm0", "vmovaps %xmm0,0x2ff8(%rip)", "vextractf128 $0x1,%ymm0,0x3004(%rip)", "jne 1000 @0"}) == 1);
  CHECK(blocked({"vmovaps 0x2ffc(%rip),%ymm0", "vmovaps %ymm0,0x2ff8(%rip)", "jne 1000 @0"}) == 0);
}

TEST_CASE("a load whose address follows from what it loaded before waits for it") {
  const auto chained = [](const std::vector<std::string>& lines) { return chained_loads(innermost_loops({function_of("f", 0x1000, lines)}).at(0)); };
  CHECK(chained({"mov (%rax),%rax", "addss 0x8(%rax),%xmm0", "test %rax,%rax", "jne 1000 @0"}) == 1); // a list; of its values none leads on
  CHECK(chained({"vmulss (%rdx,%r10,4),%xmm1,%xmm2", "vcvttss2si %xmm2,%r10d", "movslq %r10d,%r10", "dec %ecx", "jne 1000 @0"}) == 1);
  CHECK(chained({"movslq (%rsi,%rax,4),%rdx", "vaddss (%rdi,%rdx,4),%xmm0,%xmm0", "inc %rax", "jne 1000 @0"}) == 0); // places that lie in a table can be looked up ahead
  CHECK(chained({"vcomiss (%rdi,%rax,4),%xmm0", "lea 0x1(%rax),%rdx", "cmova %rdx,%rax", "dec %ecx", "jne 1000 @0"}) == 1); // a search that chooses by what it has read
  CHECK(chained({"vaddss (%rdi,%rax,4),%xmm0,%xmm0", "add $0x1,%rax", "cmp %rax,%rcx", "jne 1000 @0"}) == 0);
  CHECK(chained({"mov (%rax),%rax", "xor %eax,%eax", "dec %ecx", "jne 1000 @0"}) == 0);
  std::vector<std::string> endless(20000, "mov (%rax),%rax"); // each load through all of it would take minutes
  endless.push_back("jne 1000 @0");
  CHECK(chained(endless) == 0);
}

TEST_CASE("of a loop is counted what works on vectors, and what is widened to double precision") {
  const auto loop = innermost_loops({function_of("f", 0x1000, {"vcvtps2pd (%rdi,%rax,1),%zmm0", "vfmadd231pd %zmm0,%zmm1,%zmm2", "add $0x20,%rax", "cmp %rax,%rcx", "jne 1000 @0"})}).at(0);
  CHECK(loop.vector_instructions == 2);
  CHECK(loop.widening == 1);
  CHECK(loop.of_doubles == 1);
  const auto single = innermost_loops({function_of("f", 0x1000, {"vaddps (%rdi,%rax,1),%ymm0,%ymm0", "add $0x20,%rax", "jne 1000 @0"})}).at(0);
  CHECK(single.of_doubles == 0);
  CHECK(single.widening == 0);
}

TEST_CASE("counters at places that the values choose, in one table or in several") {
  const auto found = [](const std::vector<std::string>& lines) {
    const auto all = updates_of(innermost_loops({function_of("f", 0x1000, lines)}).at(0));
    return std::make_pair(all.updates, all.tables);
  };
  CHECK(found({"movslq (%rsp,%rcx,4),%rax", "addl $0x1,0x4000(,%rax,4)", "inc %rcx", "jne 1000 @0"}) == std::make_pair(1, 1));
  CHECK(found({"movslq (%rsp),%rax", "addl $0x1,(%rdx,%rax,4)", "movslq 0x4(%rsp),%rax", "addl $0x1,0x100(%rdx,%rax,4)", "jne 1000 @0"}) == std::make_pair(2, 2));
  CHECK(found({"movslq (%rsp),%rdx", "incl (%rbx,%rdx,4)", "movslq 0x4(%rsp),%rdx", "lea 0x40(%rax,%rdx,1),%rdx", "incl (%rbx,%rdx,4)", "jne 1000 @0"}) == std::make_pair(2, 2));
  CHECK(found({"mov (%rsi,%rcx,8),%rax", "vaddss (%rdi,%rax,4),%xmm0,%xmm1", "vmovss %xmm1,(%rdi,%rax,4)", "inc %rcx", "jne 1000 @0"}) == std::make_pair(1, 1)); // index_add
  CHECK(found({"vmovups (%rsi,%rcx,4),%ymm0", "vaddps (%rdi,%rcx,4),%ymm0,%ymm0", "vmovups %ymm0,(%rdi,%rcx,4)", "add $0x8,%rcx", "jne 1000 @0"}) == std::make_pair(0, 0)); // in order
  CHECK(found({"mov 0x18(%rsp),%rdx", "addl $0x1,(%rdx,%rcx,4)", "inc %rcx", "jne 1000 @0"}) == std::make_pair(0, 0)); // a pointer that waits on the stack
}

TEST_CASE("how often a loop of wide vectors runs follows from what a twin with narrower ones did on its line") {
  const auto on_line = [](code_function f, int line) {
    for (auto& i : f.body) i.own_line = line;
    return f;
  };
  const auto scale = [&](const char* width, uint64_t at, int line) {
    const std::string v = width;
    return on_line(function_of("f", at, {"vmovups (%rax)," + v + "1", "vmulps " + v + "5," + v + "1," + v + "1", "vmovups " + v + "1,(%rcx,%rax)", "add $0x40,%rax", "jne @0"}), line);
  };
  // Eight values a trip in the twin, which ran 1,000 of them; sixteen here.
  const auto twin = scale("%ymm", 0x2000, 7);
  std::map<uint64_t, double> executed;
  for (const auto& i : twin.body) executed[i.address] = 1000;
  auto loops = innermost_loops({scale("%zmm", 0x1000, 7), scale("%zmm", 0x3000, 8)});
  REQUIRE(loops.size() == 2);
  for (auto& l : loops) l.share = 0.5;
  trips_by_twin(loops, {twin}, executed);
  for (const auto& l : loops) CHECK(l.twin_trips == Approx(l.line == 7 ? 500 : 0)); // of another line nothing is known
  // The rest of a row is a loop of its own: both share the line's work, by their time.
  auto both = innermost_loops({scale("%zmm", 0x1000, 7), scale("%xmm", 0x3000, 7)});
  REQUIRE(both.size() == 2);
  for (auto& l : both) l.share = l.vector_bits == 512 ? 0.8 : 0.2;
  trips_by_twin(both, {twin}, executed);
  double values = 0;
  for (const auto& l : both) values += l.twin_trips * l.flops;
  CHECK(values == Approx(8000));
  CHECK(both[0].twin_trips + both[1].twin_trips > 500);
  // Who calls functions does work that nobody counts here.
  auto calling = innermost_loops({on_line(function_of("f", 0x1000, {"vmovups (%rax),%zmm1", "call 402000 <expf>", "vmulps %zmm5,%zmm1,%zmm1", "vmovups %zmm1,(%rcx,%rax)", "jne @0"}), 7)});
  REQUIRE(calling.size() == 1);
  calling[0].share = 1;
  trips_by_twin(calling, {twin}, executed);
  CHECK(calling[0].twin_trips == 0);
}
