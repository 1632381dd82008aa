// Who stands at the door of a listener beyond loopback. web/ knows no certificates: who has them (cluster/page_door.hpp) hands in one of these.
#pragma once

#include <string>
#include <vector>

struct ssl_ctx_st;
struct ssl_st;

namespace pragma::web {

struct visitor {
  std::string name;                   ///< the certificate's; empty: this machine's user, who had the token
  bool sees_all = true;               ///< else what is his own
  std::string refusal;                ///< why he is not let in, as a sentence; empty: he is
};

/// Called from several threads.
class door {
public:
  virtual ~door() = default;
  /// Gives the server its certificate and has it demand one of each client. False: OpenSSL would not.
  virtual bool prepare(ssl_ctx_st& server) = 0;
  /// By the certificate of a connection's other end, as of now: one that is revoked meanwhile is refused.
  virtual visitor who(const ssl_st& connection) = 0;
  /// Names and addresses of this server that its certificate carries, the one to print first. A request under another name is refused (DNS rebinding).
  virtual std::vector<std::string> names() = 0;
};

} // namespace pragma::web
