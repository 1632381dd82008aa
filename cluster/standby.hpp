// A head that does not serve: follows the other head of its pair, tells members so, and finds out when it is its turn. No CAF.
#pragma once

#include "cluster/address.hpp"
#include "cluster/door.hpp"
#include "cluster/pair.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

namespace pragma {

struct standby_options {
  address listen, peer;
  int listening = -1;                     ///< the socket, which stays open
  std::optional<std::filesystem::path> tls;
  std::filesystem::path runs;             ///< RocksDB's folder; a copy is made beside it and put in its place
  std::filesystem::path state;            ///< file (pair_state)
  door_log log;
  std::function<void()> alive;            ///< called some times a second
};

/// What a home says of its head: the file, or, without one, what follows from whether there are runs.
expected<pair_state> state_of_home(const std::filesystem::path& file, const std::filesystem::path& runs);

/// Of a head that is started without another. Where it was one of two before, it writes what the other does not get: that is a new epoch.
expected<uint64_t> epoch_without_pair(const std::filesystem::path& file);
/// The head of this home serves when it starts, whatever the other head has.
expected<void> serve_next_time(const std::filesystem::path& file, const std::filesystem::path& runs);

/// Until it is this head's turn (its state, kept, to serve with), or `stop` (none). io_error, parse_error; invalid_argument for certificates.
expected<std::optional<pair_state>> stand_by(const standby_options& options, const std::atomic<bool>& stop);

/// What the other head says of itself; errors as link::dial()'s.
expected<pair_state> ask_other_head(const address& peer, const std::optional<std::filesystem::path>& tls, double seconds);

/// Beside a serving head that nobody follows: looks whether the other one serves, too, and has the better right to.
class rival_watch {
public:
  rival_watch(address peer, std::optional<std::filesystem::path> tls, std::function<pair_state()> own, std::function<bool()> wanted);
  ~rival_watch();
  bool must_stand_down() const { return must_; }

private:
  std::atomic<bool> stop_ = false, must_ = false;
  std::thread thread_;
};

} // namespace pragma
