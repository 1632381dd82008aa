// pragma runs, pragma show: what is in the run store, read beside a running writer.
#include "cli/commands.hpp"
#include "cli/engine.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"

#include "base/text.hpp"
#include "cluster/certificates.hpp"

#include <chrono>
#include <memory>
#include <thread>

namespace pragma::cli {

namespace {

struct runs_settings {
  bool json = false, mine = false, watch = false;
  int limit = 20;
  head_choice head;
};

std::string column(const std::string& text, size_t width) { return text + std::string(text.size() < width ? width - text.size() : 0, ' '); }

int list_cluster_runs(terminal& out, head_client& client, const runs_settings& s) {
  std::string me;
  if (s.mine) {
    const auto files = s.head.certificates();
    if (files && *files)
      if (const auto own = check_tls_files(tls_files::in(**files))) me = own->name;
    if (me.empty()) me = "local";
  }
  do {
    auto runs = client.runs();
    if (!runs) return report(out, runs.error());
    if (s.mine) std::erase_if(*runs, [&](const auto& r) { return r.owner != me; });
    if (s.limit > 0 && runs->size() > static_cast<size_t>(s.limit)) runs->resize(static_cast<size_t>(s.limit));
    if (s.watch) out.clear_screen();
    if (runs->empty()) out.line("this head has no runs of yours yet");
    for (const auto& r : *runs)
      out.line(r.id + "  " + column(r.state, 11) + "  " + column(r.speedup > 0 ? format_number(r.speedup, 3) + "x" : std::string("-"), 8) + "  " + printable(r.task) +
               (r.owner.empty() || s.mine ? "" : "  (" + printable(r.owner) + ")") + (r.priority != 0 ? "  priority " + std::to_string(r.priority) : ""));
    out.result(*runs, s.watch);
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1); s.watch && !cancelled() && std::chrono::steady_clock::now() < end;)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (s.watch && !cancelled());
  return 0;
}

int list_runs(const runs_settings& s) {
  terminal out(s.json);
  auto client = s.head.connect();
  if (!client) return report(out, client.error());
  if (*client) return list_cluster_runs(out, **client, s);
  if (s.mine || s.watch) return report(out, {ec::invalid_argument, "--mine and --watch are for the runs of a head", "--head HOST:PORT, or PRAGMA_HEAD"});
  const int limit = s.limit;
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
    auto s = std::make_shared<runs_settings>();
    auto* command = app.add_subcommand("runs", "list the recorded runs, newest first");
    command->add_flag("--json", s->json, "print JSON");
    command->add_option("--limit", s->limit, "most runs to list (0: all)")->capture_default_str();
    s->head.add_to(*command);
    command->add_flag("--mine", s->mine, "of a head: only those that I began (an admin sees all)");
    command->add_flag("--watch", s->watch, "of a head: again every second, until Ctrl-C");
    command->footer("Example:\n  pragma runs --limit 5\n  pragma runs --mine --watch --head 10.0.0.5:7447 --tls ~/pragma-tls");
    command->callback([s, &chosen] { chosen = [s] { return list_runs(*s); }; });
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
