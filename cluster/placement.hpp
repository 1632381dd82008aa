// The head's cluster agent: carries what the dispatcher decides. Event-based, never blocks.
#pragma once

#include "cluster/wire.hpp"

#include <functional>

namespace pragma {

struct placement_options {
  dispatch_limits limits;
  std::string listen;                     ///< shown in the status
  std::function<int()> certificate_days;  ///< of the head's own; empty: no TLS
  std::function<void(cluster_status&)> more; ///< puts in what others know (the pair of heads); may be empty
  caf::timespan tick = std::chrono::milliseconds(250);
};

cluster_actor spawn_placement(caf::actor_system& system, placement_options options);

} // namespace pragma
