// The parsers on what real tools printed (tests/profilers/data/README.md says which files were recorded).
#include "base/files.hpp"
#include "profilers/formats.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace pragma;
using namespace pragma::formats;

namespace {

std::string recorded(const std::string& name) {
  auto text = read_file(std::string(TESTS_DIR) + "/profilers/data/" + name);
  REQUIRE(text);
  return *text;
}

const perf_value* find(const perf_output& out, const std::string& event) {
  for (const auto& e : out.events)
    if (e.event == event) return &e;
  return nullptr;
}

} // namespace

TEST_CASE("perf without a PMU counts nothing, although it says so with rc 0") {
  const auto out = parse_perf_json(recorded("perf-6.1-no-pmu.jsonl"));
  REQUIRE(find(out, "cycles"));
  CHECK_FALSE(find(out, "cycles")->counted);
  CHECK_FALSE(find(out, "instructions")->counted);
  REQUIRE(find(out, "page-faults"));
  CHECK(find(out, "page-faults")->counted);
  CHECK(find(out, "page-faults")->value == 47);
  CHECK(find(out, "task-clock")->unit == "msec");
  CHECK(out.topdown.empty());
}

TEST_CASE("perf that falls back to other events for an unknown metric group gives no top-down") {
  const auto out = parse_perf_json(recorded("perf-6.1-no-pmu-topdown.jsonl"));
  CHECK(out.topdown.empty());
  REQUIRE_FALSE(out.messages.empty());
  CHECK(out.messages[0].find("TopdownL1") != std::string::npos);
}

TEST_CASE("perf 6.1 with a PMU: counts, multiplexing, top-down inside metric-unit") {
  const auto out = parse_perf_json(recorded("perf-6.1-composed-icelake.jsonl"));
  REQUIRE(find(out, "instructions"));
  CHECK(find(out, "instructions")->value == 3e9);
  CHECK(find(out, "branches")->percent_running == 60);
  CHECK_FALSE(find(out, "dTLB-load-misses")->counted);
  CHECK(out.topdown.at("retiring") == Approx(41.5));
  CHECK(out.topdown.at("backend_bound") == Approx(30.25));
  CHECK(out.topdown.at("frontend_bound") == Approx(20));
  CHECK(out.topdown.at("bad_speculation") == Approx(8.25));
}

TEST_CASE("perf 6.12 prints metric values as strings and names the kind of core") {
  const auto out = parse_perf_json(recorded("perf-6.12-composed-golden-cove.jsonl"));
  const auto counted = std::count_if(out.events.begin(), out.events.end(), [](const auto& e) { return e.event == "cycles" && e.counted; });
  CHECK(counted == 1); // the other kind of core did not run it
  CHECK(out.topdown.at("retiring") == Approx(41.5));
  CHECK(out.topdown.at("memory_bound") == Approx(18));
  CHECK(out.topdown.at("core_bound") == Approx(12.25));
}

TEST_CASE("AMD's names of the pipeline shares are ours; a NaN is no metric") {
  const auto out = parse_perf_json(recorded("perf-6.12-composed-zen4.jsonl"));
  CHECK(out.topdown.at("light_operations") == Approx(52));
  CHECK(out.topdown.at("heavy_operations") == Approx(3));
  CHECK(out.topdown.at("memory_bound") == Approx(25));
  CHECK(out.topdown.at("core_bound") == Approx(10));
  CHECK(out.topdown.count("machine_clears") == 0);
}

TEST_CASE("top-down asked for as events becomes shares of the slots") {
  const auto out = parse_perf_json(recorded("perf-6.1-composed-topdown-events.jsonl"));
  CHECK(out.topdown.at("retiring") == Approx(40));
  CHECK(out.topdown.at("bad_speculation") == Approx(10));
  CHECK(out.topdown.at("backend_bound") == Approx(30));
  CHECK(out.topdown.at("memory_bound") == Approx(21));
  CHECK(out.topdown.at("core_bound") == Approx(9));
}

TEST_CASE("garbage from perf is a message, never a crash or a metric") {
  const auto out = parse_perf_json("{\"counter-value\" : \n{}\n[1]\nnull\n{\"metric-value\":{},\"metric-unit\":\"%  tma_retiring\"}\n\xff\xfe");
  CHECK(out.events.empty());
  CHECK(out.topdown.empty());
}

TEST_CASE("perf list gives names and aliases, not tracepoints") {
  const auto names = parse_perf_list(recorded("perf-6.1-list-head.txt"));
  const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  CHECK(has("context-switches"));
  CHECK(has("cs"));
  CHECK(has("msr/tsc/"));
  CHECK_FALSE(has("alarmtimer:alarmtimer_cancel"));
  CHECK_FALSE(has("rNNN"));
}

TEST_CASE("callgrind: totals, own cost of lines, cost of the C library at its caller") {
  const auto out = parse_callgrind(recorded("callgrind.out"));
  REQUIRE(out);
  CHECK(out->totals.at("Ir") == 10260341);
  CHECK(out->totals.at("D1mr") == 16898);
  CHECK(out->totals.at("Bim") == 1);
  CHECK(out->caches.size() == 3);
  // Own costs add up to the total: callees are not counted twice.
  double lines = 0, addresses = 0;
  for (const auto& [place, ir] : out->lines) lines += ir;
  for (const auto& [address, ir] : out->addresses) addresses += ir;
  CHECK(lines == 10260341);
  CHECK(addresses == 10260341);
  // expf is called once per element, on line 12 of the candidate through <cmath>.
  double expf = 0;
  for (const auto& call : out->calls)
    if (call.callee == "__expf_fma") expf += call.ir;
  CHECK(expf > 0.5 * 10260341);
}

TEST_CASE("callgrind: relative and repeated positions") {
  const auto out = parse_callgrind("positions: line\nevents: Ir Dr\nfl=(1) a.cpp\nfn=(1) f\n10 5 1\n+2 7\n-1 1\n* 2\nfi=(2) b.h\n3 4\nfe=(1)\n+9 1\nfn=(2) g\n20 6\ntotals: 26 1\n");
  REQUIRE(out);
  CHECK(out->lines.at({"a.cpp", 10}) == 5);
  CHECK(out->lines.at({"a.cpp", 12}) == 8); // 7, and 1 after fe=
  CHECK(out->lines.at({"a.cpp", 11}) == 3);
  CHECK(out->lines.at({"b.h", 3}) == 4);
  CHECK(out->lines.at({"a.cpp", 20}) == 6);
  CHECK(out->totals.at("Dr") == 1);
}

TEST_CASE("callgrind: a file that was cut off is an error that says where") {
  const auto text = recorded("callgrind.out");
  const auto cut = parse_callgrind(std::string_view(text).substr(0, 250));
  REQUIRE_FALSE(cut);
  CHECK(cut.error().code == ec::parse_error);
  const auto broken = parse_callgrind("positions: instr line\nevents: Ir\n0x40zz 3 5\n");
  REQUIRE_FALSE(broken);
  CHECK(broken.error().message.find("line 3") != std::string::npos);
}

TEST_CASE("llvm-mca: summary, bottleneck, busiest port") {
  const auto out = parse_mca_text(recorded("llvm-mca-14.txt"));
  REQUIRE(out);
  CHECK(out->iterations == 100);
  CHECK(out->cycles == 411);
  CHECK(out->ipc == Approx(1.70));
  CHECK(out->uops_per_cycle == Approx(1.70));
  CHECK(out->block_rthroughput == 3);
  CHECK(out->has_bottleneck);
  CHECK(out->backend_pressure == Approx(65.21));
  CHECK(out->resource_pressure == Approx(63.26));
  CHECK(out->data_dependencies == Approx(60.34));
  CHECK(out->register_dependencies == Approx(60.34));
  CHECK(out->memory_dependencies == 0);
  CHECK(out->top_port == "Zn3FPP1");
  CHECK(out->top_port_cycles >= 3); // the divider
}

TEST_CASE("llvm-mca: a pure chain is all dependencies, free code has no bottleneck") {
  const auto chain = parse_mca_text(recorded("llvm-mca-14-chain.txt"));
  REQUIRE(chain);
  CHECK(chain->data_dependencies == Approx(50));
  CHECK(chain->resource_pressure == 0);
  const auto free = parse_mca_text(recorded("llvm-mca-14-free.txt"));
  REQUIRE(free);
  CHECK_FALSE(free->has_bottleneck);
  CHECK_FALSE(parse_mca_text("error: no assembly instructions found.\n"));
}

TEST_CASE("objdump: functions, lines and the innermost loops of a real kernel") {
  const auto functions = functions_of(parse_objdump(recorded("objdump-2.40.txt")), "candidate.cpp");
  REQUIRE(functions.size() == 1);
  CHECK(functions[0].name == "pragma_kernel");
  CHECK(functions[0].body.front().line == 3);
  const auto loops = innermost_loops(functions);
  REQUIRE(loops.size() >= 3);
  const auto at_line = [&](int line) {
    const auto found = std::find_if(loops.begin(), loops.end(), [&](const auto& l) { return l.line == line && l.calls == 0; });
    REQUIRE(found != loops.end());
    return *found;
  };
  const auto scale = at_line(11); // y = x * scale, vectorised with 32 bytes
  CHECK(scale.vector_bits == 256);
  CHECK(scale.vector_share() == 100);
  CHECK(scale.stores == 1);
  CHECK(scale.streaming_stores == 0);
  CHECK(scale.instructions < 10);
  // The call of expf keeps line 12 scalar; the call of sqrtf in the outer loop is not taken for an innermost loop.
  const auto calling = std::find_if(loops.begin(), loops.end(), [](const auto& l) { return l.calls > 0; });
  REQUIRE(calling != loops.end());
  CHECK(calling->line == 12);
  CHECK_FALSE(calling->has_vector_share());
}

TEST_CASE("the loop in which most instructions run comes first") {
  const auto functions = functions_of(parse_objdump(recorded("objdump-2.40.txt")), "candidate.cpp");
  const auto counts = parse_callgrind(recorded("callgrind.out"));
  REQUIRE(counts);
  auto executed = counts->addresses;
  for (const auto& call : counts->calls) executed[call.address] += call.ir;
  const auto loops = innermost_loops(functions, [&](const instruction& i) {
    const auto found = executed.find(i.address);
    return found == executed.end() ? 0.0 : found->second;
  });
  REQUIRE_FALSE(loops.empty());
  CHECK(loops.front().line == 12); // the loop that calls expf
  CHECK(loops.front().weight > 0.5 * 10260341);
}

TEST_CASE("a block that was moved to the end of a function is no loop") {
  // 10: jne 30 jumps to the unlikely block, which jumps back to 14.
  const std::string text = "0000000000000010 <f>:\n/x/candidate.cpp:1\n"
                           "  10:\tjne    30 <f+0x20>\n  14:\tadd    $0x1,%rax\n  18:\tret\n"
                           "  30:\tcall   99 <expf>\n  34:\tjmp    14 <f+0x4>\n";
  CHECK(innermost_loops(parse_objdump(text)).empty());
}

TEST_CASE("what a loop consists of: divisions, gathers, streaming stores, AVX-512") {
  const std::string text = "0000000000000010 <f>:\n/x/candidate.cpp:7 (discriminator 2)\n"
                           "  10:\tvgatherdps %ymm3,(%rdi,%ymm1,4),%ymm2\n  14:\tvdivps %zmm1,%zmm2,%zmm3\n"
                           "  18:\tvmovntps %zmm3,(%rsi,%rax,4)\n  1c:\tvaddss %xmm1,%xmm2,%xmm3\n  20:\tvmovss %xmm3,(%rsi)\n"
                           "  24:\tmov    %rax,0x8(%rsp)\n  26:\tadd    $0x40,%rax\n  2a:\tjne    10 <f>\n  2c:\tret\n";
  const auto loops = innermost_loops(parse_objdump(text));
  REQUIRE(loops.size() == 1);
  const auto& l = loops[0];
  CHECK(l.line == 7);
  CHECK(l.instructions == 8);
  CHECK(l.vector_bits == 512);
  CHECK(l.gathers == 1);
  CHECK(l.divides == 1);
  CHECK(l.streaming_stores == 1);
  CHECK(l.stores == 2); // not the spill to the stack
  CHECK(l.vector_share() == Approx(50));
  const auto input = mca_input(l);
  CHECK(input.find("jne .Lloop") != std::string::npos);
  CHECK(input.find("<f>") == std::string::npos);
}

TEST_CASE("gcc's remarks: once each, with the reason, only of the candidate") {
  const auto remarks = parse_remarks(recorded("gcc-12-remarks.txt"), "candidate.cpp", "gcc 12.2.0");
  const auto counts = count_remarks(remarks);
  CHECK(counts.vectorized == 2); // lines 9 and 11
  CHECK(counts.missed == 1);     // line 12; the outer loop on line 7 is no news
  CHECK(counts.vector_bytes == 32);
  const auto missed = std::find_if(remarks.begin(), remarks.end(), [](const auto& r) { return r.kind == "missed"; });
  REQUIRE(missed != remarks.end());
  CHECK(missed->line == 12);
  CHECK(missed->text.find("expf") != std::string::npos);
  CHECK(missed->compiler == "gcc 12.2.0");
  for (const auto& r : remarks) CHECK((r.line >= 7 && r.line <= 12)); // main.cpp and headers are left out
}

TEST_CASE("clang's remarks: the reason stands before the loop") {
  const auto remarks = parse_remarks(recorded("clang-14-remarks.txt"), "candidate.cpp", "clang 14.0.6");
  const auto counts = count_remarks(remarks);
  CHECK(counts.vectorized == 1); // line 11
  const auto reason = [&](int line) {
    for (const auto& r : remarks)
      if (r.line == line && r.kind == "missed") return r.text;
    return std::string();
  };
  CHECK(reason(9).find("reorder floating-point") != std::string::npos);
  CHECK(reason(12).find("call instruction cannot be vectorized") != std::string::npos);
  CHECK(reason(11).empty());
}

TEST_CASE("remarks are bounded, and what mattered most is kept") {
  std::string text;
  for (int i = 1; i <= 200; ++i) text += "candidate.cpp:" + std::to_string(i) + ":3: missed: couldn't vectorize loop\n";
  text += "candidate.cpp:300:3: optimized: loop vectorized using 64 byte vectors\n";
  const auto remarks = parse_remarks(text, "candidate.cpp", "gcc 13.1.0", 20);
  CHECK(remarks.size() == 20);
  CHECK(remarks.front().line == 300);
}
