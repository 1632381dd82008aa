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
  observer_actor observer;              ///< may be empty
  caf::timespan request_timeout = std::chrono::hours(2);
  caf::timespan restart_delay = std::chrono::milliseconds(100); ///< doubled with each restart of a run
  int max_restarts = 5;                 ///< of all agents together in one run; then the run fails
};

struct conductor_state;

conductor_actor::behavior_type conductor(conductor_actor::stateful_pointer<conductor_state> self, conductor_agents agents);

} // namespace pragma
