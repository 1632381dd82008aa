// JSON of this room's plain structs: see PRAGMA_JSON in base/json.hpp.
#include "diagnosis/conductor.hpp"
#include "kernels/backend.hpp"
#include "kernels/candidate.hpp"
#include "kernels/synthesis/won_schedule.hpp"
#include "kernels/task.hpp"
#include "kernels/verdict.hpp"
#include "llm/chat.hpp"

#include "base/json_definitions.hpp"

#include "actors/messages.hpp"
