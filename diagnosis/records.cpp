// JSON of this room's plain structs: see PRAGMA_JSON in base/json.hpp.
#include "base/json_definitions.hpp"

#include "diagnosis/profile.hpp"
#include "diagnosis/time_table.hpp"
#include "diagnosis/finding.hpp"
#include "diagnosis/brief.hpp"
#include "diagnosis/conductor.hpp"
#include "diagnosis/scores.hpp"
