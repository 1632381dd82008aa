// JSON of this room's plain structs: see PRAGMA_JSON in base/json.hpp.
#include "actors/messages.hpp"
#include "knowledge/store_change.hpp"

#include "base/json_definitions.hpp"

#include "cluster/certificates.hpp"
#include "cluster/messages.hpp"
#include "cluster/pair.hpp"
#include "cluster/quota.hpp"
#include "cluster/replica.hpp"
