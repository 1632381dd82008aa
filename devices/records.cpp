// JSON of this room's plain structs: see PRAGMA_JSON in base/json.hpp.
#include "base/json_definitions.hpp"

#include "devices/backend.hpp"
