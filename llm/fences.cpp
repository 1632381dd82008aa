#include "llm/fences.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>

namespace pragma::llm {

namespace {

struct fence_line {
  char mark = 0; ///< '`' or '~'; 0: not a fence
  size_t length = 0;
  std::string_view info;
};

fence_line read_fence(std::string_view line) {
  const auto start = line.find_first_not_of(' ');
  if (start == std::string_view::npos || start > 3 || (line[start] != '`' && line[start] != '~')) return {};
  fence_line f;
  f.mark = line[start];
  const auto end = line.find_first_not_of(f.mark, start);
  f.length = (end == std::string_view::npos ? line.size() : end) - start;
  if (f.length < 3) return {};
  if (end != std::string_view::npos) f.info = line.substr(end);
  if (f.mark == '`' && f.info.find('`') != std::string_view::npos) return {}; // ```code``` in one line
  return f;
}

} // namespace

std::string fenced(std::string_view content, std::string_view language) {
  size_t longest = 0, run = 0;
  for (const char c : content) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(std::max<size_t>(3, longest + 1), '`');
  std::string out = fence + std::string(language) + "\n" + std::string(content);
  if (!content.empty() && content.back() != '\n') out += '\n';
  return out + fence + "\n";
}

fenced_text take_apart(std::string_view text) {
  fenced_text out;
  fence_line open;
  for (const auto& line : split(text, '\n')) {
    const auto fence = read_fence(line);
    if (open.mark == 0) {
      if (fence.mark == 0) {
        out.prose.push_back(line);
        continue;
      }
      open = {fence.mark, fence.length, {}};
      auto language = split(trim(fence.info), ' ')[0];
      for (auto& c : language) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      out.blocks.push_back({language, ""});
    } else if (fence.mark == open.mark && fence.length >= open.length && trim(fence.info).empty()) {
      open = {};
    } else {
      out.blocks.back().content += line + "\n";
    }
  }
  out.unterminated = open.mark != 0;
  return out;
}

} // namespace pragma::llm
