#include "knowledge/event_group.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>

namespace pragma {

namespace {


/// "8", "128b", "4k", "2m", "1g".
bool is_number(const std::string& piece) {
  const auto digits = static_cast<size_t>(std::find_if_not(piece.begin(), piece.end(), is_digit) - piece.begin());
  return digits > 0 && (digits == piece.size() || (digits + 1 == piece.size() && std::string_view("bgkm").find(piece.back()) != std::string_view::npos));
}

/// "LD_BLOCKS.STORE_FORWARD": a dot with two characters at least on both sides, an underscore, neither blank nor slash.
bool is_event_with_mask(std::string_view name) {
  if (name.find(' ') != std::string_view::npos || name.find('/') != std::string_view::npos) return false;
  const auto dot = name.find('.');
  return dot != std::string_view::npos && dot >= 2 && name.size() - dot > 2 && name.find('_') != std::string_view::npos;
}

} // namespace

event_group group_of(std::string_view name, std::string_view profiler) {
  event_group group;
  std::string piece, key;
  bool letters = false;
  const auto end_piece = [&] {
    if (is_number(piece)) group.numbers.push_back(piece);
    else if (!piece.empty()) {
      key += (key.empty() ? "" : " ") + piece;
      letters = true;
    }
    piece.clear();
  };
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || byte >= 0x80) piece += static_cast<char>(std::tolower(byte));
    else end_piece();
  }
  end_piece();
  if (letters) group.key = (is_event_with_mask(name) ? "" : std::string(profiler)) + "/" + key;
  return group;
}

} // namespace pragma
