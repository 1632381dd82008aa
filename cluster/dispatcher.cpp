#include "cluster/dispatcher.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace pragma {

namespace {

std::string place_name(const std::string& node, const std::string& device) { return node + "/" + device; }

bool has_all(const std::vector<std::string>& have, const std::vector<std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& w) { return std::find(have.begin(), have.end(), w) != have.end(); });
}

} // namespace

void dispatcher::joined(const node_facts& facts, double now) {
  if (nodes_.contains(facts.name)) lost(facts.name, now);
  auto& n = nodes_[facts.name];
  n.facts = facts;
  n.joined = n.heard = now;
  if (n.state == node_state::draining) n.state = node_state::ready; // it came back: a quarantine stays until it is released
  for (const auto& d : facts.devices) n.leases[d.id];
}

void dispatcher::heard_of(const std::string& name, double now) {
  if (const auto n = nodes_.find(name); n != nodes_.end()) n->second.heard = now;
}

void dispatcher::lost(const std::string& name, double) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  const auto jobs = found->second.jobs;
  for (const auto& j : jobs) requeue(j, "node " + name + " was lost");
  if (found->second.state == node_state::quarantined) { // remembered, so that rejoining is no way out
    found->second.jobs.clear();
    found->second.facts.devices.clear();
    found->second.leases.clear();
  } else {
    nodes_.erase(found);
  }
}

void dispatcher::drain(const std::string& name) {
  if (const auto n = nodes_.find(name); n != nodes_.end() && n->second.state == node_state::ready) n->second.state = node_state::draining;
}

expected<void> dispatcher::release(const std::string& name) {
  const auto n = nodes_.find(name);
  if (n == nodes_.end()) {
    std::vector<std::string> names;
    for (const auto& [known, ignored] : nodes_) names.push_back(known);
    return fail(ec::not_found, "no node " + printable(name) + " in this cluster", names.empty() ? "no node has joined" : "nodes: " + join(names, ", "));
  }
  if (n->second.state != node_state::quarantined) return fail(ec::invalid_argument, "node " + printable(name) + " is not in quarantine");
  n->second.state = node_state::ready;
  n->second.reason.clear();
  n->second.failures = 0;
  return {};
}

void dispatcher::submit(const job& j, double now) {
  if (queue_.contains(j.id) || running_.contains(j.id)) return;
  if (const auto run = answered_.find(j.run); run != answered_.end() && run->second.contains(j.id)) return;
  queue_[j.id] = {j, now, 0};
  order_[j.run].push_back(j.id);
}

void dispatcher::forget_run(const std::string& run) {
  if (const auto jobs = order_.find(run); jobs != order_.end()) {
    for (const auto& j : jobs->second) queue_.erase(j);
    order_.erase(jobs);
  }
  std::vector<std::string> gone;
  for (const auto& [id, r] : running_)
    if (r.from.what.run == run) gone.push_back(id);
  for (const auto& id : gone) end(id);
  homes_.erase(run);
  shares_.erase(run);
  answered_.erase(run);
}

/// Frees what a running job holds.
void dispatcher::end(const std::string& id) {
  const auto r = running_.find(id);
  if (r == running_.end()) return;
  if (const auto s = shares_.find(r->second.from.what.run); s != shares_.end()) --s->second.in_flight;
  if (const auto n = nodes_.find(r->second.node); n != nodes_.end()) {
    n->second.jobs.erase(id);
    if (auto lease = n->second.leases.find(r->second.device); lease != n->second.leases.end() && lease->second == id) lease->second.clear();
  }
  running_.erase(r);
}

void dispatcher::requeue(const std::string& id, const std::string& why) {
  const auto r = running_.find(id);
  if (r == running_.end()) return;
  auto again = r->second.from;
  end(id);
  if (++again.tries >= limits_.tries) {
    abandoned_.push_back({id, {ec::remote_failed, "given up after " + std::to_string(again.tries) + " tries: " + why, "`pragma cluster status` shows the nodes and their troubles"}});
    return;
  }
  ++requeued_;
  order_[again.what.run].push_front(id);
  queue_[id] = std::move(again);
}

bool dispatcher::answered(const std::string& id, uint64_t ticket, double) {
  const auto r = running_.find(id);
  if (r == running_.end() || r->second.ticket != ticket) {
    ++duplicates_;
    return false;
  }
  if (const auto n = nodes_.find(r->second.node); n != nodes_.end()) {
    ++n->second.done;
    n->second.failures = 0;
    n->second.last_failure.clear();
  }
  answered_[r->second.from.what.run].insert(id);
  end(id);
  return true;
}

void dispatcher::failed(const std::string& id, uint64_t ticket, const std::string& reason, double) {
  const auto r = running_.find(id);
  if (r == running_.end() || r->second.ticket != ticket) {
    ++duplicates_;
    return;
  }
  const auto name = r->second.node;
  requeue(id, "node " + name + ": " + reason);
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  auto& n = found->second;
  ++n.failed;
  n.failures = n.last_failure == reason ? n.failures + 1 : 1;
  n.last_failure = reason;
  if (n.failures < limits_.same_failures || n.state == node_state::quarantined) return;
  n.state = node_state::quarantined;
  n.reason = std::to_string(n.failures) + " times in a row: " + reason;
  quarantined_.push_back(name);
}

void dispatcher::tick(double now) {
  std::vector<std::string> silent;
  for (const auto& [name, n] : nodes_)
    if (!n.facts.devices.empty() && now - n.heard > limits_.silent_seconds) silent.push_back(name);
  for (const auto& name : silent) lost(name, now);
}

/// Suitable, whether free or not.
bool dispatcher::could(const node& n, const device_facts& d, const job_needs& needs) const {
  return n.state == node_state::ready && d.backend == needs.backend && (needs.memory_bytes == 0 || d.memory_bytes >= needs.memory_bytes) &&
         (needs.arch.empty() || d.arch == needs.arch) && has_all(d.tools, needs.tools);
}

bool dispatcher::busy(const node& n, const device_facts& d, const job_needs& needs) const {
  const bool cpu_is_measured = std::any_of(n.facts.devices.begin(), n.facts.devices.end(), [&](const device_facts& other) {
    const auto lease = n.leases.find(other.id);
    return other.backend == "cpu" && lease != n.leases.end() && !lease->second.empty();
  });
  if (cpu_is_measured) return true; // nothing runs beside it
  if (!needs.exclusive) return static_cast<int>(n.jobs.size()) >= n.facts.slots;
  if (d.backend == "cpu") return !n.jobs.empty();
  const auto lease = n.leases.find(d.id);
  return lease != n.leases.end() && !lease->second.empty();
}

/// A free place: the run's home, else the least loaded. Where an exclusive job fits a node that is busy with others, the node is reserved: nobody else
/// is sent there until it has drained, so that a stream of small jobs cannot keep a measurement waiting for ever.
std::optional<assignment> dispatcher::place(const waiting& w, std::set<std::string>& reserved) const {
  const auto& needs = w.what.needs;
  std::optional<assignment> best;
  const node* best_node = nullptr;
  std::string busy_node;
  const auto home = homes_.find(w.what.run);
  for (const auto& [name, n] : nodes_) {
    if (reserved.contains(name)) continue;
    for (const auto& d : n.facts.devices) {
      if (!could(n, d, needs)) continue;
      const bool at_home = home != homes_.end() && home->second == place_name(name, d.id);
      if (needs.exclusive && home != homes_.end() && !at_home) continue;
      if (busy(n, d, needs)) {
        if (needs.exclusive && d.backend == "cpu" && busy_node.empty()) busy_node = name; // a GPU's lease is all that its job waits for
        continue;
      }
      if (at_home) return assignment{w.what.id, name, d.id, 0}; // the run's task is loaded there
      if (best_node && best_node->jobs.size() <= n.jobs.size()) continue;
      best = assignment{w.what.id, name, d.id, 0};
      best_node = &n;
    }
  }
  if (!best && !busy_node.empty()) reserved.insert(busy_node);
  return best;
}

dispatcher::orders dispatcher::take_orders(double now) {
  orders out;
  // A run whose device is gone may settle on another.
  for (auto home = homes_.begin(); home != homes_.end();) {
    const auto slash = home->second.find('/');
    const auto n = nodes_.find(home->second.substr(0, slash));
    const auto device = home->second.substr(slash + 1);
    const bool there = n != nodes_.end() && n->second.state == node_state::ready &&
                       std::any_of(n->second.facts.devices.begin(), n->second.facts.devices.end(), [&](const auto& d) { return d.id == device; });
    if (there) {
      ++home;
    } else {
      moved_.push_back({home->first, home->second, ""});
      home = homes_.erase(home);
    }
  }
  std::set<std::string> reserved;
  std::vector<job_needs> no_place;
  std::set<std::string> skipped; // runs whose first job finds no place now
  for (;;) {
    const std::string* next = nullptr;
    for (const auto& [run, jobs] : order_) {
      if (jobs.empty() || skipped.contains(run)) continue;
      if (!next || shares_[run] < shares_[*next]) next = &run;
    }
    if (!next) break;
    const std::string run = *next;
    auto& jobs = order_[run];
    bool placed = false;
    auto refused = no_place; // what found no place here finds none a line further down
    for (auto id = jobs.begin(); id != jobs.end(); ++id) {
      const auto w = queue_.find(*id);
      const auto& needs = w->second.what.needs;
      if (std::find(refused.begin(), refused.end(), needs) != refused.end()) continue;
      auto a = place(w->second, reserved);
      if (!a) {
        refused.push_back(needs);
        if (!needs.exclusive) no_place.push_back(needs); // ... nor in another run: only exclusive jobs are bound to a home
        continue;
      }
      a->ticket = ++tickets_;
      auto& n = nodes_[a->node];
      n.jobs.insert(a->job);
      if (needs.exclusive) {
        n.leases[a->device] = a->job;
        n.leased_since[a->device] = now;
        if (homes_.emplace(run, place_name(a->node, a->device)).second)
          for (auto& m : moved_)
            if (m.run == run && m.to.empty()) m.to = place_name(a->node, a->device);
      }
      waited_ += now - w->second.since;
      ++assigned_;
      shares_[run] = {shares_[run].in_flight + 1, a->ticket};
      running_[a->job] = {w->second, a->node, a->device, a->ticket};
      queue_.erase(w);
      jobs.erase(id);
      out.assign.push_back(*a);
      placed = true;
      break;
    }
    if (!placed) skipped.insert(run);
  }
  std::erase_if(order_, [](const auto& entry) { return entry.second.empty(); });
  out.abandon = std::move(abandoned_);
  abandoned_.clear();
  for (auto m = moved_.begin(); m != moved_.end();) { // said once it is known where to
    if (m->to.empty()) {
      ++m;
      continue;
    }
    out.moved.push_back(*m);
    m = moved_.erase(m);
  }
  out.quarantined = std::move(quarantined_);
  quarantined_.clear();
  return out;
}

std::vector<node_status> dispatcher::nodes() const {
  std::vector<node_status> all;
  for (const auto& [name, n] : nodes_) {
    node_status s;
    s.facts = n.facts;
    s.facts.name = name;
    s.state = n.state;
    s.reason = n.reason;
    s.joined = n.joined;
    s.heard = n.heard;
    s.done = n.done;
    s.failed = n.failed;
    s.jobs.assign(n.jobs.begin(), n.jobs.end());
    for (const auto& [device, j] : n.leases) {
      const auto since = n.leased_since.find(device);
      s.leases.push_back({device, j, j.empty() || since == n.leased_since.end() ? 0 : since->second});
    }
    all.push_back(std::move(s));
  }
  return all;
}

} // namespace pragma
