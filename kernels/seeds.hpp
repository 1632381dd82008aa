// Seeds that a candidate cannot know: from the kernel's random source, or derived from a fixed one in tests.
#pragma once

#include <cstdint>
#include <sys/random.h>

namespace pragma {

/// A stream of seeds below 2^53 (they travel as JSON numbers). first == 0: unpredictable.
class seed_source {
public:
  explicit seed_source(uint64_t first = 0) : state_(first) {
    if (first == 0 && getrandom(&state_, sizeof state_, 0) != static_cast<ssize_t>(sizeof state_))
      state_ = reinterpret_cast<uintptr_t>(this); // only where the kernel has no getrandom at all
  }
  uint64_t next() { return mix() >> 11; }
  /// A full 64-bit word.
  uint64_t mix() { // splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }

private:
  uint64_t state_ = 0;
};

/// The seed of one input set among those that belong to `first`: the same for everybody who asks for that set.
inline uint64_t seed_of_set(uint64_t first, int kind, int number) {
  seed_source source(first + 0x51ed270b * static_cast<uint64_t>(kind * 1000 + number + 1));
  source.mix();
  return source.next();
}

} // namespace pragma
