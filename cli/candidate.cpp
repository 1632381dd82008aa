// pragma verify, pragma profile: one candidate that the user has, without the loop.
#include "cli/candidate_file.hpp"
#include "cli/commands.hpp"
#include "cli/engine.hpp"
#include "cli/html.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"

#include "actors/examine.hpp"
#include "base/text.hpp"
#include "devices/device_lease.hpp"
#include "profilers/collect.hpp"

#include <memory>

namespace pragma::cli {

namespace {

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
    command.add_option("--flags", flags, "compiler flags, comma separated, e.g. --flags=-O3,-march=native")->delimiter(',')->allow_extra_args(false)->capture_default_str();
    add_threads(command, threads, "threads of the kernel and of Torch");
    command.add_option("--seeds", seeds, "fresh input seeds")->check(CLI::Range(1, 100))->capture_default_str();
    command.add_flag("--json", json, "print JSON");
  }
};

void show_verdict(terminal& out, const verdict& v, const std::string& language) {
  if (v.passed()) {
    // What has no tolerance of its own was compared as a drop-in: `checked` says how.
    out.line(out.green("passed") + (v.tolerance > 0 ? ": worst error " + format_number(v.worst_error, 3) + " of what is allowed (tolerance " + json(v.tolerance).dump() + ")" : ""));
    out.line("  checked: " + checked_text(v.checked));
    return;
  }
  if (!v.established()) {
    out.line(out.bold("not established") + ": " + v.reason);
    out.line("  this says nothing of the kernel; try again when the machine is quiet");
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
  for (const auto& hint : repairs_for(v, language)) out.line("  try: " + hint.remedy + " (" + hint.cause + ")");
}

/// The ratio and its two times; of a figure that was not established the reason, and no number.
std::string figure_text(terminal& out, const timing& t, const std::string& against) {
  if (t.contended) return out.bold("not established") + " against " + against + ": " + (t.note.empty() ? "the machine was busy" : printable(t.note));
  return speedup_text(t.speedup) + " against " + against + ": " + format_seconds(t.baseline_seconds) + " -> " + format_seconds(t.candidate_seconds);
}

void show_measurement(terminal& out, const examination& e, const std::string& against) {
  const auto& p = e.profile;
  const auto& t = e.side_by_side;
  out.line(figure_text(out, p.time, p.time.baseline));
  if (e.compared) out.line(figure_text(out, t, against + ", side by side"));
  else if (!against.empty()) out.line(out.red("not compared with " + against) + ": " + printable(t.note));
  if (p.time.contended || (e.compared && t.contended)) out.line("  this says nothing of the kernel; try again when the machine is quiet");
  size_t widest = 0;
  for (const auto& m : p.metrics) widest = std::max(widest, m.name.size());
  for (const auto& m : p.metrics)
    out.line("  " + padded(m.name, widest + 2) + html::quantity(m.value, m.unit) + "  [" + json(m.how).get<std::string>() +
             ", " + m.tool + "]" + (m.note.empty() ? "" : " " + m.note));
  for (const auto& line : p.missing) out.line(out.dim("  not had: " + line));
  for (const auto& line : table_lines(e.table)) out.line(line);
  print_findings(out, e.findings, e.profile);
}

/// 6 also where a figure that was asked for is none.
int exit_code_of(const examination& e, const std::string& against) {
  const auto& v = e.verdict;
  if (!v.established()) return exit_code(ec::measurement_failed);
  if (!v.passed()) return exit_code(v.stage == verdict_stage::build ? ec::build_failed : ec::candidate_failed);
  if (!e.measured) return 0;
  const bool figures = !e.profile.time.contended && (against.empty() || (e.compared && !e.side_by_side.contended));
  return figures ? 0 : exit_code(ec::measurement_failed);
}

int run(const candidate_settings& s, bool profile_too) {
  terminal out(s.json);
  if (profile_too)
    if (auto known = s.device.backend != "cpu" ? expected<void>() : check_metric_names(s.metrics); !known) return report(out, known.error());
  load_request load;
  load.path = std::filesystem::absolute(s.task).string();
  load.threads = s.threads;
  load.seeds = s.seeds;
  if (auto applied = s.device.apply(load); !applied) return report(out, applied.error());
  examine_request request;
  request.measure = profile_too;
  request.profile_seconds = s.profile_seconds;
  request.extra_metrics = s.metrics;
  request.against_name = s.against;
  auto read = read_candidate(s.source, s.compiler, s.flags);
  if (!read) return report(out, read.error());
  if (auto right = check_language(*read, load.backend); !right) return report(out, right.error());
  request.candidate = std::move(*read);
  if (!s.against.empty()) {
    auto second = read_candidate(s.against, s.compiler, s.flags);
    if (!second) return report(out, second.error());
    if (auto right = check_language(*second, load.backend); !right) return report(out, right.error());
    request.against = std::move(*second);
  }
  if (profile_too)
    if (auto given = hand_over_collectors(load); !given) out.line(out.dim("  the profilers that you registered are not used: " + given.error().message));

  workbench bench(&cancelled(), false, lease_file({}));
  out.status("starting the Torch reference and reading the task ...");
  auto loaded = load_checked(bench, load);
  if (!loaded) return report(out, loaded.error());
  auto found = examine(bench, *loaded, load, request, [&](const std::string& step) { out.status(step + " ..."); });
  if (!found) return report(out, found.error());
  auto all = document(*found);
  if (found->measured) all["diagnosed_with"] = found->with; // `pragma diagnose FILE`
  out.result(all);
  show_verdict(out, found->verdict, found->language);
  if (found->verdict.passed() && found->measured) show_measurement(out, *found, s.against);
  return exit_code_of(*found, s.against);
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
    command->add_option("--metrics", s->metrics, "further metrics by name, comma separated")->delimiter(',')->allow_extra_args(false);
    command->add_option("--profile-seconds", s->profile_seconds, "budget of all tools together; on a device 60 at the least")->capture_default_str();
    command->add_option("--against", s->against, "another candidate (or run.json) to time side by side with");
    command->footer("Example:\n  pragma profile examples/normalization_rms.py kernel.cpp\n  pragma profile task.py new/run.json --against old/run.json");
    command->callback([s, &chosen] { chosen = [s] { return run(*s, true); }; });
  }
}

} // namespace pragma::cli
