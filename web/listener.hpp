// The project's HTTP server (cpp-httplib) for what people and programs of this machine look at: loopback only, a secret that each request
// carries, and no page of another origin gets in. Used by pragma dashboard and pragma mcp.
#pragma once

#include "base/error.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace httplib {
class Server;
}

namespace pragma::web {

/// 32 hex digits from the system's random numbers.
std::string new_secret();
/// The secret in `file`, made there (for its owner alone) where there is none. io_error.
expected<std::string> kept_secret(const std::filesystem::path& file);

struct listen_options {
  std::string address = "127.0.0.1";  ///< or "::1", "localhost": of this machine only
  int port = 0;                       ///< 0: any that is free
  std::string secret;                 ///< as "Authorization: Bearer", as the cookie pragma, or once as ?token= of an address that then sets the cookie
  size_t most_body = 8u << 20;        ///< bytes of a request
  int threads = 32;                   ///< each open stream takes one
};

class listener {
public:
  /// invalid_argument for an address off this machine; io_error when the port is taken.
  static expected<listener> open(const listen_options& options);
  listener(listener&&) noexcept;
  ~listener();

  /// For routes; register them before run().
  httplib::Server& server();
  int port() const;
  std::string address() const;        ///< "http://127.0.0.1:7450"
  /// Until `stop` turns true. Streams see it through stopping().
  void run(const std::atomic<bool>& stop);
  const std::atomic<bool>& stopping() const;

private:
  struct impl;
  explicit listener(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

} // namespace pragma::web
