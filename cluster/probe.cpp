#include "cluster/probe.hpp"

#include "base/text.hpp"

#include <cerrno>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

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

expected<open_socket> connect_to(const address& to, clock::time_point end) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int problem = ::getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &hints, &found))
    return fail(ec::not_found, "there is no host " + printable(to.host) + ": " + ::gai_strerror(problem), "check --join HOST:PORT");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  std::string why = "no address";
  for (auto* a = found; a; a = a->ai_next) {
    open_socket s(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (s.fd < 0) continue;
    if (::connect(s.fd, a->ai_addr, a->ai_addrlen) == 0) return s;
    if (errno == EINPROGRESS && ready(s.fd, POLLOUT, end)) {
      int problem = 0;
      socklen_t size = sizeof problem;
      ::getsockopt(s.fd, SOL_SOCKET, SO_ERROR, &problem, &size);
      if (problem == 0) return s;
      why = std::strerror(problem);
    } else {
      why = errno == EINPROGRESS ? "no answer" : std::strerror(errno);
    }
  }
  return fail(why == "no answer" ? ec::timeout : ec::remote_failed, "cannot reach " + to.text() + ": " + why, "is `pragma head` running there, and the port open?");
}

std::string tls_reason(SSL* ssl) {
  const long verified = ::SSL_get_verify_result(ssl);
  if (verified != X509_V_OK) return std::string("its certificate is not one of this cluster's CA: ") + ::X509_verify_cert_error_string(verified);
  char text[256] = "the connection was closed";
  const auto code = ::ERR_peek_last_error();
  if (code == 0) return text;
  const int reason = ERR_GET_REASON(code);
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_UNEXPECTED_MESSAGE) return "it does not speak TLS (was the head started without --tls?)";
  ::ERR_error_string_n(code, text, sizeof text);
  if (std::strstr(text, "alert")) return std::string("it refused our certificate (another CA, or expired): ") + text;
  return text;
}

expected<void> probe_tls(int fd, const address& head, const tls_files& files, clock::time_point end) {
  ::ERR_clear_error();
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(::SSL_CTX_new(::TLS_client_method()), ::SSL_CTX_free);
  if (!context || ::SSL_CTX_load_verify_locations(context.get(), files.ca.c_str(), nullptr) != 1 ||
      ::SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1 ||
      ::SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return fail(ec::invalid_argument, "OpenSSL cannot use the files in " + files.key.parent_path().string());
  ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const std::unique_ptr<SSL, void (*)(SSL*)> ssl(::SSL_new(context.get()), ::SSL_free);
  if (!ssl || ::SSL_set_fd(ssl.get(), fd) != 1) return fail(ec::internal, "OpenSSL has no memory for a connection");
  bool shaken = false;
  for (;;) {
    char byte = 0;
    // TLS 1.3 tells a client that it is refused only after the handshake: the first byte is the proof.
    const int n = shaken ? ::SSL_read(ssl.get(), &byte, 1) : ::SSL_connect(ssl.get());
    if (n == 1 && shaken) return {};
    if (n == 1) {
      shaken = true;
      continue;
    }
    const int want = ::SSL_get_error(ssl.get(), n);
    if (want != SSL_ERROR_WANT_READ && want != SSL_ERROR_WANT_WRITE)
      return fail(ec::remote_failed, head.text() + " and this machine do not trust each other: " + tls_reason(ssl.get()),
                  "all members need certificates of one CA: `pragma cluster ca issue NAME` on the CA's machine");
    if (!ready(fd, want == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN, end))
      return fail(ec::timeout, head.text() + " accepted the connection but did not answer", "is the head stopped, or something else on that port?");
  }
}

} // namespace

open_socket::~open_socket() {
  if (fd >= 0) ::close(fd);
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

expected<open_socket> probe(const address& head, const std::optional<tls_files>& tls, double seconds) {
  const auto end = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds));
  auto connected = connect_to(head, end);
  if (!connected) return fail(connected.error());
  if (tls) {
    if (auto trusted = probe_tls(connected->fd, head, *tls, end); !trusted) return fail(trusted.error());
    return connected;
  }
  char byte = 0;
  if (!ready(connected->fd, POLLIN, end))
    return fail(ec::timeout, head.text() + " accepted the connection but said nothing", "does the head use TLS? then give --tls DIR here, too");
  if (::recv(connected->fd, &byte, 1, 0) == 1) return connected;
  return fail(ec::remote_failed, head.text() + " closed the connection", "is that a `pragma head`?");
}

} // namespace pragma
