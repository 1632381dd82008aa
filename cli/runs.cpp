// pragma runs, pragma show: what is in the run store, read beside a running writer.
#include "cli/commands.hpp"
#include "cli/engine.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "cli/stored_runs.hpp"

#include "base/text.hpp"
#include "cluster/certificates.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <memory>
#include <thread>

namespace pragma::cli {

namespace {

struct runs_settings {
  bool json = false, mine = false, watch = false;
  int limit = 20;
  std::string filter;
  head_choice head;
};

/// One run as a line and as JSON.
struct listed_run {
  std::string id, state, task, line;
  json data;
};

std::vector<listed_run> rows_from(const std::vector<run_summary>& runs) {
  std::vector<listed_run> all;
  for (const auto& h : runs) {
    listed_run r{h.id, h.state, h.task, h.id + "  " + padded(h.state, 13) + "  " + padded(h.wall_seconds > 0 ? format_seconds(h.wall_seconds) : "-", 8) + "  " + padded(figure_text(h), 24) + "  " + h.task + (h.state == "failed" || h.state == "left as it is" ? "  (" + h.stop_reason + ")" : ""), {}};
    r.data = {{"id", h.id}, {"task", h.task}, {"state", h.state}, {"started", h.started}, {"wall_seconds", h.wall_seconds}, {"best_attempt", h.best_attempt},
              {"speedup", figure_of(h)}, {"stop_reason", h.stop_reason}};
    all.push_back(std::move(r));
  }
  return all;
}

std::vector<listed_run> rows_from(const std::vector<cluster_run>& runs, bool with_owners) {
  std::vector<listed_run> all;
  for (const auto& r : runs)
    all.push_back({r.id, r.state, r.task, r.id + "  " + padded(r.state, 11) + "  " + padded(figure_text(r), 24) + "  " + printable(r.task) +
                   (r.owner.empty() || !with_owners ? "" : "  (" + printable(r.owner) + ")") + (r.priority != 0 ? "  priority " + std::to_string(r.priority) : ""), json(r)});
  return all;
}

/// Those whose id, task or state has the filter's text in it, at most `limit`.
std::vector<listed_run> chosen_of(std::vector<listed_run> all, const runs_settings& s) {
  std::erase_if(all, [&](const auto& r) {
    const auto text = r.id + "\n" + r.task + "\n" + r.state;
    return std::search(text.begin(), text.end(), s.filter.begin(), s.filter.end(), [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); }) == text.end();
  });
  if (s.limit > 0 && all.size() > static_cast<size_t>(s.limit)) all.resize(static_cast<size_t>(s.limit));
  return all;
}

/// Who I am to the head, by my certificate.
std::string own_name(const head_choice& head) {
  const auto files = head.certificates();
  if (files && *files)
    if (const auto own = check_tls_files(tls_files::in(**files))) return own->name;
  return "local";
}

expected<std::vector<listed_run>> read_list(head_client* client, const runs_settings& s, const std::string& me) {
  if (!client) {
    auto stored = list_stored_runs();
    if (!stored) return fail(stored.error());
    return chosen_of(rows_from(*stored), s);
  }
  auto runs = client->runs();
  if (!runs) return fail(runs.error());
  if (s.mine) std::erase_if(*runs, [&](const auto& r) { return r.owner != me; });
  return chosen_of(rows_from(*runs, !s.mine), s);
}

int list_runs(const runs_settings& s) {
  terminal out(s.json);
  auto client = s.head.connect();
  if (!client) return report(out, client.error());
  if (s.mine && !*client) return report(out, {ec::invalid_argument, "--mine is for the runs of a head", "--head HOST:PORT, or PRAGMA_HEAD; here all runs are yours"});
  const auto me = s.mine ? own_name(s.head) : std::string();
  do {
    auto runs = read_list(client->get(), s, me);
    if (!runs) return report(out, runs.error());
    if (s.watch) out.clear_screen();
    if (runs->empty()) out.line(s.filter.empty() ? "no runs yet; start one with `pragma optimize TASK.py`" : "no run whose id, task or state has \"" + s.filter + "\" in it");
    json data = json::array();
    for (const auto& r : *runs) {
      out.line(r.line);
      data.push_back(r.data);
    }
    out.result(data, s.watch);
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1); s.watch && !cancelled() && std::chrono::steady_clock::now() < end;)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (s.watch && !cancelled());
  return 0;
}

int delete_runs(const std::vector<std::string>& words, bool as_json, const head_choice& head) {
  terminal out(as_json);
  auto where = head.chosen();
  if (!where) return report(out, where.error());
  if (!where->empty())
    return report(out, {ec::unsupported, "the runs of a head are deleted on its machine only", "there, while it is stopped: pragma runs delete RUN --data FOLDER; of this machine: --local"});
  auto deleted = delete_stored_runs(words);
  if (!deleted) return report(out, deleted.error());
  out.result({{"deleted", *deleted}});
  for (const auto& id : *deleted) out.line("deleted " + id);
  out.line(out.dim("the folders of their results are untouched"));
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
        if (!r.verdict.log.empty()) out.line("\n" + printable(r.verdict.log));
        return 0;
      }
    return report(out, {ec::not_found, "run " + id + " has no attempt " + std::to_string(attempt), "it has " + std::to_string(run->iterations.size()) + (run->iterations.size() == 1 ? " attempt" : " attempts")});
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

void add_delete(CLI::App& runs, action& chosen) {
  struct settings {
    std::vector<std::string> words;
    bool json = false;
    head_choice head;
  };
  auto s = std::make_shared<settings>();
  auto* command = runs.add_subcommand("delete", "remove runs from this machine's record; the folders of their results stay");
  command->add_option("run", s->words, "run ids, `last`, or a task's name (its newest run)")->required();
  command->add_flag("--json", s->json, "print JSON");
  s->head.add_to(*command);
  command->footer("Example:\n  pragma runs delete 20261121-101502-3fa9c1\n  pragma runs delete last");
  command->callback([s, &chosen] { chosen = [s] { return delete_runs(s->words, s->json, s->head); }; });
}

} // namespace

void add_runs(CLI::App& app, action& chosen) {
  {
    auto s = std::make_shared<runs_settings>();
    auto* command = app.add_subcommand("runs", "list the recorded runs, newest first");
    command->add_flag("--json", s->json, "print JSON");
    command->add_option("--limit", s->limit, "most runs to list (0: all)")->capture_default_str();
    command->add_option("--filter", s->filter, "only runs with this text in their id, task or state");
    s->head.add_to(*command);
    command->add_flag("--mine", s->mine, "of a head: only those that I began (an admin sees all)");
    command->add_flag("--watch", s->watch, "again every second, until Ctrl-C (with --json: one line a second)");
    command->footer("Example:\n  pragma runs --limit 5\n  pragma runs --filter softmax --watch\n  pragma runs --mine --watch --head 10.0.0.5:7447 --tls ~/pragma-tls");
    command->require_subcommand(0, 1);
    add_delete(*command, chosen);
    command->callback([s, command, &chosen] {
      if (command->get_subcommands().empty()) chosen = [s] { return list_runs(*s); };
    });
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
    command->add_option("run", s->id, "run id, `last`, or a task's name (its newest run)")->required();
    command->add_option("--attempt", s->attempt, "its reasoning, source and log");
    command->add_flag("--json", s->json, "print JSON");
    s->head.add_to(*command);
    command->footer("Example:\n  pragma show 20261121-101502-3fa9c1 --attempt 4\n  pragma show last");
    command->callback([s, &chosen] { chosen = [s] { return show_run(s->id, s->json, s->attempt, s->head); }; });
  }
}

} // namespace pragma::cli
