// JSON of this room's plain structs: see PRAGMA_JSON in base/json.hpp.
#include "embeddings/embedder.hpp"

#include "base/json_definitions.hpp"

#include "knowledge/entry.hpp"
#include "knowledge/retrieval.hpp"
