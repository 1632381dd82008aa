// The head's cluster agent: carries what the dispatcher decides. Event-based, never blocks.
#pragma once

#include "cluster/wire.hpp"

namespace pragma {

struct placement_options {
  dispatch_limits limits;
  std::string listen;                     ///< shown in the status
  int certificate_days = -1;
  caf::timespan tick = std::chrono::milliseconds(250);
};

cluster_actor spawn_placement(caf::actor_system& system, placement_options options, desk_actor desk);

} // namespace pragma
