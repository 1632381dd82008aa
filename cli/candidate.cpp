// pragma verify, pragma profile: one candidate that the user has, without the loop.
#include "cli/commands.hpp"
#include "cli/engine.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"

#include "actors/workbench.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "diagnosis/rules.hpp"
#include "profilers/collect.hpp"

#include <memory>

namespace pragma::cli {

namespace {

/// A C++ source with the flags given, a Triton module, or the best version of a run.json, which has its own.
expected<candidate> read_candidate(const std::string& file, const std::string& compiler, const std::vector<std::string>& flags) {
  candidate c;
  c.origin = "user";
  c.compiler = compiler;
  c.flags = flags;
  if (file.ends_with(".py")) {
    c.language = "triton";
    c.compiler.clear();
    c.flags.clear();
  }
  if (!file.ends_with(".json")) {
    auto source = read_file(file, defaults::max_candidate_source);
    if (!source) return fail(source.error());
    c.source = std::move(*source);
    return c;
  }
  auto text = read_file(file);
  if (!text) return fail(text.error());
  auto document = parse_json(*text, file);
  if (!document) return fail(document.error());
  if (!document->is_object()) return fail(ec::parse_error, file + " is no run.json: not an object", "it should be the run.json of a result folder");
  const auto number_of = [](const json& value) { return value.is_number_integer() ? value.get<int64_t>() : 0; };
  const auto run = document->value("run", json());
  const auto best = run.is_object() ? number_of(run.value("best", json())) : 0;
  const auto attempts = document->value("iterations", json());
  for (const auto& it : attempts.is_array() && best > 0 ? attempts : json::array()) {
    if (!it.is_object() || number_of(it.value("number", json())) != best) continue;
    auto record = from_json_value<iteration_record>(it, file);
    if (!record) return fail(record.error());
    c.source = record->code.source;
    c.language = record->code.language;
    c.compiler = record->code.compiler;
    c.flags = record->code.flags;
    return c;
  }
  return fail(ec::not_found, file + " has no accepted version", "it should be the run.json of a result folder");
}

struct candidate_settings {
  std::string task, source, against, compiler = "gcc";
  std::vector<std::string> flags = {"-O3", "-march=native"}, metrics;
  int threads = 1, seeds = defaults::verify_seeds;
  double profile_seconds = 10;
  bool json = false;
  backend_options device;

  void add_to(CLI::App& command) {
    device.add_to(command);
    command.add_option("task", task, "KernelBench-format file")->required();
    command.add_option("candidate", source, "C++ source that defines pragma_kernel (pragma_kernel.h), with --backend cuda a Triton module with ModelNew (.py), or a run.json: its best version")->required();
    command.add_option("--compiler", compiler, "gcc or clang")->check(CLI::IsMember({"gcc", "clang"}))->capture_default_str();
    command.add_option("--flags", flags, "compiler flags, comma separated, e.g. --flags=-O3,-march=native")->delimiter(',')->capture_default_str();
    command.add_option("--threads", threads, "threads of the kernel and of Torch")->check(CLI::Range(1, 1024))->capture_default_str();
    command.add_option("--seeds", seeds, "fresh input seeds")->check(CLI::Range(1, 100))->capture_default_str();
    command.add_flag("--json", json, "print JSON");
  }
};

void show_verdict(terminal& out, const verdict& v, const std::string& language) {
  if (v.passed()) {
    out.line(out.green("passed") + ": worst error " + format_number(v.worst_error, 3) + " of what is allowed (tolerance " + json(v.tolerance).dump() + ")");
    out.line("  checked: " + join(v.checked, ", "));
    return;
  }
  out.line(out.red("failed at " + json(v.stage).get<std::string>()) + ": " + v.reason);
  for (const auto& m : v.mismatches) {
    std::vector<std::string> index;
    for (auto i : m.index) index.push_back(std::to_string(i));
    out.line("  " + m.input_set + ": " + m.output + "[" + join(index, ", ") + "] expected " + m.expected + ", got " + m.got + " (" +
             std::to_string(m.wrong_elements) + " of " + std::to_string(m.total_elements) + " wrong)");
  }
  if (!v.log.empty()) out.line(printable(v.log));
  for (const auto& hint : repairs_for(json(v.stage).get<std::string>(), v.reason, v.log, language)) out.line("  try: " + hint.remedy + " (" + hint.cause + ")");
}

int run(const candidate_settings& s, bool profile_too) {
  terminal out(s.json);
  if (profile_too)
    if (auto known = s.device.backend != "cpu" ? expected<void>() : check_metric_names(s.metrics); !known) return report(out, known.error());
  auto read = read_candidate(s.source, s.compiler, s.flags);
  if (!read) return report(out, read.error());
  const auto c = std::move(*read);
  candidate other;
  if (!s.against.empty()) {
    auto second = read_candidate(s.against, s.compiler, s.flags);
    if (!second) return report(out, second.error());
    other = std::move(*second);
  }
  load_request load;
  load.path = std::filesystem::absolute(s.task).string();
  load.threads = s.threads;
  load.seeds = s.seeds;
  if (auto applied = s.device.apply(load); !applied) return report(out, applied.error());
  if (profile_too)
    if (auto given = hand_over_collectors(load); !given) out.line(out.dim("  the profilers that you registered are not used: " + given.error().message));
  const auto chosen = find_backend(load.backend);
  for (const candidate* one : std::initializer_list<const candidate*>{&c, &other})
    if (chosen && !one->source.empty() && one->language != chosen->language)
      return report(out, error{ec::invalid_argument, "backend " + chosen->name + " runs " + chosen->language + ", and this candidate is " + one->language,
                          chosen->on_device() ? "give a Triton module (.py)" : "add --backend cuda"});
  workbench bench(&cancelled(), false);
  out.status("starting the Torch reference and reading the task ...");
  auto loaded = bench.load(load);
  if (!loaded) return report(out, loaded.error());
  if (!loaded->unverifiable.empty())
    return report(out, {ec::task_invalid, "this task cannot be verified: a kernel that gives " + join(loaded->unverifiable, ", ") + " would pass", ""});
  out.status("building and verifying ...");
  auto checked = bench.verify(c);
  if (!checked) return report(out, checked.error());
  json document = {{"task", loaded->task.name}, {"device", loaded->limits.cpu}, {"baseline", loaded->baseline}, {"candidate", c.id()}, {"verdict", *checked}};
  if (!checked->passed() || !profile_too) {
    out.result(document);
    show_verdict(out, *checked, c.language);
    return checked->passed() ? 0 : exit_code(checked->stage == verdict_stage::build ? ec::build_failed : ec::candidate_failed);
  }
  out.status("timing and profiling ...");
  measure_request request;
  request.candidate = c;
  request.verdict = *checked;
  request.profile_seconds = s.profile_seconds;
  request.extra_metrics = s.metrics;
  if (!s.against.empty()) {
    auto right = bench.verify(other);
    if (!right) return report(out, right.error());
    if (!right->passed()) return report(out, {ec::candidate_failed, s.against + " is not right: " + right->reason, "a time is only compared with that of a right kernel"});
    request.has_best = true;
    request.best = other;
  }
  auto measured = bench.measure(request);
  if (!measured) return report(out, measured.error());
  const auto& p = measured->profile;
  diagnosis_input input;
  input.current = &p;
  input.limits = &loaded->limits;
  input.source = c.source;
  input.flops = loaded->task.flops;
  input.bytes = loaded->task.bytes;
  input.written_bytes = 0;
  for (const auto& output : loaded->task.outputs) input.written_bytes += static_cast<double>(output.bytes());
  input.threads = s.threads;
  input.tf32 = load.allow_tf32;
  const auto findings = measured->verdict.passed() ? diagnose(input) : std::vector<finding>{};
  document["verdict"] = measured->verdict;
  document["profile"] = p;
  document["findings"] = findings;
  if (measured->compared) document["against"] = {{"candidate", other.id()}, {"timing", measured->against_best}};
  out.result(document);
  show_verdict(out, measured->verdict, c.language);
  if (!measured->verdict.passed()) return exit_code(ec::candidate_failed);
  out.line(speedup_text(p.time.speedup) + " against " + p.time.baseline + ": " + format_seconds(p.time.baseline_seconds) + " -> " +
           format_seconds(p.time.candidate_seconds) + (p.time.contended ? out.red("  under contention") : ""));
  if (measured->compared)
    out.line(speedup_text(measured->against_best.speedup) + " against " + s.against + ", side by side: " + format_seconds(measured->against_best.baseline_seconds) + " -> " +
             format_seconds(measured->against_best.candidate_seconds) + (measured->against_best.contended ? out.red("  under contention") : ""));
  else if (!s.against.empty()) out.line(out.red("not compared with " + s.against) + ": " + printable(measured->against_best.note));
  for (const auto& m : p.metrics)
    out.line("  " + m.name + std::string(m.name.size() < 28 ? 28 - m.name.size() : 1, ' ') + json(m.value).dump() + " " + m.unit + "  [" + json(m.how).get<std::string>() +
             ", " + m.tool + "]" + (m.note.empty() ? "" : " " + m.note));
  for (const auto& line : p.missing) out.line(out.dim("  not had: " + line));
  for (const auto& f : findings) {
    out.line(out.bold(json(f.what).get<std::string>()) + (f.level.empty() ? "" : " (" + f.level + ")") + ", confidence " + format_number(f.confidence, 2) + ": " + f.why);
    for (const auto& e : f.proof) out.line("    evidence: " + (e.text.empty() ? e.metric + " = " + json(e.value).dump() + " " + e.unit : e.text));
    for (const auto& r : f.remedies) out.line("    try: " + r);
  }
  return 0;
}

} // namespace

void add_candidate(CLI::App& app, action& chosen) {
  {
    auto s = std::make_shared<candidate_settings>();
    auto* command = app.add_subcommand("verify", "is this kernel right? (fresh seeds, hostile-proof)");
    s->add_to(*command);
    command->footer("Example:\n  pragma verify examples/normalization_rms.py kernel.cpp --flags=-O3,-march=native\n  pragma verify task.py module.py --backend cuda --json");
    command->callback([s, &chosen] { chosen = [s] { return run(*s, false); }; });
  }
  {
    auto s = std::make_shared<candidate_settings>();
    auto* command = app.add_subcommand("profile", "verify, time against Torch, read the counters, diagnose");
    s->add_to(*command);
    command->add_option("--metrics", s->metrics, "further metrics by name, comma separated")->delimiter(',');
    command->add_option("--profile-seconds", s->profile_seconds, "budget of all tools together; on a device 60 at the least")->capture_default_str();
    command->add_option("--against", s->against, "another candidate (or run.json) to time side by side with");
    command->footer("Example:\n  pragma profile examples/normalization_rms.py kernel.cpp\n  pragma profile task.py new/run.json --against old/run.json");
    command->callback([s, &chosen] { chosen = [s] { return run(*s, true); }; });
  }
}

} // namespace pragma::cli
