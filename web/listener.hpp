// The project's HTTP server (cpp-httplib) for what people and programs look at. On loopback each request carries a secret; beyond it there is TLS, and
// each client has a certificate. No page of another origin gets in. Used by pragma dashboard and pragma mcp.
#pragma once

#include "base/error.hpp"
#include "web/door.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace httplib {
class Server;
struct Request;
}

namespace pragma::web {

/// 32 hex digits from the system's random numbers.
std::string new_secret();
/// The secret in `file`, made there (for its owner alone) where there is none. io_error.
expected<std::string> kept_secret(const std::filesystem::path& file);

struct listen_options {
  std::string address = "127.0.0.1";  ///< off this machine only with a door
  int port = 0;                       ///< 0: any that is free
  std::string secret;                 ///< as "Authorization: Bearer", as the cookie pragma, or once as ?token= of an address that then sets the cookie
  std::shared_ptr<web::door> door;    ///< with it: TLS, and visitors by their certificates instead of the secret
  size_t most_body = 8u << 20;        ///< bytes of a request
  int threads = 32;                   ///< each open stream takes one
};

class listener {
public:
  /// invalid_argument for an address off this machine without a door; io_error when the port is taken.
  static expected<listener> open(const listen_options& options);
  listener(listener&&) noexcept;
  ~listener();

  /// For routes; register them before run().
  httplib::Server& server();
  int port() const;
  std::string address() const;        ///< "http://127.0.0.1:7450"; with a door "https://" and the first name of its certificate
  /// Who sent a request, as of now. On loopback whoever had the secret: everything is his.
  visitor who(const httplib::Request& request) const;
  /// Until `stop` turns true. Streams see it through stopping().
  void run(const std::atomic<bool>& stop);
  const std::atomic<bool>& stopping() const;

private:
  struct impl;
  explicit listener(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

} // namespace pragma::web
