#include "cluster/placement.hpp"

#include "base/text.hpp"
#include "base/version.hpp"
#include "cluster/log.hpp"

#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <set>

namespace pragma {

namespace {

constexpr size_t most_away = 1000;                         ///< nodes that are shown as away

std::string random_word() {
  std::random_device source;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", source(), source());
  return text;
}

struct placement_state {
  static inline const char* name = "placement";
  using pointer = cluster_actor::stateful_pointer<placement_state>;
  using clock = std::chrono::steady_clock;

  struct member {
    node_actor handle;
    node_hello hello;
    double round_trip_ms = 0;
  };
  struct open_job {
    work_order order;
    caf::typed_response_promise<work_answer> promise;
  };

  pointer self = nullptr;
  placement_options options;
  dispatcher places;
  std::map<std::string, member> members;      ///< by node
  std::map<std::string, open_job> jobs;       ///< by id
  std::map<std::string, node_status> away;    ///< lost and not back: shown, nothing else
  std::string start = random_word();
  clock::time_point began = clock::now();
  bool held = false;                          ///< gives out nothing more

  double now() const { return std::chrono::duration<double>(clock::now() - began).count(); }

  node_welcome join(node_hello hello, node_actor handle) {
    node_welcome welcome;
    welcome.head = start;
    const auto node = hello.facts.name; // a copy: the greeting is moved from below
    if (const auto known = members.find(node); known != members.end() && known->second.handle != handle && heard_lately(node)) {
      welcome.refused = "there is a node called " + printable(node) + " already; give this one another name with --name";
      welcome.for_now = true; // its own last self, perhaps
      log_event(log_level::warn, "node refused", {{"node", node}, {"reason", "the name is taken"}});
      return welcome;
    }
    self->monitor(handle);
    log_event(log_level::info, "node joined", {{"node", node}, {"version", hello.facts.version}, {"devices", hello.facts.devices.size()}, {"machine", hello.facts.machine}});
    places.joined(hello.facts, now());
    members[node] = {std::move(handle), std::move(hello), 0};
    away.erase(node);
    carry_out();
    return welcome;
  }

  /// Two machines with one name would take turns in throwing each other out. A node that comes back is silent before.
  bool heard_lately(const std::string& node) const {
    for (const auto& n : places.nodes())
      if (n.facts.name == node) return now() - n.heard < 2;
    return false;
  }

  void lost(const std::string& node, bool asked_to_leave = false) {
    if (asked_to_leave) away.erase(node); // that its link is gone may be heard of before what it said last
    if (!asked_to_leave && away.size() < most_away)
      for (auto& n : places.nodes())
        if (n.facts.name == node && n.state != node_state::quarantined) {
          n.state = node_state::away;
          n.facts.devices.clear();
          n.leases.clear();
          n.jobs.clear();
          away[node] = std::move(n);
          break;
        }
    if (members.contains(node)) log_event(asked_to_leave ? log_level::info : log_level::warn, asked_to_leave ? "node left" : "node lost", {{"node", node}});
    places.lost(node, now());
    members.erase(node);
    carry_out();
  }

  void done(work_answer answer) {
    const auto found = jobs.find(answer.job);
    // A ticket is its holder's: what another node sends with it is dropped as a late answer is.
    if (places.holder(answer.job) != answer.node) answer.ticket = 0;
    if (answer.failure.happened() && answer.node_at_fault) {
      log_event(log_level::warn, "job failed on its node", {{"job", answer.job}, {"node", answer.node}, {"reason", answer.failure.message}});
      places.failed(answer.job, answer.ticket, answer.failure.what(), now());
    } else if (places.answered(answer.job, answer.ticket, now()) && found != jobs.end()) {
      found->second.promise.deliver(std::move(answer));
      jobs.erase(found);
    }
    carry_out();
  }

  void carry_out() {
    if (held) return;
    auto orders = places.take_orders(now());
    for (const auto& [node, run] : orders.stop)
      if (const auto to = members.find(node); to != members.end()) self->send(to->second.handle, forget_atom::value, run);
    for (const auto& a : orders.assign) {
      const auto job = jobs.find(a.job);
      const auto to = members.find(a.node);
      if (job == jobs.end() || to == members.end()) continue;
      job->second.order.ticket = a.ticket;
      log_event(log_level::debug, "job given out", {{"job", a.job}, {"run", job->second.order.run}, {"node", a.node}, {"device", a.device}});
      self->send(to->second.handle, do_atom::value, job->second.order, a.device);
    }
    for (const auto& node : orders.quarantined) log_event(log_level::warn, "node in quarantine", {{"node", node}});
    for (const auto& m : orders.moved) log_event(log_level::info, "run moved", {{"run", m.run}, {"from", m.from}, {"to", m.to}});
    for (const auto& gone : orders.abandon)
      if (const auto job = jobs.find(gone.job); job != jobs.end()) {
        log_event(log_level::warn, "job given up", {{"job", gone.job}, {"reason", gone.why.message}});
        work_answer answer;
        answer.job = gone.job;
        answer.failure = failure::of(gone.why);
        job->second.promise.deliver(std::move(answer));
        jobs.erase(job);
      }
  }

  static work_answer interrupted(const std::string& job) {
    work_answer answer;
    answer.job = job;
    answer.failure = failure::of({ec::interrupted, "the run was stopped", ""});
    return answer;
  }

  void cancel(const std::string& run) {
    for (auto& [id, job] : jobs)
      if (job.order.run == run) job.promise.deliver(interrupted(id));
    forget(run);
  }

  void halt(const std::string& run) {
    for (const auto& id : places.withdraw(run))
      if (const auto job = jobs.find(id); job != jobs.end()) {
        job->second.promise.deliver(interrupted(id));
        jobs.erase(job);
      }
  }

  void forget(const std::string& run) {
    places.forget_run(run);
    std::erase_if(jobs, [&](const auto& j) { return j.second.order.run == run; });
    for (const auto& [node, m] : members) self->send(m.handle, forget_atom::value, run);
    carry_out();
  }

  cluster_status status() const {
    cluster_status s;
    s.version = pragma_version;
    s.listen = options.listen;
    s.certificate_days = options.certificate_days ? options.certificate_days() : -1;
    s.up_seconds = now();
    auto nodes = places.nodes();
    for (const auto& [node, last] : away) nodes.push_back(last);
    for (auto& n : nodes) {
      member_status m;
      if (const auto known = members.find(n.facts.name); known != members.end()) {
        m.missing = known->second.hello.missing;
        m.certificate_days = known->second.hello.certificate_days;
        m.round_trip_ms = known->second.round_trip_ms;
      }
      m.silent_seconds = now() - n.heard;
      m.node = std::move(n);
      s.members.push_back(std::move(m));
    }
    s.queued = static_cast<int64_t>(places.queued());
    s.in_flight = static_cast<int64_t>(places.in_flight());
    s.assigned = places.assigned();
    s.requeued = places.requeued();
    s.duplicates = places.duplicates();
    s.mean_queue_seconds = places.assigned() > 0 ? places.waited() / static_cast<double>(places.assigned()) : 0;
    if (options.more) options.more(s);
    return s;
  }
};

cluster_actor::behavior_type placement(placement_state::pointer self, placement_options options) {
  auto& state = self->state;
  state.self = self;
  state.places = dispatcher(options.limits);
  state.options = std::move(options);
  self->set_down_handler([self](const caf::down_msg& down) {
    for (const auto& [name, m] : self->state.members)
      if (caf::actor_cast<caf::actor_addr>(m.handle) == down.source) return self->state.lost(std::string(name));
  });
  self->delayed_send(self, self->state.options.tick, tick_atom::value);
  return {
      [self](join_atom, node_hello& hello, node_actor& handle) { return self->state.join(std::move(hello), std::move(handle)); },
      [self](beat_atom, const heartbeat& beat) {
        const auto known = self->state.members.find(beat.node);
        if (known == self->state.members.end()) return false;
        known->second.round_trip_ms = beat.round_trip_ms;
        self->state.places.heard_of(beat.node, beat.tickets, self->state.now());
        self->state.carry_out();
        return true;
      },
      [self](done_atom, work_answer& answer) { self->state.done(std::move(answer)); },
      [self](drain_atom, const std::string& node) {
        log_event(log_level::info, "node drains", {{"node", node}});
        self->state.places.drain(node);
        self->state.carry_out();
      },
      [self](leave_atom, const std::string& node) { self->state.lost(node, true); },
      [self](submit_atom, work_order& order, const job_needs& needs) {
        auto promise = self->make_response_promise<work_answer>();
        const job j{order.job, order.run, needs, order.owner, order.priority};
        self->state.jobs[j.id] = {std::move(order), promise};
        self->state.places.submit(j, self->state.now());
        self->state.carry_out();
        return promise;
      },
      [self](forget_atom, const std::string& run) { self->state.forget(run); },
      [self](cancel_atom, const std::string& run) { self->state.cancel(run); },
      [self](halt_atom, const std::string& run) { self->state.halt(run); },
      [self](ask_atom, const job_needs& needs) { return self->state.places.possible(needs); },
      [self](status_atom) { return self->state.status(); },
      [self](release_atom, const std::string& node) -> caf::result<bool> {
        if (auto done = self->state.places.release(node); !done) return to_caf(done.error());
        self->state.carry_out();
        return true;
      },
      [self](hold_atom) {
        self->state.held = true;
        return static_cast<uint64_t>(self->state.places.in_flight());
      },
      [self](tick_atom) {
        auto& s = self->state;
        s.places.tick(s.now());
        // The dispatcher forgot who was silent; so do we.
        std::set<std::string> known;
        for (const auto& n : s.places.nodes())
          if (!n.facts.devices.empty()) known.insert(n.facts.name);
        std::erase_if(s.members, [&](const auto& m) {
          if (known.contains(m.first)) return false;
          log_event(log_level::warn, "node lost", {{"node", m.first}, {"reason", "silent"}});
          return true;
        });
        s.carry_out();
        self->delayed_send(self, s.options.tick, tick_atom::value);
      },
  };
}

} // namespace

cluster_actor spawn_placement(caf::actor_system& system, placement_options options) {
  return system.spawn(placement, std::move(options));
}

} // namespace pragma
