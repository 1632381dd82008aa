// Linked into the executables themselves, where it takes the place of CAF's own. CAF makes a node's identity of the machine's MAC addresses, the
// root file system's UUID and the process id: two containers of one host, each with PID 1, would be the same node.
#include <random>

namespace caf::detail {

unsigned get_process_id() {
  static const unsigned id = std::random_device()();
  return id;
}

} // namespace caf::detail
