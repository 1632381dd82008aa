// The first words on a connection, which every version must be able to read: who speaks, which protocols it knows, what it comes for. Their form never changes.
#pragma once

#include "base/json.hpp"
#include "cluster/roles.hpp"

#include <string>

namespace pragma {

/// Raise the first with every change of a struct in messages.hpp, or of those that they carry, that an older member would misread. A member talks to those
/// of one version before; `oldest_protocol` is then one less.
inline constexpr int cluster_protocol = 4, oldest_protocol = 3;

struct greeting {
  std::string version;                    ///< of pragma: "0.1.0"
  int protocol = cluster_protocol, oldest = oldest_protocol;
  std::string want;                       ///< "node", "user" or "head"
  std::string refused;                    ///< the head's answer: why not; empty: welcome
  bool for_now = false;                   ///< ... and whether that may pass
  uint64_t epoch = 0;                     ///< the head's (pair.hpp); of a member, the newest that it has heard of
  std::string node;                       ///< of a node: its name
  uint64_t vouched = 0;                   ///< of a node: the newest epoch that it vouched for
  bool misses = false;                    ///< of a node: it has lost its head, and vouches for no other than this one
  bool counts = false;                    ///< of a head that stands by: it counts on that
};
PRAGMA_JSON(greeting, version, protocol, oldest, want, refused, for_now, epoch, node, vouched, misses, counts)

greeting own_greeting(const std::string& want);
/// The sentence for two that share no protocol ("head 0.3.0, node 0.2.0: upgrade the node first"); empty: they do.
std::string version_problem(const greeting& head, const greeting& member);
/// Why a member of this certificate does not get what it comes for; empty: it does.
std::string role_problem(const identity& who, const std::string& want);
/// The role of a member without TLS, by what it comes for.
role role_for(const std::string& want);

} // namespace pragma
