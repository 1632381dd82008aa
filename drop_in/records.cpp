// JSON of this room's plain structs: see PRAGMA_JSON in base/json.hpp.
#include "devices/backend.hpp"
#include "kernels/candidate.hpp"
#include "kernels/task.hpp"

#include "base/json_definitions.hpp"

#include "drop_in/drop_in.hpp"
