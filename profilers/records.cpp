// JSON of this room's plain structs: see PRAGMA_JSON in base/json.hpp.
#include "diagnosis/profile.hpp"
#include "devices/backend.hpp"

#include "base/json_definitions.hpp"

#include "profilers/accelerators.hpp"
#include "profilers/hardware.hpp"
#include "profilers/manifest.hpp"
