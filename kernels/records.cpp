// JSON of this room's plain structs: see PRAGMA_JSON in base/json.hpp.
#include "base/hash.hpp"

#include "base/json_definitions.hpp"

#include "kernels/tensor.hpp"
#include "kernels/task.hpp"
#include "kernels/candidate.hpp"
#include "kernels/verdict.hpp"
#include "kernels/parts.hpp"
