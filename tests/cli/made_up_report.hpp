// A run that never ran, and one full of markup, for tests of the reports.
#pragma once

#include "diagnosis/conductor.hpp"

namespace pragma::test {

inline const std::string hostile = "</pre></script><script>alert(1)</script><img src=x onerror=\"alert(2)\">'\"&amp;\x01\xff]]>";

inline iteration_record attempt(int number, double speedup, bool new_best) {
  iteration_record it;
  it.number = number;
  it.new_best = new_best;
  it.code.origin = "builtin";
  it.code.attempt = number;
  it.code.compiler = "gcc";
  it.code.flags = {"-O3", "-march=native"};
  it.code.source = "// version " + std::to_string(number) + "\n#include \"pragma_kernel.h\"\nfloat common;\nint unroll = " + std::to_string(number) + ";\n";
  it.code.rationale = "rationale of " + std::to_string(number);
  it.code.has_profile = true;
  auto& p = it.code.measured;
  p.time.candidate_seconds = 4.2e-3 / speedup;
  p.time.baseline_seconds = 4.2e-3;
  p.time.speedup = {speedup, speedup * 0.97, speedup * 1.03};
  p.time.baseline = "torch 1.13.0a0 eager, 1 thread";
  p.time.blocks_accepted = 23;
  p.time.blocks_tried = 25;
  p.metrics = {{"seconds_per_call", p.time.candidate_seconds, "s", "timer", provenance::measured, ""},
               {"achieved_gbs", 33.5 / p.time.candidate_seconds / 1e3, "GB/s", "timer", provenance::measured, ""},
               {"achieved_gflops", 8.4 / p.time.candidate_seconds / 1e3, "GFLOP/s", "timer", provenance::measured, ""},
               {"callgrind.Ir", 1e7 / speedup, "count", "callgrind 3.19.0", provenance::simulated, "one call of the profiling twin"}};
  p.remarks = {{12, "gcc 12.2.0", "missed", "control flow in loop"}};
  p.missing = {"perf: no PMU on this machine"};
  finding f;
  f.what = bottleneck::memory_bandwidth_bound;
  f.level = "memory";
  f.confidence = 0.85;
  f.line = 12;
  f.why = "why of " + std::to_string(number);
  f.proof = {{"achieved_gbs", 11.8, "GB/s", 9.2, true, "11.8 GB/s of 12.9 GB/s measured for memory"}};
  f.remedies = {"use streaming stores"};
  it.findings = {f};
  it.reasoning = {"Current code:", "  Speedup = " + std::to_string(speedup)};
  it.actions = {"fuse the two passes"};
  auto& v = it.verdict;
  v.stage = verdict_stage::passed;
  v.log = "log of " + std::to_string(number);
  v.checked = {"own inputs, 5 seeds", "large values"};
  v.tolerance = 1e-4;
  v.worst_error = 0.31;
  v.binary = "0123abcd";
  it.code_seconds = 0.1, it.build_seconds = 1.1, it.verify_seconds = 0.6, it.time_seconds = 2, it.profile_seconds = 3, it.wall_seconds = 6.9;
  if (new_best && number > 1) it.against_best = {1.2, 1.1, 1.3};
  return it;
}

inline iteration_record failed(int number, verdict_stage stage, const std::string& reason) {
  auto it = attempt(number, 1, false);
  it.verdict.stage = stage;
  it.verdict.reason = reason;
  it.code.measured = {};
  it.code.has_profile = false;
  it.findings.clear();
  return it;
}

inline json document_of(const std::vector<iteration_record>& iterations, int best) {
  machine_limits limits;
  limits.cpu = "AMD EPYC";
  limits.cores = 2;
  limits.cache_bytes = {32768, 524288, 33554432};
  limits.copy_gbs = {180, 85, 42, 12.9};
  limits.read_gbs = {190, 90, 45, 14};
  limits.peak_gflops = 95;
  limits.measured_at = "2026-11-21";
  json run = {{"id", "20261121-113000-ab12"},
              {"state", "finished"},
              {"started", "2026-11-21T11:30:00Z"},
              {"finished", "2026-11-21T11:32:00Z"},
              {"stop_reason", "attempts used up"},
              {"task", {{"name", "Softplus"}, {"category", "activation"}, {"source", "class Model(nn.Module): ..."}, {"flops", 8.4e6}, {"bytes", 33.5e6}, {"notes", {"a note on the task"}}}},
              {"options", {{"coder", "builtin"}, {"attempts", 7}}},
              {"environment", {{"cpu", "AMD EPYC"}, {"python", "/usr/bin/python3"}, {"torch", "1.13.0a0"}, {"baseline", "eager"}, {"compilers", {"gcc 12.2.0", "clang 14.0.6"}}, {"limits", limits}}},
              {"totals", {{"wall", 48.2}, {"load", 2.1}, {"coder", 0.8}, {"build", 7.7}, {"verify", 4.4}, {"time", 14.0}, {"profile", 17.5}, {"confirm", 1.2}, {"overhead", 0.5}}},
              {"best", best},
              {"confirmed", best > 0}};
  if (best > 0) {
    timing t = iterations.at(static_cast<size_t>(best) - 1).code.measured.time;
    t.speedup = {2.31, 2.25, 2.38};
    run["final"] = {{"timing", t}, {"verdict", iterations.at(static_cast<size_t>(best) - 1).verdict}};
  }
  return {{"run", run}, {"iterations", iterations}};
}

inline json sample() {
  return document_of({attempt(1, 1.24, true), failed(2, verdict_stage::build, "error: 'foo' was not declared"), attempt(3, 1.08, false), attempt(4, 2.29, true),
                      failed(5, verdict_stage::compare, "element [3, 17] of out0 is 0, expected 0.731"), attempt(6, 2.2, false), attempt(7, 1.9, false)}, 4);
}

/// A suite with categories, a comparison and failures; every free text is `words`.
inline json sample_suite(const std::string& words) {
  const auto task = [&](const std::string& name, double value, double seconds) {
    return json{{"name", name}, {"category", "activation"}, {"status", "ok"}, {"run", "r"}, {"speedup", {{"value", value}, {"low", value * 0.9}, {"high", value * 1.1}}}, {"baseline_seconds", seconds * value},
                {"candidate_seconds", seconds}, {"attempts", 8}, {"roofline_share", 70.0}, {"wall_seconds", 80.0}, {"task_hash", "aabbccddeeff"}};
  };
  const json figures = {{"category", "activation"}, {"n", 3}, {"success", 3}, {"geometric_mean", 2.1}, {"arithmetic_mean", 2.3}, {"fast_1", 1.0}};
  const json change = {{"tasks", {{{"name", "9_a"}, {"ratio", {{"value", 1.2}, {"low", 1.1}, {"high", 1.3}}}}, {{"name", "10_b"}, {"ratio", {{"value", 1.01}, {"low", 0.9}, {"high", 1.1}}}}}}, {"lost", {words}}, {"open", {"11_c"}},
                       {"mean", {{"value", 1.1}, {"low", 0}, {"high", 0}}}};
  return {{"suite", words},
          {"tasks", {task("9_a", 3.5, 2e-3), task("10_b", 1.5, 9e-6), task("11_c", 12.5, 0.4), {{"name", words}, {"category", words}, {"status", "failed"}, {"reason", words}}}},
          {"categories", {figures}},
          {"overall", figures},
          {"compared", {{"with", words}, {"change", change}}},
          {"options", {{"coder", words}}},
          {"total_tasks", 4}};
}

} // namespace pragma::test
