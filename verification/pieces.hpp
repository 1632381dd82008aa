// A loop over a large tensor on all CPUs. Used by compare.cpp; never while something is being timed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace pragma {

/// Calls `body(first, last)` for consecutive parts of [0, n), one per thread where n is large; what the calls returned, in
/// order.
template <class Body> auto in_pieces(int64_t n, Body&& body) {
  using part = decltype(body(int64_t{}, int64_t{}));
  constexpr int64_t worth_a_thread = 1 << 20;
  constexpr unsigned most_threads = 8;
  const int64_t pieces = std::clamp<int64_t>(n / worth_a_thread, 1, std::clamp(std::thread::hardware_concurrency(), 1u, most_threads));
  std::vector<part> parts(static_cast<size_t>(pieces));
  std::vector<std::jthread> threads;
  for (int64_t p = 1; p < pieces; ++p) {
    const auto work = [&, p] { parts[static_cast<size_t>(p)] = body(n * p / pieces, n * (p + 1) / pieces); };
    try {
      threads.emplace_back(work);
    } catch (const std::system_error&) {
      work(); // no thread to be had: a candidate of the same user may hold them all
    }
  }
  parts[0] = body(0, n / pieces);
  threads.clear(); // joins
  return parts;
}

} // namespace pragma
