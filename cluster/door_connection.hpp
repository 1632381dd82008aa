// One connection as the front door keeps it. For door.cpp alone.
#pragma once

#include "cluster/door.hpp"

#include <chrono>
#include <string>

namespace pragma::door_detail {

using clock = std::chrono::steady_clock;

inline double since(clock::time_point then) { return std::chrono::duration<double>(clock::now() - then).count(); }

/// What is handed on and not done with yet.
struct work_in_hand {
  std::atomic<size_t> frames = 0, bytes = 0;
};
/// Until what it gives is let go.
inline std::shared_ptr<void> take_in_hand(std::shared_ptr<work_in_hand> hands, size_t bytes) {
  ++hands->frames;
  hands->bytes += bytes;
  return {nullptr, [hands, bytes](void*) {
            --hands->frames;
            hands->bytes -= bytes;
          }};
}

struct connection {
  connection(uint64_t number, channel c, std::string where) : id(number), wire(std::move(c)), from(std::move(where)) {}
  enum class stage { handshake, greeting, open } at = stage::handshake;
  uint64_t id;
  channel wire;
  identity who;
  std::string in, out;
  size_t sent = 0;                        ///< of `out`
  clock::time_point began = clock::now(), heard = clock::now(), moved = clock::now();
  size_t unanswered = 0;
  double allowance = 0;                   ///< frames it may send now
  clock::time_point allowed_at = clock::now();
  uint32_t watched = 0;                   ///< epoll's events
  bool last_words = false;                ///< closes when `out` is sent
  bool more = false;                      ///< bytes may lie in OpenSSL that epoll knows nothing of
  std::string from;                       ///< address
  std::shared_ptr<work_in_hand> hands;    ///< open: of its certificate
};

} // namespace pragma::door_detail
