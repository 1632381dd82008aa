// pragma diagnose: where the time of a recorded attempt went and what limited it; how far findings kept their word.
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/stored_runs.hpp"
#include "cli/terminal.hpp"

#include "actors/examine.hpp"
#include "actors/store.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "diagnosis/scores.hpp"

#include <cmath>
#include <memory>

namespace pragma::cli {

namespace {

struct diagnose_settings {
  std::string run = "last";
  int attempt = 0;
  bool scores = false, json = false;
  head_choice head;
};

std::string cell(std::string text, size_t width) { return padded(std::move(text), width - 1) + " "; }

/// "divider_bound          12  5 of 7.4   9 predicted, 4 within 25%, brought 0.92 of what they promised   0.79"
std::string score_line(const rule_score& s, double weight) {
  std::string text = cell(s.rule, 24) + cell(std::to_string(s.followed), 10) + cell(std::to_string(s.better) + " of " + format_number(s.expected, 1), 16);
  text += cell(s.predicted > 0 ? std::to_string(s.near) + " of " + std::to_string(s.predicted) : "-", 14);
  return text + cell(s.predicted > 0 ? format_number(std::exp(s.log_ratio / s.predicted), 2) + "x" : "-", 12) + format_number(weight, 2);
}

int show_scores(terminal& out) {
  const auto all = list_stored_scores();
  if (!all) return report(out, all.error());
  json data = json::array();
  for (const auto& m : *all) {
    const auto rules = scores_of(m);
    json rows = json::array();
    out.line(out.bold(m.machine) + ", " + std::to_string(m.runs.size()) + (m.runs.size() == 1 ? " run" : " runs") + " in which an attempt followed a finding");
    out.line(cell("finding", 24) + cell("followed", 10) + cell("better (said)", 16) + cell("within 25%", 14) + cell("brought", 12) + "weight");
    for (const auto& r : rules) {
      const double weight = weight_of(rules, r.rule);
      out.line(score_line(r, weight));
      json row = r;
      row["weight"] = weight;
      rows.push_back(std::move(row));
    }
    data.push_back({{"machine", m.machine}, {"runs", m.runs}, {"rules", std::move(rows)}});
  }
  if (all->empty()) out.line("no attempt of a recorded run followed a finding yet: `pragma optimize TASK.py` makes runs");
  out.result(data);
  return 0;
}

/// What `pragma profile --json` wrote, judged by this program's rules.
int diagnose_file(terminal& out, const std::filesystem::path& file) {
  const auto text = read_file(file);
  if (!text) return report(out, text.error());
  auto document = parse_json(*text, file.string());
  if (!document) return report(out, document.error());
  if (!document->is_object() || !document->contains("profile") || !document->contains("diagnosed_with"))
    return report(out, {ec::invalid_argument, file.string() + " holds no profile and what belongs to it", "`pragma profile TASK.py KERNEL --json > FILE` writes one"});
  const auto measured = from_json_value<profile>((*document)["profile"], file.string());
  if (!measured) return report(out, measured.error());
  const auto with = from_json_value<diagnosed_with>((*document)["diagnosed_with"], file.string());
  if (!with) return report(out, with.error());
  const auto input = diagnosis_of(*with, *measured);
  const auto findings = diagnose(input);
  const auto table = table_of(input);
  const auto& task = (*document)["task"]; // the file may be anybody's: of any type
  out.line(out.bold(task.is_string() ? task.get<std::string>() : "a task without a name") + ", candidate " + measured->candidate + ", " + file.string());
  for (const auto& line : table_lines(table)) out.line(line);
  print_findings(out, findings, *measured, {});
  out.result({{"file", file.string()}, {"time_table", table}, {"findings", findings}});
  return 0;
}

int diagnose_run(const diagnose_settings& s) {
  terminal out(s.json);
  if (s.scores) return show_scores(out);
  if (s.run.ends_with(".json")) return diagnose_file(out, s.run);
  const auto run = read_stored_run(s.run, s.head);
  if (!run) return report(out, run.error());
  const auto& h = run->header;
  const int wanted = s.attempt > 0 ? s.attempt : h.best_attempt;
  const iteration_record* found = nullptr;
  for (const auto& r : run->iterations)
    if (r.number == wanted) found = &r;
  if (!found)
    return report(out, {ec::not_found, s.attempt > 0 ? "run " + h.id + " has no attempt " + std::to_string(wanted) : "run " + h.id + " has no version that passed",
                        "it has " + std::to_string(run->iterations.size()) + " attempts; choose one with --attempt"});
  if (!found->passed() || found->code.measured.metrics.empty())
    return report(out, {ec::not_found, "attempt " + std::to_string(wanted) + " of run " + h.id + " has no profile" + (found->passed() ? "" : ": it failed at " + found->stage()),
                        "`pragma show " + h.id + " --attempt " + std::to_string(wanted) + "` has its reason"});
  const auto input = diagnosis_of(h.environment, h.request.load, found->code.measured, nullptr, found->code.source, found->code.flags);
  auto findings = diagnose(input);
  weigh(findings, h.scores);
  const auto table = table_of(input);
  out.line(out.bold(summary_of(h).task) + ", run " + h.id + ", attempt " + std::to_string(wanted));
  for (const auto& line : table_lines(table)) out.line(line);
  print_findings(out, findings, found->code.measured, h.scores);
  out.result({{"run", h.id}, {"attempt", wanted}, {"time_table", table}, {"findings", findings}});
  return 0;
}

} // namespace

void add_diagnose(CLI::App& app, action& chosen) {
  auto s = std::make_shared<diagnose_settings>();
  auto* command = app.add_subcommand("diagnose", "where the time of a recorded attempt went; how far findings kept their word");
  command->add_option("run", s->run, "run id, `last`, a task's name (its newest run), or a file that `pragma profile --json` wrote")->capture_default_str();
  command->add_option("--attempt", s->attempt, "this one instead of the best")->check(CLI::Range(1, 1000000));
  command->add_flag("--scores", s->scores, "for each rule and machine: how often an attempt followed it, what it promised and what that brought");
  command->add_flag("--json", s->json, "print JSON");
  s->head.add_to(*command);
  command->footer("Example:\n  pragma diagnose last\n  pragma diagnose 20261121-101502-3fa9c1 --attempt 4\n  pragma profile task.py kernel.cpp --json > there.json   # on the machine that has the hardware\n  pragma diagnose there.json\n  pragma diagnose --scores");
  command->callback([s, &chosen] { chosen = [s] { return diagnose_run(*s); }; });
}

} // namespace pragma::cli
