#include "crawler/rst_inline.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>

namespace pragma::crawler {

namespace {

constexpr size_t inline_window = 2000;   ///< bytes in which the end of an inline markup is looked for

bool ends_word(std::string_view text, size_t at) {
  return at >= text.size() || std::string_view(" \n.,;:)!?").find(text[at]) != std::string_view::npos;
}
bool simple_word_before(std::string_view text, size_t at) {
  while (at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1]))) --at;
  return at == 0 || text[at - 1] == ' ' || text[at - 1] == '\n' || text[at - 1] == '(';
}
/// "[1]_", "[#name]_", "[*]_": a reference to a footnote.
size_t footnote_length(std::string_view text) {
  const auto close = text.substr(0, 40).find(']');
  if (close == std::string_view::npos || close + 1 >= text.size() || text[close + 1] != '_') return 0;
  return text[1] == '#' || text[1] == '*' || std::isdigit(static_cast<unsigned char>(text[1])) ? close + 2 : 0;
}

/// `text`, `text <target>`_, :role:`text <target>`: writes the text; returns how much was read.
size_t reference(std::string_view window, std::string_view source_ending, std::vector<std::string>& targets, std::string& out) {
  const size_t open = window[0] == ':' ? rst_role_length(window) : 0;
  const auto close = window.find('`', open + 1);
  if (close == std::string_view::npos) {
    out += window.substr(0, open + 1);
    return open + 1;
  }
  auto text = window.substr(open + 1, close - open - 1);
  size_t end = close + 1;
  while (end < window.size() && window[end] == '_') ++end;
  const auto angle = text.rfind('<');
  if (angle != std::string_view::npos && text.ends_with('>')) {
    const auto target = text.substr(angle + 1, text.size() - angle - 2);
    if (open == 0 && target.find("://") != std::string_view::npos) targets.emplace_back(target);
    if (window.substr(0, open) == ":doc:") targets.push_back(std::string(target) + std::string(source_ending));
    text = angle > 0 ? text.substr(0, angle) : target;
  } else if (window.substr(0, open) == ":doc:") {
    targets.push_back(std::string(text) + std::string(source_ending));
  }
  auto word = trim(text);
  if (open > 0 && word.starts_with('~')) word = word.substr(word.find_last_of(".~") + 1); // only the last part of a dotted name
  if (open > 0 && word.starts_with('!')) word.erase(0, 1);
  out += word;
  return end;
}

} // namespace

size_t rst_role_length(std::string_view text) {
  size_t i = 1;
  while (
      i < text.size() && i < 40 &&
      (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '-' || text[i] == '_' || text[i] == ':' || text[i] == '.'))
    ++i;
  return i > 2 && i < text.size() && text[i] == '`' && text[i - 1] == ':' ? i : 0;
}

std::string rst_plain_text(std::string_view text, std::string_view source_ending, std::vector<std::string>& targets) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const bool starts = i == 0 || std::string_view(" \n([{<-/'\":|").find(text[i - 1]) != std::string_view::npos;
    const auto window = text.substr(i, inline_window);
    if (c == '\\' && i + 1 < text.size()) {
      if (text[i + 1] != ' ' && text[i + 1] != '\n') out += text[i + 1];
      i += 2;
    } else if (window.starts_with("``")) {
      const auto end = window.find("``", 2);
      if (end == std::string_view::npos) {
        out += "``";
        i += 2;
      } else {
        out += window.substr(2, end - 2);
        i += end + 2;
      }
    } else if (c == '`' || (c == ':' && starts && rst_role_length(window) > 0)) {
      i += reference(window, source_ending, targets, out);
    } else if (c == '[' && starts && footnote_length(window) > 0) {
      i += footnote_length(window);
    } else if (c == '*' && starts) {
      const std::string_view mark = window.starts_with("**") ? "**" : "*";
      const auto end = window.find(mark, mark.size() + 1);
      if (end == std::string_view::npos || window[mark.size()] == ' ' || window[end - 1] == ' ') {
        out += c;
        ++i;
      } else {
        out += window.substr(mark.size(), end - mark.size());
        i += end + mark.size();
      }
    } else if (c == '_' && i > 0 && std::isalnum(static_cast<unsigned char>(text[i - 1])) && ends_word(text, i + 1) &&
               simple_word_before(text, i)) {
      ++i; // the reference "name_"
    } else {
      out += c;
      ++i;
    }
  }
  return out;
}

} // namespace pragma::crawler
