// Which network addresses a stranger's page may send us to: only those of the public Internet (IANA's special-purpose registries).
// The fetcher asks for each socket that libcurl opens, with the address that the name resolved to, so that no DNS answer gets past it.
#pragma once

#include <string>

#include <sys/socket.h>

namespace pragma {

/// Empty for a public address; else what it is: "loopback", "private", "link-local", "carrier-grade NAT", ... Addresses that carry an
/// IPv4 one inside (mapped, NAT64, 6to4, Teredo) are never public here: what they lead to is another network's matter.
std::string special_address(const sockaddr* address);

/// "192.0.2.1", "2001:db8::1".
std::string address_text(const sockaddr* address);

} // namespace pragma
