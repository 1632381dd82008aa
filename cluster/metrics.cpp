#include "cluster/metrics.hpp"

#include "base/version.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include <httplib.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;

constexpr double stale_seconds = 15;      ///< without news from the agents: not well
constexpr double day_seconds = 86400;     ///< Prometheus' unit of all times is the second
constexpr size_t threads = 2, most_body = 4096;
constexpr time_t request_seconds = 5;

} // namespace

struct metrics_server::impl {
  std::mutex mutex;                       ///< a scrape sees all of a set() or nothing
  prometheus::Registry registry;
  std::map<std::string, prometheus::Family<prometheus::Gauge>*> families;
  std::map<std::string, prometheus::Family<prometheus::Counter>*> counters;
  std::atomic<bool> takes_work = false, well = true;
  std::atomic<clock::time_point> heard = clock::now();
  httplib::Server server;
  std::thread thread;

  ~impl() {
    server.stop();
    if (thread.joinable()) thread.join();
  }

  /// A family is described where it is first set.
  void set(const std::string& name, const std::string& help, double value, const std::map<std::string, std::string>& labels = {}) {
    if (name.ends_with("_total")) return count(name, help, value, labels);
    auto& family = families[name];
    if (!family) family = &prometheus::BuildGauge().Name("pragma_" + name).Help(help).Register(registry);
    family->Add(labels).Set(value);
  }
  /// `value` is the whole count; where it has become less, that is a new one.
  void count(const std::string& name, const std::string& help, double value, const std::map<std::string, std::string>& labels) {
    auto& family = counters[name];
    if (!family) family = &prometheus::BuildCounter().Name("pragma_" + name).Help(help).Register(registry);
    auto* counter = &family->Add(labels);
    if (value < counter->Value()) {
      family->Remove(counter);
      counter = &family->Add(labels);
    }
    counter->Increment(value - counter->Value());
  }
  /// What is no more must not stay with its last value.
  void forget(const std::string& name) {
    if (const auto family = families.find(name); family != families.end()) {
      registry.Remove(*family->second);
      families.erase(family);
    }
    if (const auto family = counters.find(name); family != counters.end()) {
      registry.Remove(*family->second);
      counters.erase(family);
    }
  }

  bool lives() const { return well && std::chrono::duration<double>(clock::now() - heard.load()).count() < stale_seconds; }

  void answer_as_well_as_it_is() {
    const auto say = [](httplib::Response& to, bool good, const char* yes, const char* no) {
      to.status = good ? 200 : 503;
      to.set_content(good ? yes : no, "text/plain");
    };
    server.Get("/healthz", [this, say](const httplib::Request&, httplib::Response& to) { say(to, lives(), "ok\n", "an agent does not answer\n"); });
    server.Get("/readyz", [this, say](const httplib::Request&, httplib::Response& to) { say(to, lives() && takes_work, "ready\n", "takes no work now\n"); });
    server.Get("/metrics", [this](const httplib::Request&, httplib::Response& to) {
      const std::lock_guard lock(mutex);
      to.set_content(prometheus::TextSerializer().Serialize(registry.Collect()), "text/plain; version=0.0.4");
    });
  }
};

expected<std::unique_ptr<metrics_server>> metrics_server::open(const address& where) {
  auto p = std::make_unique<impl>();
  p->server.new_task_queue = [] { return new httplib::ThreadPool(threads); };
  p->server.set_read_timeout(request_seconds);
  p->server.set_write_timeout(request_seconds);
  p->server.set_payload_max_length(most_body);
  p->answer_as_well_as_it_is();
  if (!p->server.bind_to_port(where.host, where.port)) return fail(ec::io_error, "cannot serve metrics on " + where.text(), "is the port taken? choose another with --metrics ADDR:PORT");
  p->thread = std::thread([server = &p->server] { server->listen_after_bind(); });
  while (!p->server.is_running()) std::this_thread::yield(); // else it could not be stopped
  p->set("build_info", "version of this head", 1, {{"version", pragma_version}});
  return std::unique_ptr<metrics_server>(new metrics_server(std::move(p)));
}

metrics_server::metrics_server(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
metrics_server::~metrics_server() = default;
void metrics_server::ready(bool takes_work) { impl_->takes_work = takes_work; }
void metrics_server::stands_by() { impl_->heard = clock::now(); }
void metrics_server::set_unwell() { impl_->well = false; }

void metrics_server::set(const cluster_status& s, const door_counts& d) {
  auto& m = *impl_;
  const std::lock_guard lock(m.mutex);
  m.well = true;
  m.heard = clock::now();
  m.set("up_seconds", "since this head began", s.up_seconds);
  if (s.certificate_days >= 0) m.set("certificate_seconds", "until the head's certificate expires, in whole days", day_seconds * s.certificate_days);
  if (!s.standby.empty()) m.set("standby_in_step", "1: another head has everything and may take over", s.standby == "in step" ? 1 : 0);
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
  for (const char* name : {"node_jobs", "node_leases", "node_round_trip_seconds", "node_certificate_seconds", "node_failed_total"}) m.forget(name);
  for (const auto& member : s.members) {
    const auto& n = member.node;
    ++states[json(n.state).get<std::string>()];
    if (n.facts.devices.empty()) continue;
    const std::map<std::string, std::string> who{{"node", n.facts.name}};
    m.set("node_jobs", "jobs in hand", static_cast<double>(n.jobs.size()), who);
    m.set("node_failed_total", "jobs that failed through the node's fault", static_cast<double>(n.failed), who);
    m.set("node_round_trip_seconds", "of a heartbeat", member.round_trip_ms / 1e3, who);
    if (member.certificate_days >= 0) m.set("node_certificate_seconds", "until the node's certificate expires, in whole days", day_seconds * member.certificate_days, who);
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
