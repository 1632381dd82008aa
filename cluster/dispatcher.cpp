#include "cluster/dispatcher.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

namespace pragma {

namespace {

std::string place_name(const std::string& node, const std::string& device) { return node + "/" + device; }

bool has_all(const std::vector<std::string>& have, const std::vector<std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& w) { return std::find(have.begin(), have.end(), w) != have.end(); });
}

/// "sm_90" is 90, "sm_120" 120; 0 for what is no NVIDIA device.
int capability_of(const device_facts& d) { return d.arch.starts_with("sm_") ? std::atoi(d.arch.c_str() + 3) : 0; }

/// Nobody can guess it: an answer without it counts for nothing.
uint64_t new_ticket() {
  static std::random_device source;
  return (static_cast<uint64_t>(source()) << 32 | source()) | 1;
}

} // namespace

void dispatcher::joined(const node_facts& facts, double now) {
  if (nodes_.contains(facts.name)) lost(facts.name, now);
  auto& n = nodes_[facts.name];
  n.facts = facts;
  n.joined = n.heard = now_ = now;
  if (!facts.machine.empty()) machines_[facts.machine].insert(facts.name);
  if (n.state == node_state::draining) n.state = node_state::ready; // it came back: a quarantine stays until it is released
  for (const auto& d : facts.devices) n.leases[d.id];
  freed(facts.name);
}

void dispatcher::heard_of(const std::string& name, double now) {
  if (const auto n = nodes_.find(name); n != nodes_.end()) n->second.heard = now;
}

void dispatcher::heard_of(const std::string& name, const std::vector<uint64_t>& tickets, double now) {
  heard_of(name, now_ = now);
  const auto n = nodes_.find(name);
  if (n == nodes_.end()) return;
  std::vector<std::string> missing;
  for (const auto& id : n->second.jobs)
    if (const auto& r = running_.at(id); now - r.since > limits_.unheard_seconds && std::find(tickets.begin(), tickets.end(), r.ticket) == tickets.end()) missing.push_back(id);
  for (const auto& id : missing) requeue(id, "node " + name + " does not have it in hand");
}

std::string dispatcher::holder(const std::string& job) const {
  const auto r = running_.find(job);
  return r == running_.end() ? std::string() : r->second.node;
}

void dispatcher::lost(const std::string& name, double now) {
  now_ = now;
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  const auto jobs = found->second.jobs;
  for (const auto& j : jobs) requeue(j, "node " + name + " was lost");
  evict(name);
  if (const auto host = machines_.find(found->second.facts.machine); host != machines_.end()) {
    host->second.erase(name);
    if (host->second.empty()) machines_.erase(host);
  }
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
  if (n == nodes_.end()) return fail(ec::not_found, "no node " + printable(name) + " in this cluster", "`pragma cluster status` lists the nodes");
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
  r.owner = j.owner;
  r.priority = j.priority;
  queue_[j.id] = {j, now_ = now, 0};
  r.jobs.push_back(j.id);
  dirty_.insert(j.run);
}

std::deque<std::string> dispatcher::withdraw(const std::string& name) {
  const auto r = runs_.find(name);
  if (r == runs_.end()) return {};
  unpark(name);
  dirty_.erase(name);
  for (const auto& j : r->second.jobs) queue_.erase(j);
  return std::exchange(r->second.jobs, {});
}

void dispatcher::forget_run(const std::string& name) {
  withdraw(name);
  std::vector<std::string> gone;
  for (const auto& [id, job] : running_)
    if (job.from.what.run == name) gone.push_back(id);
  for (const auto& id : gone) end(id);
  runs_.erase(name);
}

/// Frees what a running job holds.
void dispatcher::end(const std::string& id) {
  const auto r = running_.find(id);
  if (r == running_.end()) return;
  const auto& what = r->second.from.what;
  if (const auto its = runs_.find(what.run); its != runs_.end()) --its->second.given.in_flight;
  auto& whose = owners_[what.owner];
  whose.used = whose.used * std::exp2((whose.counted - now_) / limits_.share_half_life) + (now_ - r->second.since);
  whose.counted = now_;
  --whose.in_flight;
  if (what.needs.exclusive && --whose.leases + 1 == limits_.devices_of_owner) // who waited for that
    for (const auto& [name, other] : runs_)
      if (other.owner == what.owner && !other.jobs.empty()) dirty_.insert(name);
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

bool dispatcher::answered(const std::string& id, uint64_t ticket, double now) {
  now_ = now;
  const auto r = running_.find(id);
  if (r == running_.end() || r->second.ticket != ticket) {
    ++duplicates_;
    return false;
  }
  if (const auto n = nodes_.find(r->second.node); n != nodes_.end()) {
    ++n->second.done;
    n->second.failures = 0;
    n->second.last_failure.reset();
  }
  runs_[r->second.from.what.run].answered.insert(id);
  end(id);
  return true;
}

void dispatcher::failed(const std::string& id, uint64_t ticket, const error& why, double now) {
  now_ = now;
  const auto r = running_.find(id);
  if (r == running_.end() || r->second.ticket != ticket) {
    ++duplicates_;
    return;
  }
  const auto name = r->second.node;
  requeue(id, "node " + name + ": " + why.message);
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  auto& n = found->second;
  ++n.failed;
  if (why.code == ec::no_compiler || why.code == ec::busy) return;
  n.failures = n.last_failure == why.code ? n.failures + 1 : 1;
  n.last_failure = why.code;
  if (n.failures < limits_.same_failures || n.state == node_state::quarantined) return;
  n.state = node_state::quarantined;
  n.reason = std::to_string(n.failures) + " times in a row: " + why.message;
  quarantined_.push_back(name);
  evict(name);
}

void dispatcher::tick(double now) {
  std::vector<std::string> silent;
  for (const auto& [name, n] : nodes_)
    if (!n.facts.devices.empty() && now - n.heard > limits_.silent_seconds) silent.push_back(name);
  for (const auto& name : silent) lost(name, now);
  std::vector<std::string> late;
  for (const auto& [id, r] : running_)
    if (now - r.since > limits_.job_seconds) late.push_back(id);
  for (const auto& id : late) {
    const auto r = running_.at(id); // a copy: failed() ends it
    stop_.emplace_back(r.node, r.from.what.run);
    failed(id, r.ticket, {ec::timeout, "no answer within " + std::to_string(static_cast<int>(limits_.job_seconds)) + " s", ""}, now);
  }
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
      const auto bytes = json::to_cbor(json(needs)); // whatever a user wrote into them
      auto& group = waiting_anywhere_[std::string(bytes.begin(), bytes.end())];
      group.first = needs;
      group.second.insert(name);
    }
  }
}

std::set<std::string> dispatcher::same_machine(const std::string& name) const {
  const auto n = nodes_.find(name);
  const auto host = n == nodes_.end() ? machines_.end() : machines_.find(n->second.facts.machine);
  return host == machines_.end() ? std::set<std::string>{name} : host->second;
}

void dispatcher::freed(const std::string& name) {
  for (const auto& here : same_machine(name)) freed_here(here);
}

void dispatcher::freed_here(const std::string& name) {
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
    std::vector<turn> order;
    order.reserve(runs.size());
    for (const auto& waits : runs) order.push_back(turn_of(waits));
    std::partial_sort(order.begin(), order.begin() + static_cast<long>(room), order.end());
    for (size_t i = 0; i < room; ++i) dirty_.insert(std::get<4>(order[i]));
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
         (needs.arch.empty() || d.arch == needs.arch) && has_all(d.tools, needs.tools) && n.facts.simd_bits >= needs.simd_bits && capability_of(d) >= needs.capability &&
         (needs.node.empty() || n.facts.name == needs.node);
}

bool dispatcher::possible(const job_needs& needs) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& n) { return std::any_of(n.second.facts.devices.begin(), n.second.facts.devices.end(), [&](const auto& d) { return could(n.second, d, needs); }); });
}

/// What other nodes of the same host do: a measurement of the processor has it for itself, whoever's node it is, and a device is one device.
bool dispatcher::others_disturb(const std::string& name, const device_facts& d, const job_needs& needs) const {
  for (const auto& neighbour : same_machine(name)) {
    if (neighbour == name) continue;
    const auto& other = nodes_.at(neighbour);
    if (needs.exclusive && d.backend == "cpu" && !other.jobs.empty()) return true;
    for (const auto& theirs : other.facts.devices) {
      const auto lease = other.leases.find(theirs.id);
      if (lease == other.leases.end() || lease->second.empty()) continue;
      if (theirs.backend == "cpu" || (!d.hardware.empty() && theirs.hardware == d.hardware)) return true;
    }
  }
  return false;
}

bool dispatcher::busy(const std::string& name, const node& n, const device_facts& d, const job_needs& needs) const {
  if (others_disturb(name, d, needs)) return true;
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
  for (const auto& here : same_machine(name))
    for (const auto& d : nodes_.at(here).facts.devices)
      if (d.backend == "cpu" && waiting_at_home_.contains(place_name(here, d.id))) return true;
  return false;
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
    if (could(n, d, w.what.needs) && !busy(name, n, d, w.what.needs)) return assignment{w.what.id, name, d.id, 0};
  return std::nullopt;
}

/// A free place: the run's home, else the least loaded. An exclusive job that finds none settles on the least loaded that fits, and waits there.
std::optional<assignment> dispatcher::place(const waiting& w, run& r) {
  const auto& needs = w.what.needs;
  if (!r.home.empty()) {
    const auto slash = r.home.rfind('/');
    const auto name = r.home.substr(0, slash);
    const auto n = nodes_.find(name);
    if (n != nodes_.end())
      for (const auto& d : n->second.facts.devices)
        if (d.id == r.home.substr(slash + 1) && could(n->second, d, needs) && !busy(name, n->second, d, needs) && (needs.exclusive ? !yields(name, n->second, d, w) : !reserved(name)))
          return assignment{w.what.id, name, d.id, 0};
    const bool able = n != nodes_.end() && std::any_of(n->second.facts.devices.begin(), n->second.facts.devices.end(),
                                                       [&](const auto& d) { return d.id == r.home.substr(slash + 1) && could(n->second, d, needs); });
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

dispatcher::turn dispatcher::turn_of(const std::string& name) const {
  static const owner nobody;
  const auto& r = runs_.at(name);
  const auto known = owners_.find(r.owner);
  const auto& whose = known == owners_.end() ? nobody : known->second;
  return {-r.priority, whose.in_flight, whose.used * std::exp2((whose.counted - now_) / limits_.share_half_life), r.given, name};
}

dispatcher::orders dispatcher::take_orders(double now) {
  orders out;
  now_ = now;
  while (!dirty_.empty()) {
    // Whose turn it is changes with each assignment: a turn that is no longer what it was is taken later. Assigning makes no other job possible, so
    // a run that finds no place is done with.
    std::set<turn> line;
    for (const auto& name : dirty_)
      if (runs_.contains(name)) line.insert(turn_of(name));
    dirty_.clear();
    while (!line.empty()) {
      const auto name = std::get<4>(*line.begin());
      if (const auto fresh = turn_of(name); *line.begin() < fresh) {
        line.erase(line.begin());
        line.insert(fresh);
        continue;
      }
      line.erase(line.begin());
      auto& r = runs_[name];
      if (r.jobs.empty()) continue;
      unpark(name);
      std::vector<job_needs> refused;
      auto& whose = owners_[r.owner];
      for (auto id = r.jobs.begin(); id != r.jobs.end(); ++id) {
        const auto w = queue_.find(*id);
        const auto& needs = w->second.what.needs;
        if (std::find(refused.begin(), refused.end(), needs) != refused.end()) continue;
        const bool enough = needs.exclusive && limits_.devices_of_owner > 0 && whose.leases >= limits_.devices_of_owner;
        auto a = enough ? std::nullopt : place(w->second, r);
        if (!a) {
          refused.push_back(needs);
          continue;
        }
        a->ticket = new_ticket();
        auto& n = nodes_[a->node];
        n.jobs.insert(a->job);
        if (needs.exclusive) {
          n.leases[a->device] = a->job;
          n.leased_since[a->device] = now;
          ++whose.leases;
        }
        ++whose.in_flight;
        waited_ += now - w->second.since;
        ++assigned_;
        r.given = {r.given.in_flight + 1, ++served_};
        running_[a->job] = {w->second, a->node, a->device, a->ticket, now};
        queue_.erase(w);
        r.jobs.erase(id);
        out.assign.push_back(*a);
        line.insert(turn_of(name));
        break;
      }
      if (!r.moved_from.empty() && !r.home.empty()) moved_.push_back({name, std::exchange(r.moved_from, {}), r.home});
      park(name);
    }
  }
  out.abandon = std::exchange(abandoned_, {});
  out.moved = std::exchange(moved_, {});
  out.quarantined = std::exchange(quarantined_, {});
  out.stop = std::exchange(stop_, {});
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
