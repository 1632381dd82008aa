// Two heads of which one serves: who does, as plain decisions. No CAF, no sockets, no clock: tests hand in what each knows. Why so: docs/decisions/0016.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace pragma {

/// What a head of a pair knows of itself; kept in PRAGMA_HOME/pair.json.
struct pair_state {
  std::string name;                       ///< made once, at random
  uint64_t epoch = 0;                     ///< raised whenever a head begins to write what the other does not get; 0: never one of two
  bool whole = true;                      ///< its run store is a whole one
  bool served = false;                    ///< in this epoch it wrote; else it followed
  uint64_t nodes = 0;                     ///< of the serving head, when both last agreed
  bool told = false;                      ///< somebody said that it is to serve, whatever the other has
  bool serves = false;                    ///< now: true only in what it tells the other
};
PRAGMA_JSON(pair_state, name, epoch, whole, served, nodes, told, serves)

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
  size_t nodes = 0;                       ///< that came to this door in the last seconds and found no other head
  bool anybody = false;                   ///< ... or users
  uint64_t newest_epoch = 0;              ///< that a member has heard of
};

inline constexpr double gone_seconds = 1.5;   ///< for another head whose port is closed: a crash is mended sooner
inline constexpr double silent_seconds = 7.5; ///< ... and for one that is silent: it stops writing after fence_seconds
inline constexpr double fence_seconds = 7;    ///< after which a serving head decides about a follower that is silent

enum class turn { wait, follow, serve };
struct pair_decision {
  turn what = turn::wait;
  bool alone = false;                     ///< serve without the other: in a new epoch
  std::string why;                        ///< for the log
};
pair_decision decide(const pair_state& own, const pair_view& seen);

/// Whether a serving head that lost its follower may go on alone: more than half of the nodes that both knew are still with it, so that the other cannot have half.
bool may_go_on_alone(const pair_state& own, size_t nodes_now);

} // namespace pragma
