// Which node does which job, and what happens when a node vanishes: the head's placement as plain state. No CAF and no clock: events and
// times are handed in, what is to be done comes out. Used by the head's actor; bench/ drives it with 1,000 simulated nodes.
#pragma once

#include "base/json.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace pragma {

/// Something on a node that one measurement at a time may use.
struct device_facts {
  std::string id;                     ///< unique on its node: "cpu", "cuda:0"
  std::string backend;                ///< "cpu", "cuda", "rocm", "ascend"
  std::string model, arch;            ///< "AMD EPYC 7B13", "sm_90"
  uint64_t memory_bytes = 0;
  std::vector<std::string> tools;     ///< that really work here: "perf", "callgrind"
  std::vector<std::string> details;   ///< for people: "8 cores, 16 threads", "L3 32.0 MiB", "memory 21 GB/s (measured)"
  std::string hardware = {};          ///< what it is, whoever offers it under whatever number; empty: not known
};
PRAGMA_JSON(device_facts, id, backend, model, arch, memory_bytes, tools, details, hardware)

struct node_facts {
  std::string name;                   ///< unique in the cluster
  std::string version;                ///< of pragma
  int slots = 1;                      ///< jobs at once that hold no device
  std::vector<device_facts> devices;
  int simd_bits = 0;                  ///< of its processor; 0: not known
  std::string machine = {};           ///< the host below all containers and users, so that its nodes do not measure beside each other; empty: not known
};
PRAGMA_JSON(node_facts, name, version, slots, devices, simd_bits, machine)

struct job_needs {
  std::string backend = "cpu";
  bool exclusive = false;             ///< holds the device's lease, and on a CPU the whole node: measurements, and on a GPU every check
  uint64_t memory_bytes = 0;
  std::string arch;                   ///< empty: any
  std::vector<std::string> tools;     ///< all of them
  int simd_bits = 0;                  ///< of the node's processor, at least
  int capability = 0;                 ///< of an NVIDIA device, times ten (sm_90: 90), at least
  std::string node;                   ///< that one; empty: any
  bool operator==(const job_needs&) const = default;
};
PRAGMA_JSON(job_needs, backend, exclusive, memory_bytes, arch, tools, simd_bits, capability, node)

struct job {
  std::string id;                     ///< unique; who answers twice is heard once
  std::string run;                    ///< runs share the cluster fairly; all exclusive jobs of a run go to one device
  job_needs needs;
  std::string owner = {};             ///< whose run it is: users share the cluster fairly, then their runs
  int priority = 0;                   ///< higher first
};
PRAGMA_JSON(job, id, run, needs, owner, priority)

/// "Do this": the ticket comes back with the answer.
struct assignment {
  std::string job, node, device;
  uint64_t ticket = 0;
};
PRAGMA_JSON(assignment, job, node, device, ticket)

struct abandoned_job {
  std::string job;
  error why;
};

/// A run whose device is gone measures on another: its earlier times cannot be compared with the new ones.
struct moved_run {
  std::string run, from, to;          ///< "node/device"
};
PRAGMA_JSON(moved_run, run, from, to)

struct dispatch_limits {
  int tries = 5;                      ///< of one job, before it is given up
  int same_failures = 3;              ///< of one node in a row: quarantine
  double silent_seconds = 5;          ///< without a heartbeat: lost
  double job_seconds = 1800;          ///< for a job that its node says it has in hand; then the node counts as unable
  double unheard_seconds = 10;        ///< for a job that its node says it does not have: lost on the way
  int devices_of_owner = 0;           ///< leases at once of one owner; 0: no limit
  double share_half_life = 3600;      ///< seconds after which used time counts half
};

/// away: it was lost and has not come back; the dispatcher forgets such a node, the status remembers it.
enum class node_state { ready, quarantined, draining, away };
NLOHMANN_JSON_SERIALIZE_ENUM(node_state, {{node_state::ready, "ready"}, {node_state::quarantined, "quarantined"}, {node_state::draining, "draining"}, {node_state::away, "away"}})

struct lease_state {
  std::string device, job;            ///< job empty: free
  double since = 0;
};
PRAGMA_JSON(lease_state, device, job, since)

struct node_status {
  node_facts facts;
  node_state state = node_state::ready;
  std::string reason;                 ///< of a quarantine
  double joined = 0, heard = 0;       ///< times as handed in
  int64_t done = 0, failed = 0;
  std::vector<std::string> jobs;      ///< in flight
  std::vector<lease_state> leases;
};
PRAGMA_JSON(node_status, facts, state, reason, joined, heard, done, failed, jobs, leases)

class dispatcher {
public:
  explicit dispatcher(dispatch_limits limits = {}) : limits_(limits) {}

  /// A node that is known already rejoins: what it had in flight is queued again.
  void joined(const node_facts& facts, double now);
  void heard_of(const std::string& node, double now);
  /// ... with the tickets of what it has in hand: what it should have and does not is queued again.
  void heard_of(const std::string& node, const std::vector<uint64_t>& tickets, double now);
  /// The node that has this job in hand; empty: none.
  std::string holder(const std::string& job) const;
  /// The link is down or the node left: its jobs are queued again, first in their run.
  void lost(const std::string& node, double now);
  void drain(const std::string& node);
  /// not_found, or invalid_argument when it is not in quarantine.
  expected<void> release(const std::string& node);

  /// A job that is known already (queued, in flight or answered) is not taken twice.
  void submit(const job& j, double now);
  /// Jobs of a run that wait for a node are forgotten: their ids. What nodes have in hand goes on.
  std::deque<std::string> withdraw(const std::string& run);
  /// Whether a node that is here could do it, now or later.
  bool possible(const job_needs& needs) const;
  /// Ends all jobs of a run; late answers are dropped.
  void forget_run(const std::string& run);
  /// True when this is the answer that counts; false for a late or doubled one.
  bool answered(const std::string& job, uint64_t ticket, double now);
  /// The node could not do it, through no fault of the job's (its reference died, its disk is full).
  /// What a node lacks or has no room for now (no_compiler, busy) is no fault of its own: the job goes to another, and nothing is counted. Equal
  /// codes in a row are: their messages name files and processes, and differ.
  void failed(const std::string& job, uint64_t ticket, const error& why, double now);
  /// Notices silent nodes, and jobs that take too long.
  void tick(double now);

  /// What is to be done now. Call it after events.
  struct orders {
    std::vector<assignment> assign;
    std::vector<abandoned_job> abandon;
    std::vector<moved_run> moved;
    std::vector<std::string> quarantined;
    std::vector<std::pair<std::string, std::string>> stop; ///< node, run: what it does for that run is waited for no more
  };
  orders take_orders(double now);

  std::vector<node_status> nodes() const;
  size_t queued() const { return queue_.size(); }
  size_t in_flight() const { return running_.size(); }
  int64_t duplicates() const { return duplicates_; }
  int64_t requeued() const { return requeued_; }
  /// Seconds that jobs waited in the queue, all together, and how many were assigned.
  double waited() const { return waited_; }
  int64_t assigned() const { return assigned_; }

private:
  struct node {
    node_facts facts;
    node_state state = node_state::ready;
    std::string reason;
    std::optional<ec> last_failure;
    int failures = 0;                 ///< of that code in a row
    double joined = 0, heard = 0;
    int64_t done = 0, failed = 0;
    std::set<std::string> jobs;
    std::map<std::string, std::string> leases; ///< device -> job
    std::map<std::string, double> leased_since;
  };
  struct waiting {
    job what;
    double since = 0;
    int tries = 0;
  };
  struct running {
    waiting from;
    std::string node, device;
    uint64_t ticket = 0;
    double since = 0;
  };

  /// A run with queued jobs. Only runs for which something changed are looked at by take_orders().
  struct share {
    int in_flight = 0;
    uint64_t last_served = 0;         ///< a number that grows
    auto operator<=>(const share&) const = default;
  };
  struct run {
    std::deque<std::string> jobs;     ///< queued
    share given;                      ///< who has least in flight is next, then who waited longest
    std::string home;                 ///< "node/device" of its exclusive jobs; empty: not settled
    std::string waits_at;             ///< the home that it is listed under in waiting_at_home_
    std::string moved_from;           ///< its home is gone; said once it has another
    std::set<std::string> answered;
    std::string owner;
    int priority = 0;
  };
  struct owner {
    int in_flight = 0, leases = 0;
    double used = 0, counted = 0;     ///< seconds of nodes' time, halved every share_half_life; and when that was
  };
  /// Priority, what the owner has and had, what the run has.
  using turn = std::tuple<int, int, double, share, std::string>;

  turn turn_of(const std::string& run) const;
  bool others_disturb(const std::string& name, const device_facts& d, const job_needs& needs) const;
  std::set<std::string> same_machine(const std::string& node) const;
  void freed_here(const std::string& node);
  void requeue(const std::string& job, const std::string& why);
  void end(const std::string& job);
  void unpark(const std::string& run);
  void park(const std::string& run);
  /// Something became free on this node, or it is new: who waits for that is to be looked at.
  void freed(const std::string& node);
  /// The runs that live there have to settle elsewhere.
  void evict(const std::string& node);
  bool could(const node& n, const device_facts& d, const job_needs& needs) const;
  bool busy(const std::string& name, const node& n, const device_facts& d, const job_needs& needs) const;
  bool reserved(const std::string& node) const;
  bool yields(const std::string& name, const node& n, const device_facts& d, const waiting& w) const;
  std::optional<assignment> place(const waiting& w, run& r);
  std::optional<assignment> place_on(const std::string& name, const node& n, const waiting& w) const;

  dispatch_limits limits_;
  std::map<std::string, node> nodes_;
  std::map<std::string, waiting> queue_;    ///< by job
  std::map<std::string, running> running_;  ///< by job
  std::map<std::string, run> runs_;
  std::set<std::string> dirty_;             ///< runs to be looked at
  std::map<std::string, std::set<std::string>> waiting_at_home_; ///< "node/device" -> runs whose next exclusive job waits for it
  std::map<std::string, std::pair<job_needs, std::set<std::string>>> waiting_anywhere_; ///< needs as text -> runs with a job that fits several places
  std::vector<abandoned_job> abandoned_;
  std::vector<moved_run> moved_;
  std::vector<std::string> quarantined_;
  std::vector<std::pair<std::string, std::string>> stop_;
  std::map<std::string, std::set<std::string>> machines_; ///< nodes of one host
  std::map<std::string, owner> owners_;
  double now_ = 0;                    ///< the latest that was handed in
  uint64_t served_ = 0;
  int64_t duplicates_ = 0, requeued_ = 0, assigned_ = 0;
  double waited_ = 0;
};

} // namespace pragma
