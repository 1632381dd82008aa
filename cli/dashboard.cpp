// pragma dashboard: the live page of this machine's runs, or of a head's.
#include "cli/commands.hpp"
#include "cli/engine.hpp"
#include "base/line_diff.hpp"
#include "cli/terminal.hpp"
#include "cli/stored_runs.hpp"

#include "actors/run_log.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "cluster/page_door.hpp"
#include "dashboard/dashboard.hpp"
#include "knowledge/library.hpp"

#include <mutex>

namespace pragma::cli {

namespace {

constexpr int threads_beyond_loopback = 128; ///< each open page holds one, and so does a handshake that dawdles

struct dashboard_settings {
  int port = 7451;
  std::string address = "127.0.0.1", certificates;
  std::vector<std::string> suites;
  head_choice head;
};

json listed(const run_summary& h) {
  return {{"id", h.id},
          {"task", h.task},
          {"state", h.state},
          {"started", h.started},
          {"owner", h.owner},
          {"speedup", figure_of(h)},
          {"stamp", h.state + " " + json(h.wall_seconds).dump() + " " + std::to_string(h.best_attempt)}};
}

expected<json> runs_here() {
  auto runs = list_stored_runs();
  if (!runs) return fail(runs.error());
  json all = json::array();
  for (const auto& h : *runs) all.push_back(listed(h));
  return all;
}

expected<json> suites_of(const std::vector<std::string>& folders) {
  json all = json::array();
  for (const auto& folder : folders) {
    const auto file = std::filesystem::path(folder) / "bench.json";
    auto text = read_file(file);
    if (!text) return fail(text.error());
    auto document = parse_json(*text, file.string());
    if (!document) return fail(document.error());
    if (!document->is_object()) return fail(ec::parse_error, file.string() + " is not a table of results");
    all.push_back({{"name", folder}, {"tasks", document->value("tasks", json::array())}, {"overall", document->value("overall", json::object())}});
  }
  return all;
}

json diff_lines(const std::string& before, const std::string& after) {
  static constexpr const char* kinds[] = {"same", "added", "removed", "gap"};
  json all = json::array();
  for (const auto& line : line_diff(before, after)) all.push_back({{"kind", kinds[static_cast<size_t>(line.what)]}, {"text", line.text}});
  return all;
}

/// A head's runs and nodes, over one connection that all requests share.
struct remote {
  std::mutex mutex;
  std::unique_ptr<head_client> client;
};

void read_from_head(dashboard::source& from, std::unique_ptr<head_client> client) {
  auto head = std::make_shared<remote>();
  head->client = std::move(client);
  from.runs = [head]() -> expected<json> {
    const std::lock_guard lock(head->mutex);
    auto runs = head->client->runs();
    if (!runs) return fail(runs.error());
    json all = json::array();
    for (const auto& r : *runs) {
      json one = r;
      one["stamp"] = short_hash(one.dump(-1, ' ', false, json::error_handler_t::replace));
      one["speedup"] = r.speedup > 0 ? json{{"value", r.speedup}} : json(nullptr);
      all.push_back(std::move(one));
    }
    return all;
  };
  from.run = [head](const std::string& id) -> expected<json> {
    const std::lock_guard lock(head->mutex);
    auto run = head->client->record(id);
    if (!run) return fail(run.error());
    return run_document(*run);
  };
  from.log = [head](const std::string& id, uint64_t next) {
    const std::lock_guard lock(head->mutex);
    json lines = json::array();
    auto news = head->client->news(id, next);
    if (!news) return lines;
    for (auto n = news->next - news->events.size(); const auto& event : news->events) {
      auto line = line_of(event);
      line.n = n++;
      lines.push_back(line);
    }
    return lines;
  };
  from.cluster = [head]() -> expected<json> {
    const std::lock_guard lock(head->mutex);
    auto status = head->client->status();
    if (!status) return fail(status.error());
    return json(*status);
  };
}

dashboard::source source_of(const dashboard_settings& s, std::unique_ptr<head_client> client) {
  dashboard::source from;
  from.runs = runs_here;
  from.run = [](const std::string& id) -> expected<json> {
    auto run = read_stored_run(id);
    if (!run) return fail(run.error());
    return run_document(*run);
  };
  from.log = [](const std::string& id, uint64_t next) { return json(read_run_log(data_home() / "logs", id, next)); };
  from.cluster = []() -> expected<json> { return json(nullptr); };
  if (client) read_from_head(from, std::move(client));
  from.diff = diff_lines;
  from.ask = [](const std::string& text) -> expected<json> {
    if (text.empty()) return fail(ec::invalid_argument, "ask something");
    auto compendium = library::open(library_paths::usual(), {}, true);
    if (!compendium) return fail(compendium.error());
    auto found = compendium->ask({text, 8});
    if (!found) return fail(found.error());
    return json{{"covered", found->found.in_scope}, {"entries", found->entries}};
  };
  from.suites = [folders = s.suites] { return suites_of(folders); };
  return from;
}

int run_dashboard(const dashboard_settings& s) {
  terminal out(false);
  if (const auto colon = s.address.find(':'); colon != std::string::npos && colon == s.address.rfind(':'))
    return report(out, {ec::invalid_argument, "--listen takes an address, and the port is an option of its own", "--listen " + s.address.substr(0, colon) + " --port " + s.address.substr(colon + 1)});
  if (auto readable = suites_of(s.suites); !readable) return report(out, readable.error());
  web::listen_options options;
  options.address = s.address;
  options.port = s.port;
  if (s.certificates.empty()) {
    auto secret = web::kept_secret(data_home() / "dashboard-token");
    if (!secret) return report(out, secret.error());
    options.secret = *secret;
  } else {
    auto door = open_page_door(s.certificates);
    if (!door) return report(out, door.error());
    options.door = std::move(*door);
    options.threads = threads_beyond_loopback;
  }
  auto client = s.head.connect();
  if (!client) return report(out, client.error());
  auto where = web::listener::open(options);
  if (!where) return report(out, where.error());
  dashboard::serve(*where, source_of(s, std::move(*client)), share_dir() / "dashboard");
  out.line("dashboard: " + where->address() + (options.door ? "/" : "/?token=" + options.secret));
  if (options.door) out.line(out.dim("for browsers with a certificate of this CA (`pragma cluster ca browser NAME`): users see their own runs, admins all"));
  out.line(out.dim("reads the run store beside whatever runs; Ctrl-C ends the page, not the runs"));
  where->run(cancelled());
  return 0;
}

} // namespace

void add_dashboard(CLI::App& app, action& chosen) {
  auto s = std::make_shared<dashboard_settings>();
  auto* command = app.add_subcommand("dashboard", "a live page of the runs on this machine, in the browser");
  command->add_option("--port", s->port, "port (0: any that is free)")->check(CLI::Range(0, 65535))->capture_default_str();
  command->add_option("--listen", s->address, "address; off loopback only with --listen-tls")->capture_default_str();
  command->add_option("--listen-tls", s->certificates, "folder with ca.pem, cert.pem, key.pem and perhaps crl.pem of role head (`pragma cluster ca issue NAME --role head --host ADDRESS`): TLS, and each browser needs a certificate; changes are noticed");
  command->add_option("--suite", s->suites, "result folder of `pragma bench` to show; may be given several times");
  s->head.add_to(*command);
  command->footer("Example:\n  pragma dashboard --suite /tmp/level1\nFrom another machine: ssh -L 7451:127.0.0.1:7451 THIS_MACHINE, and open the same address there.\n"
                  "For others, with certificates in their browsers: pragma dashboard --listen 0.0.0.0 --listen-tls ~/ca/page");
  command->callback([s, &chosen] { chosen = [s] { return run_dashboard(*s); }; });
}

} // namespace pragma::cli
