// Hashes of plain data, field by field: what equal nodes are found by. A number counts by its bits, so that 0 and -0 differ and
// NaN is itself.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pragma::synthesis {

class hasher {
public:
  template <class T> hasher& operator()(const T& value) {
    if constexpr (std::is_enum_v<T>) mix(static_cast<uint64_t>(value));
    else if constexpr (std::is_same_v<T, double>) mix(std::bit_cast<uint64_t>(value));
    else if constexpr (std::is_integral_v<T>) mix(static_cast<uint64_t>(value));
    else if constexpr (requires { value.hash_into(*this); }) value.hash_into(*this);
    else if constexpr (requires { value.first; value.second; }) (*this)(value.first)(value.second);
    else {
      mix(value.size());
      for (const auto& item : value) (*this)(item);
    }
    return *this;
  }
  size_t result() const { return static_cast<size_t>(state_); }

private:
  /// The finaliser of splitmix64 (Steele, Lea and Flood 2014) over state and value.
  void mix(uint64_t value) {
    uint64_t z = state_ ^ (value + 0x9e3779b97f4a7c15u + (state_ << 6) + (state_ >> 2));
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    state_ = z ^ (z >> 31);
  }
  uint64_t state_ = 0;
};

template <class T> size_t hash_of(const T& value) { return hasher()(value).result(); }

/// Where in a list an equal item stands.
template <class Item> class places_of {
public:
  /// Its place; appended where none is equal.
  int intern(std::vector<Item>& list, Item item) {
    const auto hash = hash_of(item);
    const auto [begin, end] = places_.equal_range(hash);
    for (auto it = begin; it != end; ++it)
      if (list[static_cast<size_t>(it->second)] == item) return it->second;
    list.push_back(std::move(item));
    const int place = static_cast<int>(list.size()) - 1;
    places_.emplace(hash, place);
    return place;
  }

private:
  std::unordered_multimap<size_t, int> places_;
};

/// A double that is compared by its bits.
inline bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

} // namespace pragma::synthesis
