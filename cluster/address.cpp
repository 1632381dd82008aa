#include "cluster/address.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;

/// Milliseconds until `end`, at least 0.
int left(clock::time_point end) {
  return static_cast<int>(std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now()).count()));
}

bool ready(int fd, short events, clock::time_point end) {
  pollfd p{fd, events, 0};
  int n;
  do n = ::poll(&p, 1, left(end));
  while (n < 0 && errno == EINTR);
  return n > 0;
}

/// TCP lets a socket meet itself: nobody listens on a port that the system gives out, and it gives out that one for the attempt. Who wanted to listen there cannot, then.
bool met_itself(int fd) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 && ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 &&
         own_size == peer_size && std::memcmp(&own, &peer, own_size) == 0;
}

} // namespace

expected<open_socket> connect_to(const address& to, double seconds) {
  const auto end = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int problem = ::getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &hints, &found))
    return fail(ec::not_found, "there is no host " + printable(to.host) + ": " + ::gai_strerror(problem), "check HOST:PORT");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  std::string why = "no address";
  for (auto* a = found; a; a = a->ai_next) {
    open_socket s(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (s.fd < 0) continue;
    const int yes = 1;
    ::setsockopt(s.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    int problem = ::connect(s.fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    if (problem == EINPROGRESS && ready(s.fd, POLLOUT, end)) {
      socklen_t size = sizeof problem;
      ::getsockopt(s.fd, SOL_SOCKET, SO_ERROR, &problem, &size);
    }
    if (problem == 0 && met_itself(s.fd)) problem = ECONNREFUSED;
    if (problem == 0) return s;
    why = problem == EINPROGRESS ? "no answer" : std::strerror(problem);
  }
  return fail(why == "no answer" ? ec::timeout : ec::remote_failed, "cannot reach " + to.text() + ": " + why, "is `pragma head` running there, and the port open?");
}

bool refused(const error& e) { return e.code == ec::remote_failed && e.message.ends_with(std::strerror(ECONNREFUSED)); }

open_socket::~open_socket() {
  if (fd >= 0) ::close(fd);
}

expected<open_socket> listen_on(const address& where) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int problem = ::getaddrinfo((where.host == "localhost" ? "127.0.0.1" : where.host.c_str()), std::to_string(where.port).c_str(), &hints, &found))
    return fail(ec::invalid_argument, "cannot listen on " + where.text() + ": " + ::gai_strerror(problem), "--listen ADDR:PORT, as in 0.0.0.0:7447");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  std::string why = "no address";
  for (auto* a = found; a; a = a->ai_next) {
    open_socket s(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    ::setsockopt(s.fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (s.fd >= 0 && ::bind(s.fd, a->ai_addr, a->ai_addrlen) == 0 && ::listen(s.fd, SOMAXCONN) == 0) return s;
    why = std::strerror(errno);
  }
  return fail(ec::io_error, "cannot listen on " + where.text() + ": " + why, "is another head running there? choose another with --listen ADDR:PORT");
}

uint16_t port_of(int fd) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) return 0;
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(own).sin6_port : reinterpret_cast<sockaddr_in&>(own).sin_port);
}

std::string address::text() const { return (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" + std::to_string(port); }
bool address::loopback() const {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return host == "localhost" || host == "::1"; // a name such as 127.example.com is anybody's
}

expected<address> parse_address(const std::string& text, uint16_t default_port) {
  const auto bad = [&](const std::string& why) { return fail(ec::invalid_argument, "'" + printable(text) + "' is no address: " + why, "HOST:PORT, as in 10.0.0.5:7447 or [::1]:7447"); };
  address a;
  const auto colon = text.rfind(':');
  const bool bracketed = text.starts_with('[');
  const auto bracket = text.find(']');
  if (bracketed && bracket == std::string::npos) return bad("the bracket is not closed");
  std::string port;
  if (bracketed) {
    a.host = text.substr(1, bracket - 1);
    if (bracket + 1 < text.size() && text[bracket + 1] == ':') port = text.substr(bracket + 2);
  } else if (colon != std::string::npos && text.find(':') == colon) {
    a.host = text.substr(0, colon);
    port = text.substr(colon + 1);
  } else if (colon == std::string::npos) {
    a.host = text;
  } else {
    return bad("an IPv6 address needs brackets");
  }
  if (a.host.empty()) return bad("the host is missing");
  if (port.empty() && default_port != 0) {
    a.port = default_port;
    return a;
  }
  if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) > 65535) return bad("the port is missing or wrong");
  a.port = static_cast<uint16_t>(std::stoi(port));
  return a;
}

expected<std::vector<address>> parse_addresses(const std::string& text, uint16_t default_port) {
  std::vector<address> all;
  for (const auto& one : split(text, ',')) {
    auto parsed = parse_address(trim(one), default_port);
    if (!parsed) return fail(parsed.error());
    all.push_back(std::move(*parsed));
  }
  return all;
}

std::string text_of(const std::vector<address>& all) {
  std::vector<std::string> texts;
  for (const auto& a : all) texts.push_back(a.text());
  return join(texts, ",");
}

} // namespace pragma
