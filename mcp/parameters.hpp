// What a tool or a prompt can be told: one table from which the JSON Schema is made and by which arguments are checked.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"

#include <string>
#include <vector>

namespace pragma::mcp {

enum class kind { text, whole, number, flag, texts };

struct parameter {
  std::string name;
  mcp::kind kind = mcp::kind::text;
  std::string description;
  bool required = false;
  json fallback = nullptr;             ///< null: absent where it is not given
  std::vector<std::string> one_of = {}; ///< of text
  double least = 0, most = 0;          ///< of numbers; equal: no bounds
};

/// An object schema (JSON Schema 2020-12) that allows these and no others.
json schema_of(const std::vector<parameter>& parameters);

/// The arguments with fallbacks filled in. invalid_argument names the parameter, and the nearest one for an unknown name.
expected<json> check_arguments(const json& given, const std::vector<parameter>& parameters);

} // namespace pragma::mcp
