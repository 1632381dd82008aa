#include "cluster/dispatcher.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

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
  freed(facts.name);
}

void dispatcher::heard_of(const std::string& name, double now) {
  if (const auto n = nodes_.find(name); n != nodes_.end()) n->second.heard = now;
}

void dispatcher::lost(const std::string& name, double) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  const auto jobs = found->second.jobs;
  for (const auto& j : jobs) requeue(j, "node " + name + " was lost");
  evict(name);
  if (found->second.state == node_state::quarantined) { // remembered, so that rejoining is no way out
    found->second.jobs.clear();
    found->second.facts.devices.clear();
    found->second.leases.clear();
  } else {
    nodes_.erase(found);
  }
}

void dispatcher::drain(const std::string& name) {
  const auto n = nodes_.find(name);
  if (n == nodes_.end() || n->second.state != node_state::ready) return;
  n->second.state = node_state::draining;
  evict(name);
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
  freed(name);
  return {};
}

void dispatcher::submit(const job& j, double now) {
  if (queue_.contains(j.id) || running_.contains(j.id)) return;
  auto& r = runs_[j.run];
  if (r.answered.contains(j.id)) return;
  queue_[j.id] = {j, now, 0};
  r.jobs.push_back(j.id);
  dirty_.insert(j.run);
}

void dispatcher::forget_run(const std::string& name) {
  const auto r = runs_.find(name);
  if (r == runs_.end()) return;
  for (const auto& j : r->second.jobs) queue_.erase(j);
  r->second.jobs.clear();
  std::vector<std::string> gone;
  for (const auto& [id, job] : running_)
    if (job.from.what.run == name) gone.push_back(id);
  for (const auto& id : gone) end(id);
  unpark(name);
  dirty_.erase(name);
  runs_.erase(name);
}

/// Frees what a running job holds.
void dispatcher::end(const std::string& id) {
  const auto r = running_.find(id);
  if (r == running_.end()) return;
  if (const auto owner = runs_.find(r->second.from.what.run); owner != runs_.end()) --owner->second.given.in_flight;
  const auto name = r->second.node;
  if (const auto n = nodes_.find(name); n != nodes_.end()) {
    n->second.jobs.erase(id);
    if (auto lease = n->second.leases.find(r->second.device); lease != n->second.leases.end() && lease->second == id) lease->second.clear();
  }
  running_.erase(r);
  freed(name);
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
  runs_[again.what.run].jobs.push_front(id);
  dirty_.insert(again.what.run);
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
  runs_[r->second.from.what.run].answered.insert(id);
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
  evict(name);
}

void dispatcher::tick(double now) {
  std::vector<std::string> silent;
  for (const auto& [name, n] : nodes_)
    if (!n.facts.devices.empty() && now - n.heard > limits_.silent_seconds) silent.push_back(name);
  for (const auto& name : silent) lost(name, now);
}

// -- who waits for what --------------------------------------------------------------------------------------------

void dispatcher::unpark(const std::string& name) {
  const auto r = runs_.find(name);
  if (r == runs_.end()) return;
  if (const auto at = waiting_at_home_.find(r->second.waits_at); at != waiting_at_home_.end()) {
    at->second.erase(name);
    if (at->second.empty()) waiting_at_home_.erase(at);
  }
  r->second.waits_at.clear();
  for (auto it = waiting_anywhere_.begin(); it != waiting_anywhere_.end();) { // a few kinds of needs
    it->second.second.erase(name);
    it = it->second.second.empty() ? waiting_anywhere_.erase(it) : std::next(it);
  }
}

void dispatcher::park(const std::string& name) {
  auto& r = runs_[name];
  for (const auto& id : r.jobs) {
    const auto& needs = queue_[id].what.needs;
    if (needs.exclusive && !r.home.empty()) {
      waiting_at_home_[r.home].insert(name);
      r.waits_at = r.home;
    } else {
      auto& group = waiting_anywhere_[json(needs).dump()];
      group.first = needs;
      group.second.insert(name);
    }
  }
}

void dispatcher::freed(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || found->second.state != node_state::ready) return;
  const auto& n = found->second;
  for (const auto& d : n.facts.devices)
    if (const auto at = waiting_at_home_.find(place_name(name, d.id)); at != waiting_at_home_.end()) dirty_.insert(at->second.begin(), at->second.end());
  for (const auto& [text, group] : waiting_anywhere_) {
    const auto& [needs, runs] = group;
    if (std::none_of(n.facts.devices.begin(), n.facts.devices.end(), [&](const auto& d) { return could(n, d, needs); })) continue;
    // No more of them than there can be room for, the least served first.
    const auto room = std::min(runs.size(), static_cast<size_t>(std::max(1, n.facts.slots)) + n.facts.devices.size());
    std::vector<std::pair<share, const std::string*>> order;
    order.reserve(runs.size());
    for (const auto& waits : runs) order.emplace_back(runs_[waits].given, &waits);
    std::partial_sort(order.begin(), order.begin() + static_cast<long>(room), order.end(), [](const auto& a, const auto& b) { return a.first != b.first ? a.first < b.first : *a.second < *b.second; });
    for (size_t i = 0; i < room; ++i) dirty_.insert(*order[i].second);
  }
}

void dispatcher::evict(const std::string& from) {
  for (auto& [name, r] : runs_) {
    if (r.home.empty() || r.home.substr(0, r.home.rfind('/')) != from) continue;
    r.moved_from = r.home;
    r.home.clear();
    unpark(name);
    if (!r.jobs.empty()) dirty_.insert(name);
  }
}

// -- placing -------------------------------------------------------------------------------------------------------

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
  if (!needs.exclusive) { // those that hold a device take no slot
    const auto holding = std::count_if(n.leases.begin(), n.leases.end(), [](const auto& lease) { return !lease.second.empty(); });
    return static_cast<int>(n.jobs.size()) - static_cast<int>(holding) >= n.facts.slots;
  }
  if (d.backend == "cpu") return !n.jobs.empty();
  const auto lease = n.leases.find(d.id);
  return lease != n.leases.end() && !lease->second.empty();
}

/// A measurement waits there for the CPU, and so for the whole node: nobody else is sent there until it has drained, so that a stream of small
/// jobs cannot keep it waiting for ever.
bool dispatcher::reserved(const std::string& name) const {
  const auto n = nodes_.find(name);
  return n != nodes_.end() && std::any_of(n->second.facts.devices.begin(), n->second.facts.devices.end(), [&](const auto& d) {
           return d.backend == "cpu" && waiting_at_home_.contains(place_name(name, d.id));
         });
}

/// A measurement that has waited there longer for the CPU than this job has waited for its device: between the two, who came first is first.
bool dispatcher::yields(const std::string& name, const node& n, const device_facts& d, const waiting& w) const {
  if (d.backend == "cpu") return false;
  for (const auto& other : n.facts.devices) {
    const auto at = other.backend == "cpu" ? waiting_at_home_.find(place_name(name, other.id)) : waiting_at_home_.end();
    if (at == waiting_at_home_.end()) continue;
    for (const auto& waits : at->second)
      for (const auto& id : runs_.at(waits).jobs)
        if (const auto& job = queue_.at(id); job.what.needs.exclusive && job.since < w.since) return true;
  }
  return false;
}

std::optional<assignment> dispatcher::place_on(const std::string& name, const node& n, const waiting& w) const {
  for (const auto& d : n.facts.devices)
    if (could(n, d, w.what.needs) && !busy(n, d, w.what.needs)) return assignment{w.what.id, name, d.id, 0};
  return std::nullopt;
}

/// A free place: the run's home, else the least loaded. An exclusive job that finds none settles on the least loaded that fits, and waits there.
std::optional<assignment> dispatcher::place(const waiting& w, run& r) {
  const auto& needs = w.what.needs;
  if (!r.home.empty()) {
    const auto slash = r.home.rfind('/');
    const auto name = r.home.substr(0, slash);
    if (const auto n = nodes_.find(name); n != nodes_.end())
      for (const auto& d : n->second.facts.devices)
        if (d.id == r.home.substr(slash + 1) && could(n->second, d, needs) && !busy(n->second, d, needs) && (needs.exclusive ? !yields(name, n->second, d, w) : !reserved(name)))
          return assignment{w.what.id, name, d.id, 0};
    const bool able = [&] {
      const auto n = nodes_.find(name);
      return n != nodes_.end() && std::any_of(n->second.facts.devices.begin(), n->second.facts.devices.end(),
                                              [&](const auto& d) { return d.id == r.home.substr(slash + 1) && could(n->second, d, needs); });
    }();
    if (needs.exclusive && able) return std::nullopt; // waits there
    if (needs.exclusive) r.moved_from = std::exchange(r.home, {});
  }
  std::optional<assignment> best;
  const node* least = nullptr;
  std::string fits;
  size_t fits_load = 0;
  for (const auto& [name, n] : nodes_) {
    if (least && least->jobs.size() <= n.jobs.size()) continue;
    if (!reserved(name))
      if (auto a = place_on(name, n, w)) {
        best = std::move(a);
        least = &n;
        if (n.jobs.empty()) break;
        continue;
      }
    if (!needs.exclusive || best) continue;
    for (const auto& d : n.facts.devices) {
      const auto at = waiting_at_home_.find(place_name(name, d.id));
      const size_t load = n.jobs.size() + (at == waiting_at_home_.end() ? 0 : at->second.size());
      if (could(n, d, needs) && (fits.empty() || load < fits_load)) {
        fits = place_name(name, d.id);
        fits_load = load;
      }
    }
  }
  if (needs.exclusive) r.home = best ? place_name(best->node, best->device) : fits;
  return best;
}

dispatcher::orders dispatcher::take_orders(double now) {
  orders out;
  while (!dirty_.empty()) {
    // The least served first; assigning changes the order of those that are left, and may make no other run's job possible.
    std::vector<std::string> look(dirty_.begin(), dirty_.end());
    dirty_.clear();
    std::sort(look.begin(), look.end(), [&](const auto& a, const auto& b) { return std::tie(runs_[a].given, a) < std::tie(runs_[b].given, b); });
    for (bool again = true; again;) { // a job a run and round: nobody gets all the places because it was first
      again = false;
      for (const auto& name : look) {
        auto& r = runs_[name];
        if (r.jobs.empty()) continue;
        unpark(name);
        std::vector<job_needs> refused;
        for (auto id = r.jobs.begin(); id != r.jobs.end(); ++id) {
          const auto w = queue_.find(*id);
          const auto& needs = w->second.what.needs;
          if (std::find(refused.begin(), refused.end(), needs) != refused.end()) continue;
          auto a = place(w->second, r);
          if (!a) {
            refused.push_back(needs);
            continue;
          }
          a->ticket = ++tickets_;
          auto& n = nodes_[a->node];
          n.jobs.insert(a->job);
          if (needs.exclusive) {
            n.leases[a->device] = a->job;
            n.leased_since[a->device] = now;
          }
          waited_ += now - w->second.since;
          ++assigned_;
          r.given = {r.given.in_flight + 1, a->ticket};
          running_[a->job] = {w->second, a->node, a->device, a->ticket};
          queue_.erase(w);
          r.jobs.erase(id);
          out.assign.push_back(*a);
          again = true;
          break;
        }
        if (!r.moved_from.empty() && !r.home.empty()) moved_.push_back({name, std::exchange(r.moved_from, {}), r.home});
        park(name);
      }
    }
  }
  out.abandon = std::move(abandoned_);
  abandoned_.clear();
  out.moved = std::move(moved_);
  moved_.clear();
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
