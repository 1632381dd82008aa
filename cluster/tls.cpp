#include "cluster/tls.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "base/utc.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>

#include <poll.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace pragma {

namespace {

using x509_ptr = std::unique_ptr<X509, decltype(&X509_free)>;
using bio_ptr = std::unique_ptr<BIO, decltype(&BIO_free_all)>;

constexpr uint64_t max_list_bytes = 4u << 20;

/// Times are judged after the handshake, when there is a way to say so to the other side.
int judge_later(int good, X509_STORE_CTX* context) {
  const int why = X509_STORE_CTX_get_error(context);
  return good || ((why == X509_V_ERR_CERT_HAS_EXPIRED || why == X509_V_ERR_CERT_NOT_YET_VALID) && X509_STORE_CTX_get_error_depth(context) == 0);
}

x509_ptr certificate_of(const ssl_st* connection) { return {SSL_get1_peer_certificate(connection), X509_free}; }

std::string hex(const ASN1_INTEGER* serial) {
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(ASN1_INTEGER_to_BN(serial, nullptr), BN_free);
  char* text = number ? BN_bn2hex(number.get()) : nullptr;
  std::string out = text ? text : "";
  OPENSSL_free(text);
  return out;
}

expected<std::set<std::string>> read_revoked(const tls_files& files) {
  std::set<std::string> serials;
  std::error_code ignored;
  if (!std::filesystem::exists(files.revoked, ignored)) return serials;
  const auto text = read_file(files.revoked, max_list_bytes);
  if (!text) return fail(text.error());
  const auto authority = read_file(files.ca);
  if (!authority) return fail(authority.error());
  const bio_ptr in(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())), BIO_free_all), ca_in(BIO_new_mem_buf(authority->data(), static_cast<int>(authority->size())), BIO_free_all);
  const std::unique_ptr<X509_CRL, decltype(&X509_CRL_free)> list(PEM_read_bio_X509_CRL(in.get(), nullptr, nullptr, nullptr), X509_CRL_free);
  const x509_ptr ca(PEM_read_bio_X509(ca_in.get(), nullptr, nullptr, nullptr), X509_free);
  const bool good = list && ca && X509_CRL_verify(list.get(), X509_get0_pubkey(ca.get())) == 1;
  ERR_clear_error();
  if (!good) return fail(ec::parse_error, files.revoked.string() + " is no list of revoked certificates of this CA", "copy crl.pem from the CA's folder again");
  auto* entries = X509_CRL_get_REVOKED(list.get());
  for (int i = 0; i < sk_X509_REVOKED_num(entries); ++i) serials.insert(hex(X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(entries, i))));
  return serials;
}

std::string tls_reason(SSL* ssl) {
  const auto code = ERR_peek_last_error();
  const int reason = ERR_GET_REASON(code);
  const long verified = SSL_get_verify_result(ssl);
  if (verified == X509_V_ERR_CERT_NOT_YET_VALID || verified == X509_V_ERR_CERT_HAS_EXPIRED)
    return std::string("the other side's certificate is ") + (verified == X509_V_ERR_CERT_HAS_EXPIRED ? "expired" : "not valid yet") + " by this machine's clock, which says " + utc_now();
  if (verified == X509_V_ERR_INVALID_PURPOSE) return "the other side's certificate is not a head's";
  if (verified != X509_V_OK) return std::string("the other side's certificate is not one of this cluster's CA: ") + X509_verify_cert_error_string(verified);
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_UNEXPECTED_MESSAGE || reason == SSL_R_HTTP_REQUEST || reason == SSL_R_PACKET_LENGTH_TOO_LONG) return "the other side does not speak TLS (--tls on one side only?)";
  if (reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA || reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED) return "the other side refused our certificate: it is not one of its CA";
  if (code == 0 || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) return "the other side closed the connection";
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  return text;
}

} // namespace

certificate_facts facts_of(X509* certificate); // certificates.cpp

tls_context::~tls_context() { SSL_CTX_free(context_); }

expected<std::shared_ptr<const tls_context>> tls_context::load(const std::filesystem::path& folder) {
  const auto files = tls_files::in(folder);
  auto facts = check_tls_files(files);
  if (!facts) return fail(facts.error());
  if (facts->role.empty())
    return fail(ec::invalid_argument, "the certificate " + files.certificate.string() + " names no role: it is of an older version", "issue another one: `pragma cluster ca issue NAME --role head|node|user|admin`");
  auto revoked = read_revoked(files);
  if (!revoked) return fail(revoked.error());
  std::shared_ptr<tls_context> made(new tls_context);
  made->own_ = std::move(*facts);
  made->revoked_ = std::move(*revoked);
  auto* context = made->context_ = SSL_CTX_new(TLS_method());
  ERR_clear_error();
  if (!context || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 || SSL_CTX_load_verify_locations(context, files.ca.c_str(), nullptr) != 1 ||
      SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1 || SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return fail(ec::invalid_argument, "OpenSSL cannot use the files in " + folder.string());
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_cert_list(context, 16 << 10);
  return std::shared_ptr<const tls_context>(std::move(made));
}

void channel::freed::operator()(ssl_st* ssl) const { SSL_free(ssl); }

channel::channel(open_socket socket, std::shared_ptr<const tls_context> tls, bool server) : socket_(std::move(socket)), tls_(std::move(tls)), wants_(server ? POLLIN : POLLOUT) {
  if (!tls_) return;
  ssl_.reset(SSL_new(tls_->get()));
  if (!ssl_ || SSL_set_fd(ssl_.get(), socket_.fd) != 1) {
    trouble_ = "OpenSSL has no memory for a connection";
    return;
  }
  if (server) {
    demand_certificate(ssl_.get());
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    SSL_set_connect_state(ssl_.get());
  }
}
channel::~channel() = default;

channel::result channel::outcome(int returned) {
  switch (SSL_get_error(ssl_.get(), returned)) {
    case SSL_ERROR_NONE: return result::done;
    case SSL_ERROR_WANT_READ: wants_ = POLLIN; return result::again;
    case SSL_ERROR_WANT_WRITE: wants_ = POLLOUT; return result::again;
    case SSL_ERROR_ZERO_RETURN: trouble_ = "the other side closed the connection"; return result::closed;
    default:
      trouble_ = tls_reason(ssl_.get());
      ERR_clear_error();
      return result::closed;
  }
}

channel::result channel::handshake() {
  if (!tls_) return result::done;
  if (!ssl_) return result::closed;
  ERR_clear_error(); // OpenSSL's queue belongs to the thread: another connection's rough end must not end this one
  return outcome(SSL_do_handshake(ssl_.get()));
}

channel::result channel::read(char* to, size_t room, size_t& got) {
  got = 0;
  if (tls_) {
    ERR_clear_error();
    return outcome(SSL_read_ex(ssl_.get(), to, room, &got));
  }
  const auto n = ::recv(socket_.fd, to, room, 0);
  if (n > 0) {
    got = static_cast<size_t>(n);
    return result::done;
  }
  wants_ = POLLIN;
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return result::again;
  trouble_ = n == 0 ? "the other side closed the connection" : std::strerror(errno);
  return result::closed;
}

channel::result channel::write(const char* from, size_t size, size_t& sent) {
  sent = 0;
  if (tls_) {
    ERR_clear_error();
    return outcome(SSL_write_ex(ssl_.get(), from, size, &sent));
  }
  const auto n = ::send(socket_.fd, from, size, MSG_NOSIGNAL);
  if (n >= 0) {
    sent = static_cast<size_t>(n);
    return result::done;
  }
  wants_ = POLLOUT;
  if (errno == EAGAIN || errno == EINTR) return result::again;
  trouble_ = std::strerror(errno);
  return result::closed;
}

std::string stamp_of(const tls_files& files) {
  std::string all;
  for (const auto& file : {files.ca, files.certificate, files.key, files.revoked}) {
    std::error_code none;
    const auto when = std::filesystem::last_write_time(file, none);
    all += (none ? std::string("-") : std::to_string(when.time_since_epoch().count())) + " ";
  }
  return all;
}

void demand_certificate(ssl_st* connection) { SSL_set_verify(connection, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, judge_later); }

identity peer_of(const ssl_st* connection, const std::string& address) {
  identity who;
  who.address = address;
  who.name = "local";
  const auto certificate = certificate_of(connection);
  if (!certificate) return who;
  const auto facts = facts_of(certificate.get());
  who.what = role_named(facts.role);
  who.name = facts.name;
  who.serial = facts.serial;
  who.not_after = facts.not_after;
  who.days_left = facts.days_left;
  return who;
}

std::string what_is_wrong(const ssl_st* connection, const tls_context& by) {
  const auto certificate = certificate_of(connection);
  if (!certificate) return "there is no certificate";
  const auto facts = facts_of(certificate.get());
  const auto whose = "the certificate of " + printable(facts.name);
  if (by.revoked(facts.serial)) return whose + " is revoked";
  if (X509_cmp_current_time(X509_get0_notBefore(certificate.get())) > 0) return whose + " is not valid yet by the head's clock, which says " + utc_now() + ": one of the two clocks is wrong";
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) return whose + " expired " + facts.not_after + " (the head's clock says " + utc_now() + "): issue another one";
  if (facts.role.empty()) return whose + " names no role: issue another one with --role";
  return {};
}

identity channel::peer(const std::string& address) const {
  if (tls_) return peer_of(ssl_.get(), address);
  identity who;
  who.address = address;
  who.name = "local";
  return who;
}

std::string channel::what_is_wrong() const { return tls_ ? pragma::what_is_wrong(ssl_.get(), *tls_) : std::string(); }

} // namespace pragma
