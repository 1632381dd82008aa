#include "base/json.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace pragma {

namespace {

/// JSON of the same kind as the default's: any number for a number.
bool same_kind(const json& a, const json& b) {
  return a.type() == b.type() || (a.is_number() && b.is_number_float()) || (a.is_number_integer() && b.is_number_integer());
}

bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      else if (c == '"') in_string = false;
    } else if (c == '"') in_string = true;
    else if (c == '{' || c == '[') {
      if (++depth > deepest_json) return true;
    } else if (c == '}' || c == ']') --depth;
  }
  return false;
}

} // namespace

json parse_if_json(std::string_view text) { return too_deep(text) ? json(json::value_t::discarded) : json::parse(text, nullptr, false); }

expected<json> parse_json(std::string_view text, std::string_view what) {
  if (too_deep(text)) return fail(ec::limit_exceeded, std::string(what) + " is nested deeper than " + std::to_string(deepest_json) + " levels");
  try {
    return json::parse(text);
  } catch (const json::parse_error& e) {
    const auto at = std::min(static_cast<size_t>(e.byte), text.size());
    const auto before = text.substr(0, at);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const auto newline = before.rfind('\n');
    const auto column = newline == std::string_view::npos ? at : at - newline - 1;
    return fail(ec::parse_error, std::string(what) + ": not valid JSON at line " + std::to_string(line) + ", column " +
                                     std::to_string(column) + ": " + e.what());
  }
}

expected<json> only_known_keys(const json& value, const std::vector<std::string>& known, const std::string& where) {
  if (!value.is_object()) return fail(ec::parse_error, where + " is not a JSON object");
  json kept = json::object();
  for (const auto& [key, member] : value.items()) {
    if (key.starts_with("_")) continue;
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const auto near = nearest_names(key, known, 1);
      return fail(ec::invalid_argument, where + ": unknown key '" + printable(key) + "'",
                  near.empty() ? "known keys: " + join(known, ", ") : "did you mean '" + near[0] + "'?");
    }
    kept[key] = member;
  }
  return kept;
}

expected<json> parse_settings(std::string_view text, std::string_view what, const json& known) {
  auto parsed = parse_json(text, what);
  if (!parsed) return parsed;
  const std::string where(what);
  std::vector<std::string> names;
  for (const auto& [key, value] : known.items()) names.push_back(key);
  auto kept = only_known_keys(*parsed, names, where);
  if (!kept) return kept;
  for (const auto& [key, value] : kept->items())
    if (!same_kind(value, known[key]))
      return fail(ec::parse_error, where + ": " + key + " must be a " + (known[key].is_number() ? "number" : known[key].type_name()) +
                                       ", but is a " + value.type_name());
  return kept;
}

} // namespace pragma
