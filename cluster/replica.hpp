// The serving head's side of a pair: hands the other head a copy of the run store and then each batch as it is written, and lets a write be told to others only
// when the other head has it. No CAF; from any thread.
#pragma once

#include "cluster/frame.hpp"
#include "cluster/pair.hpp"
#include "knowledge/run_store.hpp"

#include <functional>
#include <memory>

namespace pragma {

/// Head -> head that serves: what I have, and more, please. Answered when there is some, or after half a second.
struct follow_ask {
  bool begin = false;                     ///< from the beginning: a copy of everything
  uint64_t taken = 0;                     ///< bytes of the stream that are on disk here
};
PRAGMA_JSON(follow_ask, begin, taken)
/// The stream has entries, each four bytes of length (the lowest first) and a JSON array of store_change as CBOR. The empty array ends the copy: from there on it
/// is whole.
struct follow_answer {
  uint64_t epoch = 0, nodes = 0;
  std::string bytes;                      ///< of the stream, the next ones
};
PRAGMA_JSON(follow_answer, epoch, nodes, bytes)

std::string stream_entry(const std::vector<store_change>& changes);
/// The whole entries at the beginning of `stream`, which are taken off it. parse_error.
expected<std::vector<std::vector<store_change>>> take_entries(std::string& stream);

class replica : public store_follower {
public:
  using clock_seconds = std::function<double()>; ///< a steady clock
  using answer = std::function<void(expected<json>)>;
  /// `file`: where `state` is kept.
  replica(pair_state state, std::filesystem::path file, std::shared_ptr<const run_store> store, clock_seconds now);
  ~replica() override;

  uint64_t wrote(const std::vector<store_change>& batch) override;
  void settle(uint64_t number) override;

  pair_state state() const;
  /// "in step", "copying", "none".
  std::string standby() const;
  /// One follower at a time: who begins takes the place of the one before.
  void follow(uint64_t connection, const follow_ask& ask, answer reply);
  void gone(uint64_t connection);
  /// So many have joined now.
  void nodes(size_t count);
  /// `node` has given its word for `epoch`, when it was asked (looked::ask_nodes).
  void vouched(const std::string& node, uint64_t epoch);

  struct looked {
    uint64_t ask_nodes = 0;               ///< not 0: those that are here are to be asked to vouch for this head in that epoch
    bool new_epoch = false;               ///< members are to be told
    std::string stand_down;               ///< why this head must not go on; empty: it may
  };
  /// To be called some ten times a second.
  looked look();

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace pragma
