// pragma head: serves a cluster; and the backup of what it keeps.
#include "cli/commands.hpp"
#include "cli/terminal.hpp"

#include "actors/store.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "cluster/door.hpp"
#include "cluster/head.hpp"
#include "cluster/local_system.hpp"
#include "cluster/log.hpp"
#include "cluster/service.hpp"
#include "cluster/standby.hpp"

#include <memory>

namespace pragma::cli {

namespace {

namespace fs = std::filesystem;

struct head_settings {
  std::string listen = "127.0.0.1:7447", tls, ready, metrics, peer;
  log_options log;
  double grace = 5, job_minutes = 30;
  bool alone = false, serve = false;
};

int serve(const head_settings& s) {
  terminal out(false);
  head_options options;
  auto listen = parse_address(s.listen, 7447);
  if (!listen) return report(out, listen.error());
  options.listen = std::move(*listen);
  if (!s.metrics.empty()) {
    auto where = parse_address(s.metrics, 7448);
    if (!where) return report(out, where.error());
    options.metrics = std::move(*where);
  }
  if (!s.peer.empty()) {
    auto other = parse_address(s.peer, 7447);
    if (!other) return report(out, other.error());
    if (auto good = may_use(*other, !s.tls.empty(), "dialling"); !good) return report(out, good.error());
    options.peer = std::move(*other);
  }
  if (s.serve && s.peer.empty()) return report(out, {ec::invalid_argument, "--serve is for one of two heads", "--peer HOST:PORT names the other"});
  options.pair = data_home() / "pair.json";
  options.runs = data_home() / "runs";
  if (s.serve)
    if (auto told = serve_next_time(options.pair, options.runs); !told) return report(out, told.error());
  if (!s.tls.empty()) options.tls = s.tls;
  options.tasks = data_home() / "tasks";
  options.quotas = data_home() / "quotas.json";
  options.ready_file = s.ready;
  options.grace_seconds = s.grace;
  options.limits.job_seconds = 60 * s.job_minutes;
  auto log = s.log;
  log.who = "head";
  if (auto begun = begin_log(log); !begun) return report(out, begun.error());
  const auto once = [&options]() -> int {
    terminal again(false);
    auto served = serve_head(options, cancelled());
    leave_process(!served ? report(again, served.error()) : *served == head_end::stood_down ? exit_begin_anew : 0);
  };
  if (s.alone) return once();
  if (auto good = may_use(options.listen, options.tls.has_value(), "listening on"); !good) return report(out, good.error());
  auto socket = listen_on(options.listen); // here, so that connections wait while the child is started again
  if (!socket) return report(out, socket.error());
  options.inherited = socket->fd;
  return keep_serving(once, cancelled(), [](const std::string& text) { log_event(log_level::error, text); });
}

expected<uint64_t> copy_folder(const fs::path& from, const fs::path& to) {
  std::error_code problem;
  if (!fs::exists(from, problem)) return uint64_t{0};
  fs::create_directories(to, problem);
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::overwrite_existing, problem);
  if (problem) return fail(ec::io_error, "cannot copy " + from.string() + " to " + to.string() + ": " + problem.message());
  return uint64_t{1};
}

/// The other folders first when keeping, so that no run is kept whose task is not; runs are read beside a head that writes them.
expected<uint64_t> copy_home(const fs::path& from, const fs::path& to) {
  std::error_code ignored;
  if (!fs::exists(from / "runs" / "CURRENT", ignored)) return fail(ec::not_found, "there is no run store in " + from.string(), "name the head's folder with --data DIR");
  if (fs::exists(to / "runs" / "CURRENT", ignored)) return fail(ec::invalid_argument, to.string() + " has runs already", "choose an empty folder");
  auto source = open_runs(from / "runs", run_store::mode::read_only); // as of now: what comes later is not in it
  if (!source) return fail(source.error());
  for (const char* folder : {"tasks", "transcripts"})
    if (auto copied = copy_folder(from / folder, to / folder); !copied) return fail(copied.error());
  if (fs::exists(from / "quotas.json", ignored))
    if (auto text = read_file(from / "quotas.json"))
      if (auto kept = write_file_atomic(to / "quotas.json", *text); !kept) return fail(kept.error());
  fs::create_directories(to / "runs", ignored);
  auto target = open_runs(to / "runs", run_store::mode::read_write);
  if (!target) return fail(target.error());
  return source->copy_into(*target);
}

void add_copy(CLI::App& head, action& chosen, const char* name, bool backup) {
  struct settings {
    std::string folder;
    bool json = false;
  };
  auto s = std::make_shared<settings>();
  auto* command = head.add_subcommand(name, backup ? "copy runs, tasks and transcripts into a folder, beside a head that works" : "put a backup into an empty folder, wherever that is (--data)");
  command->add_option("dir", s->folder, "folder of the backup")->required();
  command->add_flag("--json", s->json, "print JSON");
  command->footer(backup ? "Example:\n  pragma head backup /backup/pragma-monday" : "Example:\n  pragma head restore /backup/pragma-monday --data /srv/pragma\nA head that starts there goes on with the runs that were under way.");
  command->callback([s, backup, &chosen] {
    chosen = [s, backup] {
      terminal out(s->json);
      const auto home = data_home();
      auto copied = backup ? copy_home(home, s->folder) : copy_home(s->folder, home);
      if (!copied) return report(out, copied.error());
      out.result(json{{"runs", *copied}, {"from", backup ? home.string() : s->folder}, {"to", backup ? s->folder : home.string()}});
      out.line(std::to_string(*copied) + " runs copied to " + (backup ? s->folder : home.string()));
      return 0;
    };
  });
}

} // namespace

void add_head(CLI::App& app, action& chosen) {
  auto s = std::make_shared<head_settings>();
  auto* command = app.add_subcommand("head", "serve a cluster: runs, knowledge and the run store behind one port");
  command->add_option("--listen", s->listen, "ADDR:PORT; off loopback only with --tls")->capture_default_str();
  command->add_option("--tls", s->tls, "folder with ca.pem, cert.pem, key.pem and perhaps crl.pem (`pragma cluster ca issue NAME --role head`); changes are noticed");
  command->add_option("--metrics", s->metrics, "ADDR:PORT for /metrics (Prometheus), /healthz and /readyz; no TLS there");
  command->add_option("--peer", s->peer, "HOST:PORT of the other of two heads, which has --peer, too: one serves, the other follows it and takes over when it is gone");
  command->add_flag("--serve", s->serve, "with --peer: serve now, whatever the other head has; what only the other recorded is put aside there");
  command->add_option("--grace", s->grace, "seconds for what is in flight after SIGTERM or Ctrl-C")->capture_default_str()->check(CLI::Range(0.0, 60.0));
  command->add_option("--job-minutes", s->job_minutes, "for one job of a node that beats; then another does it")->capture_default_str()->check(CLI::Range(0.05, 1440.0));
  command->add_option("--log-format", s->log.format, "text or json (a line an event)")->capture_default_str();
  command->add_option("--log-level", s->log.level, "debug, info, warn or error")->capture_default_str();
  command->add_option("--ready-file", s->ready, "file that gets the port once the head listens");
  command->add_flag("--no-supervisor", s->alone, "one process, which does not start itself again after a crash");
  command->footer("Example:\n  pragma head --listen 0.0.0.0:7447 --tls ~/ca/head --metrics 127.0.0.1:7448\n"
                  "Two heads, of which one serves (nodes: --join A,B; users: --head A,B):\n  pragma head --listen 0.0.0.0:7447 --tls ~/ca/head --peer OTHER:7447\n"
                  "SIGTERM is a checkpoint: runs go on when the head starts again, and nodes and users' commands wait for it.");
  command->require_subcommand(0, 1);
  add_copy(*command, chosen, "backup", true);
  add_copy(*command, chosen, "restore", false);
  command->callback([s, command, &chosen] {
    if (command->get_subcommands().empty()) chosen = [s] { return serve(*s); };
  });
}

} // namespace pragma::cli
