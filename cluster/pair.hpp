// Two heads of which one serves: who does, as plain decisions. No CAF, no sockets, no clock: tests hand in what each knows. Why so: docs/decisions/0016.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

namespace pragma {

/// What a head of a pair knows of itself; kept in PRAGMA_HOME/pair.json.
struct pair_state {
  std::string name;                       ///< made once, at random
  uint64_t epoch = 0;                     ///< raised whenever a head begins to write what the other does not get yet; 0: never one of two
  bool whole = true;                      ///< its run store is a whole one
  bool served = false;                    ///< in this epoch it wrote; else it followed
  uint64_t nodes = 0;                     ///< of the serving head, when both last agreed
  uint64_t proposed = 0;                  ///< newest epoch that it asked nodes to vouch for
  bool told = false;                      ///< somebody said that it is to serve, whatever the other has
  bool serves = false;                    ///< now: true only in what it tells the other
  bool claims = false;                    ///< ... as is this: it serves in a moment, unless the other is there after all
};
PRAGMA_JSON(pair_state, name, epoch, whole, served, nodes, proposed, told, serves, claims)

/// A new one where there is no file. io_error, parse_error.
expected<pair_state> read_pair_state(const std::filesystem::path& file);
expected<void> keep_pair_state(const std::filesystem::path& file, const pair_state& state);

/// Whether `a`'s records are to be gone on with, of two heads that do not serve: a whole store, the newer epoch, who wrote in it, then the name.
bool is_ahead(const pair_state& a, const pair_state& b);

/// What a head that does not serve sees around it.
struct pair_view {
  std::optional<pair_state> other;        ///< what it said just now
  bool refused = false;                   ///< its machine says that nothing listens there
  double away_seconds = 0;                ///< since it last said something
  size_t nodes = 0;                       ///< that said at this door, within witness_seconds, that they miss the other head
  bool anybody = false;                   ///< ... or users
  uint64_t newest_epoch = 0;              ///< in which a member knows that a head served
  uint64_t vouched_epoch = 0;             ///< in which the other head may serve: a node vouched for it
};

inline constexpr double gone_seconds = 1.5;   ///< for another head whose port is closed: a crash is mended sooner
inline constexpr double silent_seconds = 7.5; ///< ... and for one that is silent: it stops writing after fence_seconds
inline constexpr double fence_seconds = 7;    ///< after which a serving head decides about a follower that is silent
inline constexpr double witness_seconds = 10; ///< a node that said so lately counts as missing the other head
inline constexpr double vouch_seconds = 5;    ///< for nodes to vouch: some may have to dial first

enum class turn { wait, follow, serve };
struct pair_decision {
  turn what = turn::wait;
  uint64_t epoch = 0;                     ///< serve: in this one
  std::string why;                        ///< for the log
};
pair_decision decide(const pair_state& own, const pair_view& seen);

/// Whether a serving head that lost its follower may go on alone: more than half of the nodes that both knew vouch for it, so that the other cannot have half.
bool may_go_on_alone(const pair_state& own, size_t nodes_that_vouch);

/// What a member remembers of heads from one dial to the next, and to which of them it has given its word. Two heads that have lost each other each ask the nodes,
/// and no node gives its word to both. From any thread.
class witness {
public:
  /// The newest epoch in which a head served.
  uint64_t epoch() const;
  void served(uint64_t epoch);
  /// The newest for which it vouched.
  uint64_t vouched() const;
  /// Whether the head at `door` may be told that the other is missed; that is a promise not to vouch for the other. It ends when a head serves in the epoch
  /// in which that one would begin.
  bool misses(const std::string& door);
  /// What the head at `door` made of the promise: it counts on it, to begin in `epoch`, or (0) does not.
  void counted(const std::string& door, uint64_t epoch);
  /// The head at `door` asks whether it may go on without the other, in `epoch`. Then none that stands by may begin in that epoch.
  bool vouch(const std::string& door, uint64_t epoch);

private:
  mutable std::mutex mutex_;
  bool bound_to_another(const std::string& door) const { return epoch_ < promised_ && promised_to_ != door; }

  uint64_t epoch_ = 0, vouched_ = 0, promised_ = 0;
  std::string vouched_to_, promised_to_;
};

} // namespace pragma
