// SHA-256 (OpenSSL) as lower-case hex: the identity of tasks, candidates, binaries and segments. And a fast 64-bit hash for
// tables, which is no identity.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace pragma {

/// 64 hex digits.
std::string sha256_hex(std::string_view bytes);
/// The first 12 hex digits of sha256_hex, for people and folder names.
std::string short_hash(std::string_view bytes);

/// The same on every machine, fast on short texts (FNV-1a with a final mix); collisions can be made on purpose.
uint64_t hash64(std::string_view bytes, uint64_t seed = 0);

/// sha256_hex() of bytes that come in pieces.
class sha256_stream {
public:
  sha256_stream();
  sha256_stream(sha256_stream&&) noexcept;
  sha256_stream& operator=(sha256_stream&&) noexcept;
  ~sha256_stream();
  void update(std::string_view bytes);
  /// Of all bytes so far; begins anew afterwards.
  std::string finish_hex();

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace pragma
