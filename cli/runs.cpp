// pragma runs, pragma show: what is in the run store, read beside a running writer.
#include "cli/commands.hpp"
#include "cli/engine.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"

#include "base/text.hpp"

#include <memory>

namespace pragma::cli {

namespace {

int list_cluster_runs(terminal& out, head_client& client, int limit) {
  auto runs = client.runs();
  if (!runs) return report(out, runs.error());
  if (limit > 0 && runs->size() > static_cast<size_t>(limit)) runs->resize(static_cast<size_t>(limit));
  if (runs->empty()) out.line("this head has no runs yet");
  for (const auto& r : *runs)
    out.line(r.id + "  " + r.state + std::string(r.state.size() < 11 ? 11 - r.state.size() : 0, ' ') + "  " +
             (r.speedup > 0 ? format_number(r.speedup, 3) + "x" : std::string("-")) + "  " + printable(r.task));
  out.result(*runs);
  return 0;
}

int list_runs(bool json_output, int limit, const head_choice& head) {
  terminal out(json_output);
  auto client = head.connect();
  if (!client) return report(out, client.error());
  if (*client) return list_cluster_runs(out, **client, limit);
  auto runs = list_stored_runs();
  if (!runs) return report(out, runs.error());
  json listed = json::array();
  if (runs->empty()) out.line("no runs yet; start one with `pragma optimize TASK.py`");
  int shown = 0;
  for (const auto& h : *runs) {
    if (limit > 0 && shown++ == limit) break;
    const auto name = h.environment.task.name.empty() ? std::filesystem::path(h.request.load.path).stem().string() : h.environment.task.name;
    listed.push_back({{"id", h.id}, {"task", name}, {"state", h.state}, {"started", h.started}, {"best_attempt", h.best_attempt},
                      {"speedup", h.confirmed ? json(h.final.time.speedup) : json(nullptr)}, {"stop_reason", h.stop_reason}});
    out.line(h.id + "  " + h.state + std::string(h.state.size() < 11 ? 11 - h.state.size() : 0, ' ') + "  " +
             (h.confirmed ? speedup_text(h.final.time.speedup) : std::string("-")) + "  " + name +
             (h.state == "failed" ? "  (" + h.stop_reason + ")" : ""));
  }
  out.result(listed);
  return 0;
}

int show_run(const std::string& id, bool json_output, int attempt, const head_choice& head) {
  terminal out(json_output);
  auto run = read_stored_run(id, head);
  if (!run) return report(out, run.error());
  out.result(run_document(*run));
  if (json_output) return 0;
  if (attempt > 0) {
    for (const auto& r : run->iterations)
      if (r.number == attempt) {
        for (const auto& line : r.reasoning) out.line(line);
        out.line("\n" + printable(r.code.source));
        if (!r.log.empty()) out.line("\n" + printable(r.log));
        return 0;
      }
    return report(out, {ec::not_found, "run " + id + " has no attempt " + std::to_string(attempt), "it has " + std::to_string(run->iterations.size())});
  }
  const auto& h = run->header;
  out.line("run      " + h.id + " (" + h.state + ")");
  out.line("task     " + h.request.load.path);
  out.line("started  " + h.started + (h.finished.empty() ? "" : ", ended " + h.finished));
  progress shown(out, h.request.stop.attempts);
  for (const auto& r : run->iterations) {
    run_event e;
    e.what = "iteration";
    e.iteration = r;
    shown.on_event(e);
  }
  print_summary(out, *run, h.request.out_dir, "");
  return 0;
}

} // namespace

void add_runs(CLI::App& app, action& chosen) {
  {
    struct settings {
      bool json = false;
      int limit = 20;
      head_choice head;
    };
    auto s = std::make_shared<settings>();
    auto* command = app.add_subcommand("runs", "list the recorded runs, newest first");
    command->add_flag("--json", s->json, "print JSON");
    command->add_option("--limit", s->limit, "most runs to list (0: all)")->capture_default_str();
    s->head.add_to(*command);
    command->footer("Example:\n  pragma runs --limit 5");
    command->callback([s, &chosen] { chosen = [s] { return list_runs(s->json, s->limit, s->head); }; });
  }
  {
    struct settings {
      std::string id;
      bool json = false;
      int attempt = 0;
      head_choice head;
    };
    auto s = std::make_shared<settings>();
    auto* command = app.add_subcommand("show", "show a recorded run, or one attempt of it");
    command->add_option("run", s->id, "run id, from `pragma runs`")->required();
    command->add_option("--attempt", s->attempt, "its reasoning, source and log");
    command->add_flag("--json", s->json, "print JSON");
    s->head.add_to(*command);
    command->footer("Example:\n  pragma show 20261121-101502-3fa9c1 --attempt 4");
    command->callback([s, &chosen] { chosen = [s] { return show_run(s->id, s->json, s->attempt, s->head); }; });
  }
}

} // namespace pragma::cli
