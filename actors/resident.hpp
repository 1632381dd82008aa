// Tasks that stay loaded between questions: each with its Torch process, its inputs, expected outputs and last builds, so that the second
// question about a task costs a build and a check. For front ends that live long (the MCP server); thread-safe.
#pragma once

#include "actors/examine.hpp"

#include <memory>

namespace pragma {

struct resident_options {
  size_t most_tasks = 2;               ///< each holds a Torch process and a task's tensors
  double idle_seconds = 900;           ///< a task that nobody asked about for so long is let go
};

class resident {
public:
  using options = resident_options;
  explicit resident(options limits = {});
  ~resident();

  struct result {
    examination found;
    bool warm = false;                 ///< the task was loaded already
    double seconds = 0;
  };
  /// As pragma::examine(), on the task of `load`; a task file that changed is loaded anew. Questions about one task wait for each other.
  /// limit_exceeded: as many tasks as are kept are being worked on; interrupted: `cancelled` turned true.
  expected<result> examine(const load_request& load, const examine_request& request, const std::atomic<bool>& cancelled,
                           const std::function<void(const std::string&)>& on_step = {});

private:
  struct task_thread;
  std::shared_ptr<task_thread> thread_of(const load_request& load, error& refused);
  options limits_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<task_thread>> tasks_; ///< most recent first
};

} // namespace pragma
