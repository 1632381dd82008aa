// SHA-256 (OpenSSL) as lower-case hex: the identity of tasks, candidates, binaries and segments.
#pragma once

#include <string>
#include <string_view>

namespace pragma {

/// 64 hex digits.
std::string sha256_hex(std::string_view bytes);
/// The first 12 hex digits of sha256_hex, for people and folder names.
std::string short_hash(std::string_view bytes);

} // namespace pragma
