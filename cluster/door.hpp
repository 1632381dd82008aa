// The head's front door: ends TLS, bounds what strangers and members can cost (connections, handshakes, time, memory, rate), checks certificates, versions
// and roles, and hands on frames of members that may ask for what they ask. One thread, no CAF: nothing behind it sees a byte that was not checked here.
#pragma once

#include "cluster/frame.hpp"
#include "cluster/greeting.hpp"
#include "cluster/tls.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

namespace pragma {

struct door_limits {
  size_t connections = 8192;              ///< in all; less where the process may open fewer files
  size_t strangers = 512;                 ///< that have not greeted yet: then the one that has dawdled longest makes room
  size_t per_user = 64;                   ///< of one user's certificate; one of nodes may be a rack's
  double handshake_seconds = 5;           ///< from the connection to the end of the greeting
  double idle_seconds = 90;               ///< without a frame: nodes beat, users' commands ask
  double stuck_seconds = 30;              ///< of a member that takes nothing of what is sent to it
  size_t unsent_bytes = 16u << 20;        ///< to one member
  size_t unanswered = 64;                 ///< questions of one member; more wait in its socket
  double frames_a_second = 5000;          ///< of one member; faster ones wait in their socket
  size_t in_work = 1024;                  ///< frames of one user's certificate that are handed on and not done with; of nodes' 16 times as many. More wait in their sockets
  size_t in_work_bytes = 4u << 20;        ///< ... and what they took on the wire
};

struct door_counts {
  size_t open = 0, strangers = 0;
  uint64_t accepted = 0, refused = 0, handshakes_failed = 0, evicted = 0, bad_frames = 0, forbidden = 0, bytes_in = 0, bytes_out = 0;
};

struct door_event {
  enum what { opened, asked, closed } kind = opened;
  uint64_t connection = 0;
  identity who;                           ///< opened
  std::string want;                       ///< opened
  frame said;                             ///< asked
  std::string reason;                     ///< closed
  std::shared_ptr<void> in_hand;          ///< asked: whoever works on it keeps this until it is done; the door takes in only so much at once
};

/// What is worth a line in a log: a level ("info", "warn"), words, who.
using door_log = std::function<void(const char* level, const std::string& what, const identity& who)>;

class door {
public:
  struct options {
    address listen;
    int inherited = -1;                   ///< a listening socket that is there already; -1: none
    std::optional<std::filesystem::path> tls;
    door_limits limits;
    std::function<void(door_event)> on_event; ///< in the door's thread; must not block
    /// Who would be let in: why not now, all the same, goes into `answer` (a head that stands by). In the door's thread. May be null.
    std::function<void(const greeting& theirs, const identity&, greeting& answer)> turn_away;
    std::function<uint64_t()> epoch;      ///< said in each welcome; null: 0
    door_log log;
  };
  /// Plaintext off loopback is refused (invalid_argument), as is a certificate that is no head's.
  static expected<std::unique_ptr<door>> open(options o);
  ~door();

  uint16_t port() const;
  int certificate_days() const;
  door_counts counts() const;
  /// From any thread. To a connection that is gone: nothing.
  void send(uint64_t connection, const frame& f);
  void close(uint64_t connection, const std::string& reason);
  /// To everybody who has greeted.
  void tell_all(const frame& f);
  /// No new connections; those that are there stay.
  void stop_accepting();

private:
  class impl;
  explicit door(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

/// Refuses plaintext off loopback.
expected<void> may_use(const address& a, bool tls, const char* doing);

} // namespace pragma
