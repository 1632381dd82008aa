// Where a head listens, as users write it, and a socket that is closed at its end.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pragma {

struct address {
  std::string host;
  uint16_t port = 0;
  std::string text() const;
  bool loopback() const;              ///< by what it says: 127.x, ::1, localhost
};
/// "HOST:PORT", "[::1]:PORT"; where `default_port` is not 0, "HOST" alone.
expected<address> parse_address(const std::string& text, uint16_t default_port = 0);
/// Several with commas between: whichever serves.
expected<std::vector<address>> parse_addresses(const std::string& text, uint16_t default_port = 0);
std::string text_of(const std::vector<address>& all);

/// A descriptor, closed at the end.
struct open_socket {
  int fd = -1;
  open_socket() = default;
  explicit open_socket(int descriptor) : fd(descriptor) {}
  open_socket(open_socket&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  open_socket& operator=(open_socket&& other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~open_socket();
};

/// Connected within `seconds`, non-blocking. not_found (no such host), remote_failed (refused), timeout.
expected<open_socket> connect_to(const address& to, double seconds);
/// Whether that is what connect_to() says where nothing listens: the other machine lives, and its port is closed.
bool refused(const error& e);
/// Listening, non-blocking. io_error; invalid_argument for a name that is no address of this machine.
expected<open_socket> listen_on(const address& where);
/// The port that a listening socket got.
uint16_t port_of(int fd);

} // namespace pragma
