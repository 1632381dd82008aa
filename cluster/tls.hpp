// TLS 1.3 with certificates on both sides, or plain TCP on loopback, behind one non-blocking interface. The door (a head's side) and the link (everybody
// else's) use it. No CAF here.
#pragma once

#include "cluster/address.hpp"
#include "cluster/certificates.hpp"

#include <memory>
#include <set>
#include <string>

struct ssl_ctx_st;
struct ssl_st;

namespace pragma {

/// One member's certificate, key, CA and list of revoked certificates, read once. Whoever wants them anew loads another.
class tls_context {
public:
  /// Errors as check_tls_files()'s; parse_error for a list of revoked certificates that is not this CA's.
  static expected<std::shared_ptr<const tls_context>> load(const std::filesystem::path& folder);
  ~tls_context();
  const certificate_facts& own() const { return own_; }
  bool revoked(const std::string& serial) const { return revoked_.contains(serial); }
  ssl_ctx_st* get() const { return context_; }

private:
  tls_context() = default;
  ssl_ctx_st* context_ = nullptr;
  certificate_facts own_;
  std::set<std::string> revoked_;
};

/// When the files of a folder for --tls last changed, as a text to compare: an upgrade or a revocation is taken into use without a restart.
std::string stamp_of(const tls_files& files);
/// Whose certificate the other end of a connection proved to have, after the handshake; role none where it has none.
identity peer_of(const ssl_st* connection, const std::string& address);
/// Why that certificate admits nobody (expired, not valid yet, revoked by the list of `by`, no role), as a sentence; empty: it does.
std::string what_is_wrong(const ssl_st* connection, const tls_context& by);
/// Demands a certificate of the CA from the other end, as a server does. One that is expired or not valid yet passes, so that its bearer can be told
/// so: ask what_is_wrong().
void demand_certificate(ssl_st* connection);

class channel {
public:
  enum class result { done, again, closed }; ///< again: when poll() says what wants() names; closed: see trouble()
  /// `tls` null: plain. The server takes a certificate of the CA that is expired or not valid yet, so that its bearer can be told so: ask what_is_wrong().
  channel(open_socket socket, std::shared_ptr<const tls_context> tls, bool server);
  channel(channel&&) = default;
  channel& operator=(channel&&) = default;
  ~channel();

  int fd() const { return socket_.fd; }
  short wants() const { return wants_; }
  const std::string& trouble() const { return trouble_; }
  result handshake();
  result read(char* to, size_t room, size_t& got);
  result write(const char* from, size_t size, size_t& sent);
  /// After the handshake. Without TLS: role none, name "local".
  identity peer(const std::string& address) const;
  /// Why the other's certificate admits nobody (expired, not valid yet, revoked), as a sentence; empty: it does.
  std::string what_is_wrong() const;

private:
  struct freed {
    void operator()(ssl_st* ssl) const;
  };
  result outcome(int returned);
  open_socket socket_;
  std::shared_ptr<const tls_context> tls_;
  std::unique_ptr<ssl_st, freed> ssl_;
  short wants_ = 0;
  std::string trouble_;
};

} // namespace pragma
