#include "cluster/metrics.hpp"

#include "base/version.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>

#include <civetweb.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;

constexpr double stale_seconds = 15;      ///< without news from the agents: not well

} // namespace

struct metrics_server::impl {
  std::mutex mutex;                       ///< a scrape sees all of a set() or nothing
  prometheus::Registry registry;
  std::map<std::string, prometheus::Family<prometheus::Gauge>*> families;
  std::atomic<bool> takes_work = false, well = true;
  std::atomic<clock::time_point> heard = clock::now();
  mg_context* server = nullptr;

  ~impl() {
    if (server) ::mg_stop(server);
  }

  /// A family is described where it is first set.
  void set(const std::string& name, const std::string& help, double value, const std::map<std::string, std::string>& labels = {}) {
    auto& family = families[name];
    if (!family) family = &prometheus::BuildGauge().Name("pragma_" + name).Help(help).Register(registry);
    family->Add(labels).Set(value);
  }
  /// What is no more must not stay with its last value.
  void forget(const std::string& name) {
    const auto family = families.find(name);
    if (family == families.end()) return;
    registry.Remove(*family->second);
    families.erase(family);
  }

  bool lives() const { return well && std::chrono::duration<double>(clock::now() - heard.load()).count() < stale_seconds; }

  static int answer(mg_connection* to, int code, const char* type, const std::string& text) {
    ::mg_printf(to, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", code, code == 200 ? "OK" : "Service Unavailable", type, text.size());
    ::mg_write(to, text.data(), text.size());
    return code;
  }
  static int health(mg_connection* to, void* self) { return static_cast<impl*>(self)->lives() ? answer(to, 200, "text/plain", "ok\n") : answer(to, 503, "text/plain", "an agent does not answer\n"); }
  static int readiness(mg_connection* to, void* self) {
    const auto* i = static_cast<impl*>(self);
    return i->lives() && i->takes_work ? answer(to, 200, "text/plain", "ready\n") : answer(to, 503, "text/plain", "takes no work now\n");
  }
  static int all(mg_connection* to, void* self) {
    auto* i = static_cast<impl*>(self);
    std::string text;
    {
      const std::lock_guard lock(i->mutex);
      text = prometheus::TextSerializer().Serialize(i->registry.Collect());
    }
    return answer(to, 200, "text/plain; version=0.0.4", text);
  }
};

expected<std::unique_ptr<metrics_server>> metrics_server::open(const address& where) {
  auto p = std::make_unique<impl>();
  const auto place = where.text();
  const char* settings[] = {"listening_ports", place.c_str(), "num_threads", "2", "request_timeout_ms", "5000", "enable_directory_listing", "no", nullptr};
  mg_callbacks callbacks{};
  p->server = ::mg_start(&callbacks, nullptr, settings);
  if (!p->server) return fail(ec::io_error, "cannot serve metrics on " + place, "is the port taken? choose another with --metrics ADDR:PORT");
  ::mg_set_request_handler(p->server, "/metrics$", impl::all, p.get());
  ::mg_set_request_handler(p->server, "/healthz$", impl::health, p.get());
  ::mg_set_request_handler(p->server, "/readyz$", impl::readiness, p.get());
  p->set("build_info", "version of this head", 1, {{"version", pragma_version}});
  return std::unique_ptr<metrics_server>(new metrics_server(std::move(p)));
}

metrics_server::metrics_server(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
metrics_server::~metrics_server() = default;
void metrics_server::ready(bool takes_work) { impl_->takes_work = takes_work; }
void metrics_server::set_unwell() { impl_->well = false; }

void metrics_server::set(const cluster_status& s, const door_counts& d) {
  auto& m = *impl_;
  const std::lock_guard lock(m.mutex);
  m.well = true;
  m.heard = clock::now();
  m.set("up_seconds", "since this head began", s.up_seconds);
  if (s.certificate_days >= 0) m.set("certificate_days", "until the head's certificate expires", s.certificate_days);
  m.set("jobs_in_flight", "jobs that nodes have in hand", static_cast<double>(s.in_flight));
  m.set("jobs_queued", "jobs that wait for a node", static_cast<double>(s.queued));
  m.set("jobs_assigned_total", "jobs given out since the start", static_cast<double>(s.assigned));
  m.set("jobs_requeued_total", "jobs queued again since the start", static_cast<double>(s.requeued));
  m.set("answers_dropped_total", "late, doubled or foreign answers since the start", static_cast<double>(s.duplicates));
  m.set("queue_wait_seconds_mean", "mean wait of the jobs given out", s.mean_queue_seconds);
  m.set("connections", "members connected", static_cast<double>(d.open - d.strangers));
  m.set("strangers", "connections that have not greeted yet", static_cast<double>(d.strangers));
  for (const auto& [what, value] : {std::pair{"accepted", d.accepted}, {"refused", d.refused}, {"handshake_failed", d.handshakes_failed}, {"evicted", d.evicted}, {"bad_frame", d.bad_frames}, {"forbidden", d.forbidden}})
    m.set("door_events_total", "what happened at the front door since the start", static_cast<double>(value), {{"what", what}});
  m.set("door_bytes_total", "bytes through the front door since the start", static_cast<double>(d.bytes_in), {{"direction", "in"}});
  m.set("door_bytes_total", "", static_cast<double>(d.bytes_out), {{"direction", "out"}});
  std::map<std::string, double> states{{"ready", 0}, {"quarantined", 0}, {"draining", 0}, {"away", 0}};
  for (const char* name : {"node_jobs", "node_leases", "node_round_trip_seconds", "node_certificate_days", "node_failed_total"}) m.forget(name);
  for (const auto& member : s.members) {
    const auto& n = member.node;
    ++states[json(n.state).get<std::string>()];
    if (n.facts.devices.empty()) continue;
    const std::map<std::string, std::string> who{{"node", n.facts.name}};
    m.set("node_jobs", "jobs in hand", static_cast<double>(n.jobs.size()), who);
    m.set("node_failed_total", "jobs that failed through the node's fault", static_cast<double>(n.failed), who);
    m.set("node_round_trip_seconds", "of a heartbeat", member.round_trip_ms / 1e3, who);
    if (member.certificate_days >= 0) m.set("node_certificate_days", "until the node's certificate expires", member.certificate_days, who);
    for (const auto& lease : n.leases) m.set("node_leases", "1: a measurement holds the device", lease.job.empty() ? 0 : 1, {{"node", n.facts.name}, {"device", lease.device}});
  }
  for (const auto& [state, count] : states) m.set("nodes", "by state", count, {{"state", state}});
}

void metrics_server::set(const std::vector<cluster_run>& runs) {
  std::map<std::string, double> states{{"queued", 0}, {"running", 0}, {"finished", 0}, {"interrupted", 0}, {"failed", 0}};
  std::map<std::string, double> users;
  for (const auto& r : runs) {
    ++states[r.state];
    if (r.state == "running") ++users[r.owner];
  }
  const std::lock_guard lock(impl_->mutex);
  impl_->forget("user_runs");
  for (const auto& [state, count] : states) impl_->set("runs", "of the 500 newest, by state", count, {{"state", state}});
  for (const auto& [user, count] : users) impl_->set("user_runs", "running, by user", count, {{"user", user}});
}

} // namespace pragma
