// What members of a cluster tell each other: plain structs with a JSON field list, like actors/messages.hpp. No CAF; cluster/wire.hpp makes them
// messages. A message is at most max_message_bytes; what is longer (the record of a run) is fetched in slices.
#pragma once

#include "actors/messages.hpp"
#include "cluster/dispatcher.hpp"
#include "cluster/greeting.hpp"

namespace pragma {

inline constexpr size_t max_message_bytes = 1u << 20;

/// The text of a task, for a machine that does not have the user's files.
struct task_text {
  std::string name;                       ///< file name, "23_Softmax.py"
  std::string source;
  std::string sidecar;                    ///< text of NAME.json beside it; empty where there is none
};
PRAGMA_JSON(task_text, name, source, sidecar)
/// not_found, io_error; limit_exceeded beyond what a message can carry.
expected<task_text> read_task_text(const std::filesystem::path& file);
/// Writes it below `folder`, in a folder named by its hash, where it is not there already; gives the file's path.
expected<std::filesystem::path> keep_task_text(const task_text& task, const std::filesystem::path& folder);

/// pragma::error on its way.
struct failure {
  int code = -1;                          ///< ec as a number; -1: none
  std::string message, hint;
  static failure of(const error& e) { return {static_cast<int>(e.code), e.message, e.hint}; }
  bool happened() const { return code >= 0; }
  pragma::error what() const { return {code > static_cast<int>(last_code) ? ec::internal : static_cast<ec>(code), message, hint}; }
};
PRAGMA_JSON(failure, code, message, hint)

/// Head -> node. Self-contained, so that any node can do it: a node that has not loaded the run's task does so first.
struct work_order {
  std::string job, run;
  uint64_t ticket = 0;                    ///< of this assignment: comes back with the answer
  std::string kind;                       ///< "load", "verify", "measure", "confirm", "none"
  task_text task;
  load_request load;
  pragma::candidate candidate;            ///< verify, confirm
  measure_request measure;
  std::string owner;                      ///< for the head's own use
  int priority = 0;
};
PRAGMA_JSON(work_order, job, run, ticket, kind, task, load, candidate, measure, owner, priority)

/// Node -> head.
struct work_answer {
  std::string job, node, device;
  uint64_t ticket = 0;
  json result;                            ///< loaded_task, verdict, measurement or confirmation; null: failed
  pragma::failure failure;
  bool node_at_fault = false;             ///< failed for a reason that another node may not have
};
PRAGMA_JSON(work_answer, job, node, device, ticket, result, failure, node_at_fault)

/// Node -> head, when it joins.
struct node_hello {
  node_facts facts;
  std::vector<std::string> missing;       ///< "perf: no PMU on this machine": what would be measured better with it
  int certificate_days = -1;              ///< until the node's certificate expires; -1: no TLS
};
PRAGMA_JSON(node_hello, facts, missing, certificate_days)
struct node_welcome {
  std::string head;                       ///< of this start of the head: jobs of an earlier one are worth nothing
  std::string refused;                    ///< why it may not join; empty: it has
  bool for_now = false;                   ///< ... and whether that may pass
};
PRAGMA_JSON(node_welcome, head, refused, for_now)

/// Node -> head, every second.
struct heartbeat {
  std::string node;
  double round_trip_ms = 0;               ///< of the heartbeat before
  std::vector<uint64_t> tickets = {};     ///< of what it has in hand: what the head gave it and is not here was lost on the way
};
PRAGMA_JSON(heartbeat, node, round_trip_ms, tickets)

/// `pragma cluster status`.
struct member_status {
  node_status node;
  std::vector<std::string> missing;
  int certificate_days = -1;
  double round_trip_ms = 0, silent_seconds = 0;
};
PRAGMA_JSON(member_status, node, missing, certificate_days, round_trip_ms, silent_seconds)
struct cluster_run {
  std::string id, task, state;            ///< as run_header
  int attempts = 0;
  double speedup = 0;                     ///< of the best so far; 0: none
  std::string owner;
  int priority = 0;
};
PRAGMA_JSON(cluster_run, id, task, state, attempts, speedup, owner, priority)
struct cluster_status {
  std::string version, listen;
  int protocol = cluster_protocol;
  int certificate_days = -1;              ///< the head's own
  double up_seconds = 0;
  std::vector<member_status> members;
  std::vector<cluster_run> runs;
  int64_t queued = 0, in_flight = 0, assigned = 0, requeued = 0, duplicates = 0;
  double mean_queue_seconds = 0;
  std::string standby;                    ///< of a head that is one of two: "in step", "copying", "none"
  uint64_t epoch = 0;
};
PRAGMA_JSON(cluster_status, version, protocol, listen, certificate_days, up_seconds, members, runs, queued, in_flight, assigned, requeued,
            duplicates, mean_queue_seconds, standby, epoch)

/// User -> head: begin a run (or go on with one: request.id).
struct run_order {
  run_request request;                    ///< load.path is only shown; the task's text is below
  task_text task;                         ///< empty when an earlier run is resumed
};
PRAGMA_JSON(run_order, request, task)

/// What happened since event number `from`.
struct run_news {
  std::string state;                      ///< "queued", "running", "finished", "interrupted", "failed"; "unknown" to this head
  uint64_t next = 0;                      ///< ask from here the next time
  std::vector<run_event> events;
  pragma::failure failure;                ///< state "failed"
};
PRAGMA_JSON(run_news, state, next, events, failure)

/// A slice of a long text; whoever has all of them checks the hash.
struct text_slice {
  uint64_t offset = 0, total = 0;
  std::string sha256;                     ///< of the whole
  std::string bytes;
};
PRAGMA_JSON(text_slice, offset, total, sha256, bytes)

} // namespace pragma
