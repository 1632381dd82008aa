// A CAF actor system without any network: types of messages and threads. Head and node each have one; what is between machines is door and link.
#pragma once

#include "cluster/wire.hpp"

#include <memory>

namespace pragma {

class local_system {
public:
  explicit local_system(size_t threads);
  ~local_system(); ///< see leave_process()
  caf::actor_system& get() { return *system_; }

private:
  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> system_;
};

/// True once there was one in this process: it ends with leave_process() instead of exit().
bool local_system_was_used();
/// Flushes what was printed and ends the process. An agent that is in a long call would hold up CAF's own end, so a local_system's destructor stops
/// nothing and its threads live until here.
[[noreturn]] void leave_process(int code);

} // namespace pragma
