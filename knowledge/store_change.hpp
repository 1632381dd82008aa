// What a store tells whoever keeps a copy of it: its batches, in their order (cluster/replica.hpp is the one who does).
#pragma once

#include "base/json.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pragma {

/// One change of one record. All of them are whole values: done twice, or once more after a later one and then that again, they end the same.
struct store_change {
  std::string how;                        ///< "put", "remove", "remove prefix"
  std::string family, key, value;
};
PRAGMA_JSON(store_change, how, family, key, value)

class store_follower {
public:
  virtual ~store_follower() = default;
  /// A batch was written: told in the order of writing, one at a time. Gives its number. Must not block.
  virtual uint64_t wrote(const std::vector<store_change>& batch) = 0;
  /// Returns when that batch may be told to others: may block until another machine has it.
  virtual void settle(uint64_t number) = 0;
};

} // namespace pragma
