#include "base/files.hpp"
#include "base/text.hpp"
#include "diagnosis/conductor.hpp"
#include "tests/diagnosis/refused.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace pragma;

namespace {

iteration_record passed(int number, double speedup, std::vector<metric> metrics = {}, bool new_best = true) {
  iteration_record r;
  r.number = number;
  r.verdict.stage = verdict_stage::passed;
  r.new_best = new_best;
  r.code.attempt = number;
  r.code.source = "source of attempt " + std::to_string(number);
  r.code.has_profile = true;
  r.code.measured.time.speedup = {speedup, speedup * 0.99, speedup * 1.01};
  r.code.measured.time.candidate_seconds = 1e-3 / speedup;
  r.code.measured.metrics = std::move(metrics);
  return r;
}

iteration_record failed(int number, std::string stage, std::string reason, std::string log = "") {
  iteration_record r;
  r.number = number;
  r.verdict = test::refused(stage, std::move(reason), std::move(log));
  r.code.attempt = number;
  return r;
}

metric counted(std::string name, double value, std::string unit) { return {std::move(name), value, std::move(unit), "perf", provenance::measured, ""}; }
metric computed(std::string name, double value, std::string unit, provenance how) { return {std::move(name), value, std::move(unit), "tool", how, ""}; }

bool has_line(const std::vector<std::string>& lines, const std::string& start) {
  for (const auto& line : lines)
    if (line.rfind(start, 0) == 0) return true;
  return false;
}
bool mentions(const std::vector<std::string>& lines, const std::string& text) { return join(lines, "\n").find(text) != std::string::npos; }

std::string data(const std::string& name) {
  auto text = read_file(std::string(TESTS_DIR) + "/diagnosis/data/" + name);
  REQUIRE(text);
  return *text;
}

/// The first hint for a log of a failed build, as one text.
std::string first_hint(const std::string& log) {
  const auto hints = repairs_for(test::refused("build", "compiling the candidate failed", log));
  REQUIRE_FALSE(hints.empty());
  return hints.front().cause + " " + hints.front().remedy;
}

} // namespace

TEST_CASE("better and worse are judged by the whole interval") {
  const auto judged = [](const char* stage, bool has_best, interval against_best) {
    iteration_record r;
    r.verdict = test::refused(stage);
    r.against_best = against_best;
    return judge(r, has_best);
  };
  CHECK(judged("compare", true, {2, 1.9, 2.1}) == judgement::failed);
  CHECK(judged("not established", true, {2, 1.9, 2.1}) == judgement::unknown);
  CHECK(judged("passed", false, {}) == judgement::first);
  CHECK(judged("passed", true, {1.1, 1.01, 1.2}) == judgement::better);
  CHECK(judged("passed", true, {1.1, 0.99, 1.2}) == judgement::same);
  CHECK(judged("passed", true, {0.9, 0.8, 0.99}) == judgement::worse);
  CHECK(judged("passed", true, {0.9, 0.8, 1.0}) == judgement::same);
  CHECK(judged("passed", true, {}) == judgement::same); // never compared: nothing is claimed
}

TEST_CASE("the trace of a regression reads like the paper's first round") {
  const auto best = passed(1, 2.93, {counted("ipc", 1.37, "1/cycle"), counted("instructions", 945e3, "count"), counted("topdown.frontend_bound", 5.10, "%"), counted("topdown.backend_bound", 61.76, "%")});
  auto current = passed(2, 2.54, {counted("ipc", 1.49, "1/cycle"), counted("instructions", 1200e3, "count"), counted("topdown.frontend_bound", 7.68, "%"), counted("topdown.backend_bound", 57.24, "%")}, false);
  current.against_best = {0.87, 0.85, 0.89};
  current.findings = {{bottleneck::not_vectorized, 0.8, "", 16, "Conditions in the vector loop.", {}, {"Remove the conditional checks from the SIMD path."}, {}}};
  const auto lines = explain(current, &best, judgement::worse);
  CHECK(lines[0] == "Round 2: Performance regression detected");
  CHECK(lines[1] == "Historical best:");
  CHECK(has_line(lines, "  Speedup = 2.93x"));
  CHECK(has_line(lines, "  IPC = 1.37"));
  CHECK(has_line(lines, "  Instructions = 945K"));
  CHECK(has_line(lines, "  Frontend_bound = 5.10%"));
  CHECK(has_line(lines, "  Backend_bound = 57.24%"));
  CHECK(has_line(lines, "Current code:"));
  CHECK(has_line(lines, "Analysis:"));
  CHECK(has_line(lines, " - Speedup dropped: 0.87x the speed of the best version, side by side"));
  CHECK(has_line(lines, " - Higher IPC but worse performance"));
  CHECK(mentions(lines, "line 16"));
  CHECK(has_line(lines, "Action:"));
  CHECK(has_line(lines, " - Keep the version of attempt 1"));
  CHECK(lines.back().find("Remove the conditional checks") != std::string::npos);
  CHECK_FALSE(mentions(lines, "Cycles =")); // only what was measured
}

TEST_CASE("the trace of an improvement reads like the paper's second round") {
  const auto best = passed(1, 2.93, {counted("ipc", 1.37, "1/cycle"), counted("instructions", 945e3, "count")});
  auto current = passed(3, 4.71, {counted("ipc", 0.52, "1/cycle"), counted("instructions", 136e3, "count"), counted("cycles", 242e3, "count")});
  current.against_best = {1.6, 1.55, 1.66};
  const auto lines = explain(current, &best, judgement::better);
  CHECK(lines[0] == "Round 3: Performance improvement recognized");
  CHECK(has_line(lines, " - Significant speedup improvement (+60%)"));
  CHECK(mentions(lines, "Lower IPC but better performance: fewer total instructions"));
  CHECK(has_line(lines, "  Cycles = 242K"));
  CHECK(has_line(lines, " - Mark current code as new historical best"));
}

TEST_CASE("simulated and static figures are labelled in the trace") {
  const auto current = passed(1, 1.5, {computed("callgrind.Ir", 1.2e6, "count", provenance::simulated), computed("llvm_mca.ipc", 2.5, "1/cycle", provenance::static_analysis)});
  const auto lines = explain(current, nullptr, judgement::first);
  CHECK(has_line(lines, "  callgrind.Ir = 1.20M (simulated)"));
  CHECK(has_line(lines, "  llvm_mca.ipc = 2.50 (static)"));
  CHECK_FALSE(has_line(lines, "Historical best:"));
  CHECK_FALSE(has_line(lines, "  IPC ="));
  CHECK(has_line(lines, " - Mark current code as new historical best"));
}

TEST_CASE("the trace of a failure names cause and remedy") {
  const auto best = passed(1, 2);
  const auto current = failed(2, "build", "compiling the candidate failed: 'sqrtf' was not declared in this scope", data("undeclared.gcc.log"));
  const auto lines = explain(current, &best, judgement::failed);
  CHECK(lines[0] == "Round 2: Candidate failed (build)");
  CHECK(has_line(lines, "  Speedup = 2.00x"));
  CHECK_FALSE(has_line(lines, "Current code:"));
  CHECK(has_line(lines, " - Probable cause:"));
  CHECK(mentions(lines, "go on from attempt 1"));
}

TEST_CASE("a first brief has a task but no parts to look back on") {
  const auto b = make_brief(1, nullptr, nullptr);
  CHECK(b.attempt == 1);
  CHECK_FALSE(b.has_code);
  CHECK_FALSE(b.has_best);
  CHECK(b.repairs.empty());
  CHECK_FALSE(b.actions.empty());
}

TEST_CASE("a brief holds the paper's five parts") {
  auto best = passed(1, 3, {counted("ipc", 1.4, "1/cycle"), computed("callgrind.l1_traffic_ratio", 2, "ratio", provenance::simulated)});
  auto last = passed(2, 2, {counted("topdown.bad_speculation", 30, "%")}, false);
  finding f;
  f.what = bottleneck::bad_speculation;
  f.proof = {{"topdown.bad_speculation", 30, "%", 0, false, "topdown.bad_speculation = 30 %"}};
  f.remedies = {"Use selects.", "Hoist conditions."};
  last.findings = {f};
  last.reasoning = {"Round 2: Performance regression detected"};
  const auto b = make_brief(3, &last, &best);
  CHECK(b.attempt == 3);
  CHECK(b.code.source == last.code.source);                 // 1 code
  CHECK(b.repairs.empty());                                 // 2 errors: there were none
  REQUIRE_FALSE(b.meanings.empty());                        // 3 metrics
  CHECK(b.meanings.front().metric == "topdown.bad_speculation");
  CHECK(b.meanings.size() == 1); // of the evidence: what no finding rests on needs no words
  REQUIRE(b.findings.size() == 1);                          // 4 results
  CHECK(b.best.source == best.code.source);                 // 5 best version
  CHECK(b.best.measured.value("ipc") == 1.4);
  CHECK(b.reasoning == last.reasoning);
  CHECK(b.actions == std::vector<std::string>{"Use selects.", "Hoist conditions."});
}

TEST_CASE("after a failure the brief has the log, the repairs and the best version's findings") {
  auto best = passed(1, 3);
  best.findings = {{bottleneck::memory_bandwidth_bound, 0.8, "memory", 0, "why", {}, {"Fuse."}, {}}};
  const auto last = failed(2, "run", "the candidate was killed by SIGSEGV (segmentation fault)", "some log");
  const auto b = make_brief(3, &last, &best);
  CHECK(b.failure_stage == "run");
  CHECK(b.failure.find("SIGSEGV") != std::string::npos);
  CHECK(b.failure.find("some log") != std::string::npos);
  REQUIRE_FALSE(b.repairs.empty());
  CHECK(b.repairs.front().remedy.find("bounds") != std::string::npos);
  REQUIRE(b.findings.size() == 1);
  CHECK(b.findings.front().what == bottleneck::memory_bandwidth_bound);
  CHECK(b.actions.front() == b.repairs.front().remedy);
}

TEST_CASE("each reason to stop, and none while there is hope") {
  stop_rules rules;
  rules.attempts = 5;
  const std::vector<iteration_record> two = {passed(1, 2), passed(2, 3)};
  CHECK(stop_reason(rules, {}, 0).empty());
  CHECK(stop_reason(rules, two, 1e6).empty()); // no time limit
  CHECK(stop_reason(rules, std::vector<iteration_record>(5, failed(1, "build", "x")), 0).find("5 attempts") != std::string::npos);

  rules.max_seconds = 60;
  CHECK(stop_reason(rules, two, 59).empty());
  CHECK(stop_reason(rules, two, 60).find("time limit") != std::string::npos);
  CHECK(stop_reason(rules, {}, 60).empty()); // loading took all the time: one attempt is made all the same

  rules.target_speedup = 3; // the interval's low end counts: 2.97
  CHECK(stop_reason(rules, two, 0).empty());
  rules.target_speedup = 2.9;
  CHECK(stop_reason(rules, two, 0).find("attempt 2") != std::string::npos);
  rules.target_speedup = 0;

  auto done = two;
  done[1].code.measured.metrics = {counted("roofline_share", 94, "%")};
  CHECK(stop_reason(rules, done, 0).empty());
  done[1].code.measured.metrics[0].value = 96;
  CHECK(stop_reason(rules, done, 0).find("96%") != std::string::npos);
  done[1].code.measured.time.contended = true;
  CHECK(stop_reason(rules, done, 0).empty()); // taken beside other work: it says nothing about what is left
  done[1].code.measured.time.contended = false;
  done[1].new_best = false; // only the best version counts
  CHECK(stop_reason(rules, done, 0).empty());

  rules.patience = 2;
  CHECK(stop_reason(rules, {passed(1, 2), passed(2, 1, {}, false)}, 0).empty());
  CHECK(stop_reason(rules, {passed(1, 2), passed(2, 1, {}, false), failed(3, "run", "x")}, 0).find("no new best") != std::string::npos);
  CHECK(stop_reason(rules, {passed(1, 2), failed(2, "run", "x"), passed(3, 3)}, 0).empty());
}

TEST_CASE("messages of gcc and clang lead to the cause") {
  struct known {
    const char* file;
    const char* expected; // in the first hint
  };
  const known table[] = {
      {"undeclared", "<cmath>"}, {"std_member", "<algorithm>"}, {"target", "-march=native"}, {"unknown_vector_type", "immintrin.h"},
      {"narrowing", "int64_t"}, {"missing_kernel", "extern \"C\" void pragma_kernel"}, {"not_extern_c", "C++ linkage"}, {"wrong_signature", "Keep the signature"},
      {"undefined_symbol", "defined nowhere"}, {"omp_loop", "OpenMP"}, {"omp_break", "break"}, {"omp_default_none", "default(none)"},
      {"omp_reduction", "Reduce over"}, {"omp_without_flag", "-fopenmp"}, {"void_pointer", "static_cast<const float*>"}, {"semicolon", "syntax"},
      {"torch_header", "plain C++"}, {"read_only", "args->outputs"}, {"immediate", "constexpr"}, {"second_main", "Remove main()"},
      {"redefinition", "twice"}, {"brace", "not closed"}, {"static_lambda", "compile-time constant"},
  };
  for (const auto& k : table)
    for (const char* compiler : {"gcc", "clang"}) {
      const auto log = data(std::string(k.file) + "." + compiler + ".log");
      if (log.find("error") == std::string::npos) continue; // gcc only warns of narrowing
      INFO(k.file << " " << compiler);
      const auto hints = repairs_for(test::refused("build", "compiling the candidate failed", log));
      std::string all;
      for (const auto& h : hints) all += h.symptom + " -> " + h.cause + " " + h.remedy + "\n";
      INFO(all);
      CHECK(all.find(k.expected) != std::string::npos);
      CHECK(hints.front().symptom.size() > 5);
      // clang reports an OpenMP reduction over a struct as a missing operator; everywhere else the first hint is the cause.
      CHECK(first_hint(log).find(k.expected) != std::string::npos);
    }
}

TEST_CASE("the verifier's sentences lead to the cause") {
  struct known {
    const char* stage;
    const char* reason;
    const char* expected;
  };
  const known table[] = {
      {"run", "the candidate was killed by SIGSEGV (segmentation fault): it wrote 4 bytes past the end of output out0 during the call", "bounds"},
      {"run", "the candidate used a forbidden system call (openat of /etc/passwd) and was killed during the call", "file"},
      {"run", "the candidate did not come back within 2.0 s during the call", "endless loop"},
      {"run", "the candidate was killed by SIGKILL (CPU time or memory ran out) during the call", "memory"},
      {"run", "the candidate ended its process by itself (exit code 0) during the call", "exit"},
      {"run", "the candidate was killed by SIGILL (illegal instruction) during the call", "-march=native"},
      {"run", "the candidate left flush-to-zero or denormals-are-zero switched on after the call", "MXCSR"},
      {"compare", "out0[3, 17] is nan, expected 0.731 (large values); 512 of 4096 elements are wrong", "exp()"},
      {"compare", "out0[3, 17] is -nan, expected 0.731 (own inputs, seed 1); 4096 of 4096 elements are wrong", "0/0"},
      {"compare", "out0[0, 0] is inf, expected 91.2 (large values); 2000 of 4096 elements are wrong", "overflow"},
      {"compare", "out0[0, 0] is 0, expected 0.731 (own inputs, seed 1); 4096 of 4096 elements are wrong", "cleared but not computed"},
      {"compare", "out0[15, 1021] was not written, expected 0.5 (own inputs, seed 2); 48 of 16384 elements are wrong", "remainder"},
      {"compare", "out0[15, 1021] is 0.9, expected 0.5 (own inputs, seed 2); 48 of 16384 elements are wrong", "remainder"},
      {"compare", "out0[1] is 512, expected 4 (own inputs, seed 1); 128 of 128 elements are wrong", "factor 128"},
      {"compare", "out0[1] is -0.25, expected 0.25 (own inputs, seed 1); 128 of 128 elements are wrong", "sign"},
      {"compare", "out0[1] is 0.2501, expected 0.25 (own inputs, seed 1); 100 of 128 elements are wrong", "precision"},
      {"compare", "out0[7] is 12, expected 3 (tied values); 60 of 128 elements are wrong", "first of them"},
      {"compare", "out0[7] is 0.7, expected -0.3 (negative values); 128 of 128 elements are wrong", "-infinity"},
      {"compare", "out0[7] is 0.7, expected -0.3123 (own inputs, seed 1); 128 of 128 elements are wrong", "layout"},
      {"compare", "two runs on the same inputs gave different outputs (own inputs, seed 1), both within tolerance: it reads memory that it did not write, or keeps state between calls", "Initialise"},
      {"audit", "a call takes 3 us on inputs that it has not seen, but 100 ns on the same inputs again: it caches answers by content", "every call"},
      {"audit", "it changed its inputs", "local buffer"},
      {"audit", "it used 20 ms of CPU time in 10 ms in which no call was running: it works in the background, outside the measured time", "before returning"},
      {"build", "compiler flag '-fplugin=x' is not allowed: it loads code into the compiler", "-O3"},
  };
  for (const auto& k : table) {
    const auto hints = repairs_for(test::refused(k.stage, k.reason));
    std::string all;
    for (const auto& h : hints) all += h.cause + " " + h.remedy + "\n";
    INFO(k.reason << "\n" << all);
    CHECK(all.find(k.expected) != std::string::npos);
    CHECK(hints.size() <= 4);
  }
}

TEST_CASE("an unknown failure still gets advice, a passed candidate none, a hostile log does no harm") {
  CHECK(repairs_for(test::refused("run", "something new")).size() == 1);
  CHECK(repairs_for(test::refused("passed")).empty());
  const auto hints = repairs_for(test::refused("build", "\xff\xfe" + std::string(1 << 20, 'a'), std::string(4 << 20, '[') + std::string(1000, '\0')));
  REQUIRE_FALSE(hints.empty());
  CHECK(hints.front().symptom.size() < 1000);
  CHECK_NOTHROW(json(hints).dump());
  CHECK_NOTHROW(repairs_for(test::refused("compare", "out0[" + std::string(100000, '1') + "] is nan, expected")));
}

TEST_CASE("findings ask for the metrics that would tell more, the first finding's first, never many") {
  finding latency, stores, unknown;
  latency.what = bottleneck::memory_latency_bound;
  stores.what = bottleneck::store_bandwidth_bound;
  unknown.what = bottleneck::redundant_work;
  CHECK(metrics_to_ask({}).empty());
  CHECK(metrics_to_ask({unknown}).empty());
  const auto names = metrics_to_ask({stores, latency});
  REQUIRE(names.size() == 4);
  CHECK(names[0] == "LLC-stores");
  CHECK(names[3] == "LLC-load-misses");
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
}

TEST_CASE("a record's JSON names what lists show, and records of earlier versions are read") {
  auto r = failed(3, "confirm", "failed in a fresh process", "log");
  r.code.origin = "builtin";
  r.code.schedule = "{}";
  const json now = r;
  CHECK(now["candidate"] == r.code.id());
  CHECK(now["stage"] == "confirm");
  CHECK(now["reason"] == "failed in a fresh process");
  CHECK(json(now.get<iteration_record>()) == now);

  json earlier = {{"number", 3}, {"candidate", "0123456789ab"}, {"origin", "builtin"}, {"schedule", "{\"lanes\": 8}"}, {"stage", "confirm"}, {"reason", "refused"}, {"log", "a log"},
                  {"code", {{"source", "text"}, {"compiler", "clang"}}}, {"verdict", {{"stage", "passed"}, {"tolerance", 1e-4}}}};
  const auto read = earlier.get<iteration_record>();
  CHECK(read.stage() == "confirm");
  CHECK(read.failed());
  CHECK(read.verdict.reason == "refused");
  CHECK(read.verdict.log == "a log");
  CHECK(read.verdict.tolerance == 1e-4);
  CHECK(read.code.origin == "builtin");
  CHECK(read.code.schedule == "{\"lanes\": 8}");
  CHECK(read.code.source == "text");
  earlier["verdict"] = json::object(); // a profiler that died: no verdict was kept
  earlier["stage"] = "measure";
  CHECK(earlier.get<iteration_record>().verdict.stage == verdict_stage::measure);
  CHECK_THROWS_AS((json{{"reason", 5}}.get<iteration_record>()), json::exception);
}
