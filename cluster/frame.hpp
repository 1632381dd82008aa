// What travels between members: frames of a length and a CBOR document. Everything is checked before anybody looks at it: the length before memory is
// taken, the shape (depth, counts that the bytes can hold) before it is parsed, the kind and the number before it is handed on. No CAF here, and none
// of CAF's own protocol on the wire: docs/decisions/0013-own-wire.md.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace pragma {

/// The longest frame after the greeting, and the greeting itself.
inline constexpr size_t max_frame_bytes = (1u << 20) + (64u << 10);
inline constexpr size_t max_greeting_bytes = 16u << 10;
inline constexpr size_t frame_head_bytes = 4; ///< big-endian length of what follows

/// {"k": kind, "i": id, "b": body, "e": failure}
struct frame {
  std::string kind;
  uint64_t id = 0;                        ///< of a question, which its reply carries; 0: no reply is wanted
  json body;
  json failure;                           ///< of a reply that is none (cluster/messages.hpp); else null
};

std::string encode(const frame& f);
/// `text` is what follows the length. parse_error for everything that encode() would not write.
expected<frame> decode(std::string_view text);
/// The length that the first bytes of a frame claim; limit_exceeded above `limit`. Needs frame_head_bytes.
expected<size_t> claimed_length(std::string_view head, size_t limit);
/// One well-formed CBOR item that nothing follows, at most `max_depth` deep, of definite lengths only, without tags. Iterative: depth costs no stack.
bool well_formed_cbor(std::string_view bytes, int max_depth = 64);

} // namespace pragma
