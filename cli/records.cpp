// JSON of this room's plain structs: see PRAGMA_JSON in base/json.hpp.
#include "actors/messages.hpp"

#include "base/json_definitions.hpp"

#include "cli/suite.hpp"
#include "cli/torch_work.hpp"
