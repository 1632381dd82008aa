// pragma node, pragma cluster status and release, pragma cancel: the members of a cluster and what it is doing.
#include "cli/cluster_text.hpp"
#include "cli/commands.hpp"
#include "cli/member.hpp"
#include "cli/node_command.hpp"
#include "cli/progress.hpp"
#include "cli/stored_runs.hpp"
#include "cli/terminal.hpp"

#include <chrono>
#include <memory>
#include <thread>

namespace pragma::cli {

namespace {

constexpr auto watch_pause = std::chrono::seconds(1);

void add_status(CLI::App& cluster, action& chosen) {
  struct settings {
    head_choice head;
    bool json = false, watch = false;
  };
  auto s = std::make_shared<settings>();
  auto* command = cluster.add_subcommand("status", "nodes, devices, leases, work in flight, runs");
  s->head.add_to(*command);
  command->add_flag("--watch", s->watch, "again every second, until Ctrl-C");
  command->add_flag("--json", s->json, "print JSON (with --watch: one line a second)");
  command->footer("Example:\n  pragma cluster status --head 10.0.0.5:7447 --tls ~/pragma-tls --watch");
  command->callback([s, &chosen] {
    chosen = [s] {
      terminal out(s->json);
      auto client = s->head.connect();
      if (!client) return report(out, client.error());
      if (!*client) return report(out, {ec::invalid_argument, "no head is named", "--head HOST:PORT, or PRAGMA_HEAD"});
      do {
        auto status = (*client)->status();
        if (!status) return report(out, status.error());
        out.result(*status, s->watch);
        if (s->watch) out.clear_screen();
        if (!s->json)
          for (const auto& line : status_lines(*status)) out.line(line);
        for (const auto end = std::chrono::steady_clock::now() + watch_pause; s->watch && !cancelled() && std::chrono::steady_clock::now() < end;)
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
      } while (s->watch && !cancelled());
      return 0;
    };
  });
}

void add_release(CLI::App& cluster, action& chosen) {
  struct settings {
    head_choice head;
    std::string node;
  };
  auto s = std::make_shared<settings>();
  auto* command = cluster.add_subcommand("release", "let a node out of quarantine");
  command->add_option("node", s->node, "its name in `pragma cluster status`")->required();
  s->head.add_to(*command);
  command->footer("Example:\n  pragma cluster release gpu1 --head 10.0.0.5:7447 --tls ~/pragma-tls");
  command->callback([s, &chosen] {
    chosen = [s] {
      terminal out(false);
      auto client = s->head.connect();
      if (!client) return report(out, client.error());
      if (!*client) return report(out, {ec::invalid_argument, "no head is named", "--head HOST:PORT, or PRAGMA_HEAD"});
      if (auto done = (*client)->release(s->node); !done) return report(out, done.error());
      out.line("node " + s->node + " may work again");
      return 0;
    };
  });
}

void add_cancel(CLI::App& app, action& chosen) {
  struct settings {
    head_choice head;
    std::string run;
    bool json = false;
  };
  auto s = std::make_shared<settings>();
  auto* command = app.add_subcommand("cancel", "end a run of a head at once, whatever is in flight (it can be resumed)");
  command->add_option("run", s->run, "run id, `last`, or a task's name (its newest run)")->required();
  s->head.add_to(*command);
  command->add_flag("--json", s->json, "print JSON");
  command->footer("Example:\n  pragma cancel 20261121-101502-3fa9c1 --head 10.0.0.5:7447 --tls ~/pragma-tls");
  command->callback([s, &chosen] {
    chosen = [s] {
      terminal out(s->json);
      auto client = s->head.connect();
      if (!client) return report(out, client.error());
      if (!*client) return report(out, {ec::invalid_argument, "no head is named", "--head HOST:PORT, or PRAGMA_HEAD"});
      const auto id = find_run(s->run, **client).value_or(s->run); // a head lists its newest runs only, and knows more
      auto done = (*client)->cancel(id);
      if (!done) return report(out, done.error());
      out.result(json{{"run", id}, {"was_at_work", *done}});
      out.line(*done ? "run " + id + " is cancelled; `pragma resume` goes on with it" : "run " + id + " was not at work");
      return 0;
    };
  });
}

void add_attach(CLI::App& app, action& chosen) {
  struct settings {
    head_choice head;
    std::string run;
  };
  auto s = std::make_shared<settings>();
  auto* command = app.add_subcommand("attach", "stay with a run of a head until it ends; Ctrl-C ends the run after what is in flight");
  command->add_option("run", s->run, "run id, `last`, or a task's name (its newest run)")->required();
  s->head.add_to(*command);
  command->footer("Example:\n  pragma attach 20261121-101502-3fa9c1 --head 10.0.0.5:7447 --tls ~/pragma-tls");
  command->callback([s, &chosen] {
    chosen = [s] {
      terminal out(false);
      auto client = s->head.connect();
      if (!client) return report(out, client.error());
      if (!*client) return report(out, {ec::invalid_argument, "no head is named", "--head HOST:PORT, or PRAGMA_HEAD"});
      progress shown(out, 0);
      auto result = (*client)->attach(find_run(s->run, **client).value_or(s->run), [&](const run_event& e) { shown.on_event(e); }, cancelled());
      if (!result) return report(out, result.error());
      print_summary(out, *result, result->header.request.out_dir, "");
      return exit_code_of_run(*result);
    };
  });
}

} // namespace

void add_cluster(CLI::App& app, action& chosen) {
  add_head(app, chosen);
  add_node(*app.add_subcommand("node", "offer this machine's hardware to a cluster"), chosen);
  auto* cluster = app.add_subcommand("cluster", "a cluster's certificates and state");
  cluster->require_subcommand(1);
  cluster->footer("Example:\n  pragma cluster ca init ~/ca\n  pragma cluster status --head 10.0.0.5:7447 --tls ~/ca/me");
  add_ca(*cluster, chosen);
  add_cancel(app, chosen);
  add_attach(app, chosen);
  add_status(*cluster, chosen);
  add_release(*cluster, chosen);
}

} // namespace pragma::cli
