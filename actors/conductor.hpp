// The Conductor: runs the loop and supervises the others. Event-based, never blocks; all judgement is in
// diagnosis/conductor. An agent that dies is started again and asked the same thing again (requests are idempotent).
#pragma once

#include "actors/interfaces.hpp"

#include <functional>

namespace pragma {

/// How the Conductor gets its agents. A factory is called at the start and again when the agent has died.
struct conductor_agents {
  std::function<verifier_actor()> verifier;
  std::function<profiler_actor()> profiler;
  std::function<coder_actor()> coder;
  store_actor store;
  knowledge_actor knowledge;            ///< may be empty: findings then stand without documentation
  observer_actor observer;              ///< may be empty
  caf::timespan request_timeout = std::chrono::hours(2);
  caf::timespan knowledge_timeout = std::chrono::seconds(30); ///< a run does not wait longer for documentation
  int max_restarts = 5;                 ///< of all agents together in one run; then the run fails
};

/// An id for a new run of this task.
std::string new_run_id(const std::string& path);

/// Spawns it (event-based, on the shared scheduler).
conductor_actor spawn_conductor(caf::actor_system& system, conductor_agents agents);

} // namespace pragma
