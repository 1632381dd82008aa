// Verifier and Profiler as the Conductor of a head sees them: they answer like the local ones, but have a node do the work.
#pragma once

#include "cluster/wire.hpp"

#include <functional>
#include <memory>
#include <mutex>

namespace pragma {

/// What the two proxies of one run share. Only touched by their actors' handlers through atomics and a lock.
struct run_place {
  std::string run;
  std::string prefix;                     ///< of job ids: unique to this start of the head
  task_text task;
  std::string path;                       ///< of the task as the user knows it
  std::string owner;
  int priority = 0;
  job_needs needs;                        ///< the backend of its candidates
  std::string needs_text;                 ///< as its user knows them
  std::function<void(const std::string&)> say; ///< to the user: "measuring on node a, device cpu"
  std::mutex mutex;
  uint64_t jobs = 0;
  load_request load;
  std::string where;                      ///< "node/device" of the last exclusive job
  bool nowhere = false;                   ///< no node could do the last job when it was submitted
};

verifier_actor spawn_placed_verifier(caf::actor_system& system, cluster_actor cluster, std::shared_ptr<run_place> place);
profiler_actor spawn_placed_profiler(caf::actor_system& system, cluster_actor cluster, std::shared_ptr<run_place> place);

} // namespace pragma
