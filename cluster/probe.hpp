// Looks whether a head answers before CAF dials it: CAF's dial has no deadline and says little about why it failed. No CAF here.
#pragma once

#include "base/error.hpp"
#include "cluster/certificates.hpp"

#include <optional>
#include <string>
#include <utility>

namespace pragma {

struct address {
  std::string host;
  uint16_t port = 0;
  std::string text() const;
  bool loopback() const;              ///< by what it says: 127.x, ::1, localhost
};
/// "HOST:PORT", "[::1]:PORT"; where `default_port` is not 0, "HOST" alone.
expected<address> parse_address(const std::string& text, uint16_t default_port = 0);

/// A socket, closed at the end.
struct open_socket {
  int fd = -1;
  explicit open_socket(int descriptor) : fd(descriptor) {}
  open_socket(open_socket&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  open_socket& operator=(open_socket&& other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~open_socket();
};

/// Connects, shakes hands (mutual TLS where `tls` is given) and waits for the head's first byte. Keep the connection until the real one is
/// made: CAF names a connection by its descriptor, and the head's news that the probe is gone would end the one that got its number.
/// Errors: not_found (no such host), remote_failed (refused, another CA, an expired certificate, no TLS there), timeout.
expected<open_socket> probe(const address& head, const std::optional<tls_files>& tls, double seconds);

} // namespace pragma
