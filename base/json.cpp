#include "base/json.hpp"

#include <algorithm>

namespace pragma {

expected<json> parse_json(std::string_view text, std::string_view what) {
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

} // namespace pragma
