// JSON for the whole project: the alias, parsing with a position in the error, and the macro that gives a
// plain struct its to_json/from_json (one field list serves files, RocksDB and actor messages).
#pragma once

#include "base/error.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace pragma {

using json = nlohmann::json;

/// Nothing that we read is nested deeper. What is would end the process: values are copied, compared and printed by recursion.
inline constexpr int deepest_json = 64;

/// Parses `text`; the error names `what` (a file name, "LLM answer") and the byte, line and column. limit_exceeded: deeper than deepest_json.
expected<json> parse_json(std::string_view text, std::string_view what);

/// The same for text that is often no JSON: then, or where it is nested too deeply, a value that is_discarded().
json parse_if_json(std::string_view text);

/// The object without its comments (keys that start with "_"). parse_error when it is no object; invalid_argument for a key that is
/// not among `known`, naming the nearest one. `where` starts the message ("configs/llm.json").
expected<json> only_known_keys(const json& value, const std::vector<std::string>& known, const std::string& where);
/// Reads a configuration: a JSON object whose keys are those of `known`, each of the same kind as there (any number for a
/// number with a fraction). An unknown key is an invalid_argument that names the nearest known one, a value of another kind
/// a parse_error; keys that start with "_" are comments and left out.
expected<json> parse_settings(std::string_view text, std::string_view what, const json& known);

/// Decodes a struct from JSON; a missing key keeps its default, a key of the wrong type is a parse_error that names `what`.
template <class T> expected<T> from_json_value(const json& value, std::string_view what) {
  try {
    return value.get<T>();
  } catch (const json::exception& e) {
    return fail(ec::parse_error, std::string(what) + ": " + e.what());
  }
}

} // namespace pragma

/// PRAGMA_JSON(type, field, field...): put it in the type's namespace, after the type. In headers it only declares
/// to_json/from_json, for their instantiation is most of what a translation unit costs; the room's records.cpp defines
/// them, by including base/json_definitions.hpp before the room's headers. A missing key keeps its default.
#define PRAGMA_JSON(type, ...)                                                                                         \
  void to_json(::nlohmann::json& j, const type& t);                                                                    \
  void from_json(const ::nlohmann::json& j, type& t);
