// Who a member is, and what it may ask of a head. The table is in roles.cpp and, for people, in docs/cluster.md; a test holds the two together.
#pragma once

#include "base/json.hpp"

#include <string>
#include <vector>

namespace pragma {

enum class role { none, node, user, admin, head };
std::string name(role r);
/// none for a word that is no role.
role role_named(const std::string& word);

/// What a connection has proved of its other end.
struct identity {
  role what = role::none;
  std::string name;                       ///< the certificate's; "local" without TLS
  std::string serial;                     ///< hexadecimal; empty without TLS
  std::string not_after;                  ///< ISO time
  int days_left = -1;                     ///< of the certificate; -1 without TLS
  std::string address;                    ///< "10.0.0.5:41234"
};

/// Kinds of frames that a head takes from members, in the order of the table.
const std::vector<std::string>& frame_kinds();
bool may(role who, const std::string& kind);
/// A node's name belongs to its certificate: that name, or one that begins with it and a dot ("rack1.host7").
bool may_be_called(const identity& who, const std::string& node);

/// Who asks the scheduler: runs are their owner's, and an admin's.
struct caller {
  std::string name;
  bool admin = false;
  bool owns(const std::string& owner) const { return admin || (!owner.empty() && owner == name); }
};
PRAGMA_JSON(caller, name, admin)

} // namespace pragma
