// JSON of this room's plain structs: see PRAGMA_JSON in base/json.hpp.
#include "diagnosis/conductor.hpp"
#include "diagnosis/scores.hpp"
#include "devices/backend.hpp"
#include "drop_in/drop_in.hpp"
#include "kernels/candidate.hpp"
#include "synthesis/search/won_schedule.hpp"
#include "kernels/task.hpp"
#include "kernels/verdict.hpp"
#include "llm/chat.hpp"

#include "base/json_definitions.hpp"

#include "actors/messages.hpp"
#include "actors/run_log.hpp"
