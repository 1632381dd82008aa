// The Coder: writes candidates. A thin wrapper round coding_session; spawn it detached, it blocks (HTTP, commands).
#pragma once

#include "actors/coding.hpp"
#include "actors/interfaces.hpp"

namespace pragma {

struct coder_state {
  static inline const char* name = "coder";
};

coder_actor::behavior_type coder(coder_actor::stateful_pointer<coder_state> self, std::shared_ptr<coding_session> session);

} // namespace pragma
