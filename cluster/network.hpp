// A CAF actor system that talks to others: message types, mutual TLS, limits, and dialling with deadlines. Everything that CAF's networking needs
// to be told, and its traps (docs/cluster.md), stay in this file.
#pragma once

#include "base/files.hpp"
#include "cluster/probe.hpp"
#include "cluster/wire.hpp"
#include "kernels/memory_file.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace pragma {

struct network_options {
  std::optional<std::filesystem::path> tls; ///< folder with ca.pem, cert.pem, key.pem; none: loopback only
  size_t threads = 2;                       ///< of the scheduler; agents that block have threads of their own
};

class network {
public:
  /// Checks the certificates, takes private copies of them. One per process.
  static expected<std::unique_ptr<network>> start(const network_options& options);
  ~network(); ///< see leave_process()

  caf::actor_system& system() { return *system_; }
  /// Of the own certificate; -1 without TLS.
  int certificate_days() const { return certificate_days_; }

  /// Opens the port for others. Plaintext off loopback is refused (invalid_argument). Gives the port (0 asks for any).
  expected<uint16_t> publish(const cluster_actor& whom, const address& listen);
  /// Probes (see probe()), then dials. The handle may be an old one whose link is dead: say something to it with a deadline.
  expected<cluster_actor> dial(const address& head, double seconds);

private:
  explicit network(const network_options& options);
  expected<void> may_use(const address& a, const char* doing) const;

  std::vector<memory_file> copies_;         ///< of the certificates and the key, on no disk: CAF aborts when a file is gone at the next connection
  std::optional<tls_files> tls_;            ///< the paths under which this process can open them
  int certificate_days_ = -1;
  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> system_;
};

/// True once a network was started in this process: it ends with leave_process() instead of exit().
bool network_was_used();
/// Flushes what was printed and ends the process. CAF's own shutdown can wait for ever for the thread that dials with TLS, so a network's
/// destructor stops nothing and its threads live until here.
[[noreturn]] void leave_process(int code);

} // namespace pragma
