// Included by a room's records.cpp only, after the headers of lower rooms and before its own: from here on PRAGMA_JSON
// defines what it elsewhere declares. No include guard: it changes what follows.
#include "base/json.hpp"

#undef PRAGMA_JSON
#define PRAGMA_JSON(type, ...)                                                                                         \
  void to_json(::nlohmann::json& nlohmann_json_j, const type& nlohmann_json_t) {                                       \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_TO, __VA_ARGS__))                                           \
  }                                                                                                                    \
  void from_json(const ::nlohmann::json& nlohmann_json_j, type& nlohmann_json_t) {                                     \
    const type nlohmann_json_default_obj{};                                                                            \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_FROM_WITH_DEFAULT, __VA_ARGS__))                            \
  }
