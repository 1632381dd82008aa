#include "base/hash.hpp"

#include <openssl/evp.h>

namespace pragma {

namespace {

std::string hex_of(const unsigned char* digest, unsigned size) {
  static constexpr char hex[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * size);
  for (unsigned i = 0; i < size; ++i) {
    text += hex[digest[i] >> 4];
    text += hex[digest[i] & 15];
  }
  return text;
}

} // namespace

std::string sha256_hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  return hex_of(digest, size);
}

std::string short_hash(std::string_view bytes) { return sha256_hex(bytes).substr(0, 12); }

uint64_t hash64(std::string_view bytes, uint64_t seed) {
  uint64_t h = 0xcbf29ce484222325u ^ (seed * 0x9e3779b97f4a7c15u);
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu; // FNV alone leaves the upper bits of short texts alike
  h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
  return h ^ (h >> 33);
}

struct sha256_stream::state {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  state() { EVP_DigestInit_ex(context, EVP_sha256(), nullptr); }
  ~state() { EVP_MD_CTX_free(context); }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
};

sha256_stream::sha256_stream() : state_(std::make_unique<state>()) {}
sha256_stream::sha256_stream(sha256_stream&&) noexcept = default;
sha256_stream& sha256_stream::operator=(sha256_stream&&) noexcept = default;
sha256_stream::~sha256_stream() = default;

void sha256_stream::update(std::string_view bytes) { EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()); }

std::string sha256_stream::finish_hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(state_->context, digest, &size);
  EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr);
  return hex_of(digest, size);
}

} // namespace pragma
