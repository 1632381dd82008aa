// pragma head, pragma node, pragma cluster: the members of a cluster, its certificates, and what it is doing.
#include "cli/cluster_text.hpp"
#include "cli/commands.hpp"
#include "cli/member.hpp"
#include "cli/node_command.hpp"
#include "cli/terminal.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "cluster/head.hpp"

#include <chrono>
#include <memory>
#include <thread>

namespace pragma::cli {

namespace {

constexpr auto watch_pause = std::chrono::seconds(1);

std::optional<std::filesystem::path> folder_of(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::filesystem::path>(text);
}

void add_head(CLI::App& app, action& chosen) {
  struct settings {
    std::string listen = "127.0.0.1:7447", tls, ready;
    double grace = 60;
  };
  auto s = std::make_shared<settings>();
  auto* command = app.add_subcommand("head", "serve a cluster: runs, knowledge and the run store behind one port");
  command->add_option("--listen", s->listen, "ADDR:PORT; off loopback only with --tls")->capture_default_str();
  command->add_option("--tls", s->tls, "folder with ca.pem, cert.pem, key.pem (`pragma cluster ca issue NAME`)");
  command->add_option("--grace", s->grace, "seconds for what is in flight after Ctrl-C")->capture_default_str();
  command->add_option("--ready-file", s->ready, "file that gets the port once the head listens");
  command->footer("Example:\n  pragma head --listen 0.0.0.0:7447 --tls ~/ca/head\nA run that is under way when the head stops goes on when it starts again.");
  command->callback([s, &chosen] {
    chosen = [s] {
      terminal out(false);
      auto listen = parse_address(s->listen, 7447);
      if (!listen) return report(out, listen.error());
      head_options options;
      options.listen = std::move(*listen);
      options.tls = folder_of(s->tls);
      options.runs = data_home() / "runs";
      options.tasks = data_home() / "tasks";
      options.ready_file = s->ready;
      auto served = serve_head(options, cancelled(), [&](const std::string& text) { out.line("head: " + printable(text)); }, s->grace);
      return served ? 0 : report(out, served.error());
    };
  });
}

int certificate(bool json_output, const expected<certificate_facts>& made, const std::string& what) {
  terminal out(json_output);
  if (!made) return report(out, made.error());
  out.result(*made);
  out.line(what + "  (valid until " + made->not_after + ")");
  return 0;
}

void add_ca(CLI::App& cluster, action& chosen) {
  auto* ca = cluster.add_subcommand("ca", "the cluster's own certificates, for mutual TLS");
  ca->require_subcommand(1);
  {
    struct settings {
      std::string folder, name = "pragma";
      bool json = false;
    };
    auto s = std::make_shared<settings>();
    auto* command = ca->add_subcommand("init", "make a certificate authority in a folder");
    command->add_option("dir", s->folder, "folder; its ca-key.pem must stay secret")->required();
    command->add_option("--name", s->name, "the cluster's name")->capture_default_str();
    command->add_flag("--json", s->json, "print JSON");
    command->footer("Example:\n  pragma cluster ca init ~/ca\n  pragma cluster ca issue head --dir ~/ca");
    command->callback([s, &chosen] {
      chosen = [s] { return certificate(s->json, create_ca(s->folder, s->name), "made " + s->folder + "/ca.pem and, for you alone, ca-key.pem"); };
    });
  }
  {
    struct settings {
      std::string name, folder = ".";
      int days = 825;
      bool json = false;
    };
    auto s = std::make_shared<settings>();
    auto* command = ca->add_subcommand("issue", "make a member's key and certificate: a folder for its --tls");
    command->add_option("name", s->name, "the member's name")->required();
    command->add_option("--dir", s->folder, "the authority's folder")->capture_default_str();
    command->add_option("--days", s->days, "validity")->capture_default_str()->check(CLI::Range(1, 3650));
    command->add_flag("--json", s->json, "print JSON");
    command->footer("Example:\n  pragma cluster ca issue gpu1 --dir ~/ca && scp -r ~/ca/gpu1 gpu1:pragma-tls");
    command->callback([s, &chosen] {
      chosen = [s] { return certificate(s->json, issue_certificate(s->folder, s->name, s->days), "made " + s->folder + "/" + s->name + ": copy it to that machine, over a safe way"); };
    });
  }
}

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

} // namespace

void add_cluster(CLI::App& app, action& chosen) {
  add_head(app, chosen);
  add_node(*app.add_subcommand("node", "offer this machine's hardware to a cluster"), chosen);
  auto* cluster = app.add_subcommand("cluster", "a cluster's certificates and state");
  cluster->require_subcommand(1);
  add_ca(*cluster, chosen);
  add_status(*cluster, chosen);
  add_release(*cluster, chosen);
}

} // namespace pragma::cli
