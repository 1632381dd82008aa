// JSON of this room's plain structs: see PRAGMA_JSON in base/json.hpp.
#include "crawler/crawl.hpp"
#include "embeddings/embedder.hpp"
#include "llm/chat.hpp"

#include "base/json_definitions.hpp"

#include "knowledge/library.hpp"
#include "knowledge/store_change.hpp"
