// Looks whether a head answers before CAF dials it: CAF's dial has no deadline and says little about why it failed. No CAF here.
#pragma once

#include "base/error.hpp"
#include "cluster/certificates.hpp"

#include <optional>
#include <string>

namespace pragma {

struct address {
  std::string host;
  uint16_t port = 0;
  std::string text() const;
  bool loopback() const;              ///< by what it says: 127.x, ::1, localhost
};
/// "HOST:PORT", "[::1]:PORT"; where `default_port` is not 0, "HOST" alone.
expected<address> parse_address(const std::string& text, uint16_t default_port = 0);

/// Connects, shakes hands (mutual TLS where `tls` is given) and waits for the head's first byte. Errors: not_found (no such host),
/// remote_failed (refused, another CA, an expired certificate, no TLS there), timeout.
expected<void> probe(const address& head, const std::optional<tls_files>& tls, double seconds);

} // namespace pragma
