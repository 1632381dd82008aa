// A fast 64-bit fingerprint of memory, to notice that bytes changed (not against an adversary: what it guards is
// mapped read-only in the candidate, or read while the candidate is stopped).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pragma {

inline uint64_t fingerprint(const std::byte* data, size_t size, uint64_t seed = 0) {
  constexpr uint64_t odd = 0x9e3779b97f4a7c15ull, other = 0xc2b2ae3d27d4eb4full;
  uint64_t lanes[4] = {seed + odd, seed ^ other, seed + 2 * odd, seed ^ ~other};
  size_t i = 0;
  for (; i + 32 <= size; i += 32)
    for (int lane = 0; lane < 4; ++lane) {
      uint64_t word;
      std::memcpy(&word, data + i + 8 * static_cast<size_t>(lane), 8);
      lanes[lane] = std::rotl(lanes[lane] ^ (word * other), 29) * odd;
    }
  uint64_t tail = size;
  for (; i < size; ++i) tail = std::rotl(tail ^ static_cast<uint64_t>(data[i]), 9) * odd;
  uint64_t result = tail;
  for (auto lane : lanes) result = (std::rotl(result, 23) ^ lane) * other;
  return result ^ (result >> 31);
}

} // namespace pragma
