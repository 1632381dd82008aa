// Between the door and the agents: a member's checked frames become messages to placement and scheduler, and what those say to it becomes frames. Each node has
// a stand-in here, an actor that ends with its connection. Who a member is comes from its certificate, never from what it says.
#pragma once

#include "cluster/door.hpp"
#include "cluster/replica.hpp"
#include "cluster/wire.hpp"

#include <memory>

namespace pragma {

/// One thing that the door told. In this process only.
struct gate_event {
  std::shared_ptr<door_event> what;
};

} // namespace pragma

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(pragma::gate_event)

namespace pragma {

using gate_actor = caf::typed_actor<caf::reacts_to<gate_event>>;

/// `out`: set before the first event. `pair`: of a head that is one of two, else null.
gate_actor spawn_gate(caf::actor_system& system, std::shared_ptr<std::unique_ptr<door>> out, cluster_actor places, scheduler_actor users, std::shared_ptr<replica> pair = nullptr);

} // namespace pragma
