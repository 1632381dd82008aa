// Linked into the executables themselves, before OpenSSL. CAF 0.17 asks SSL_get_error() what a call's result means without having emptied OpenSSL's
// queue of errors, which belongs to the thread: a connection that ended roughly (OpenSSL 3 notes "unexpected EOF") then ends the next one that is
// served, whoever's it is. Each call begins with an empty queue here.
#include <dlfcn.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace {

template <class Function> Function* next(const char* name) { return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name)); }

} // namespace

extern "C" {

int SSL_read(SSL* ssl, void* to, int size) {
  static const auto real = next<int(SSL*, void*, int)>("SSL_read");
  ::ERR_clear_error();
  return real(ssl, to, size);
}

int SSL_write(SSL* ssl, const void* from, int size) {
  static const auto real = next<int(SSL*, const void*, int)>("SSL_write");
  ::ERR_clear_error();
  return real(ssl, from, size);
}

int SSL_connect(SSL* ssl) {
  static const auto real = next<int(SSL*)>("SSL_connect");
  ::ERR_clear_error();
  return real(ssl);
}

int SSL_accept(SSL* ssl) {
  static const auto real = next<int(SSL*)>("SSL_accept");
  ::ERR_clear_error();
  return real(ssl);
}

} // extern "C"
