#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

namespace pragma {

namespace {

/// Characters that are text, and yet change what is around them on a terminal or a page: the C1 controls (U+009B begins a sequence as ESC [ does),
/// what turns the direction of writing (U+202E shows "gpj.exe" as "exe.jpg"), separators of lines, and tags that nobody sees.
bool misleading(uint32_t c) {
  return (c >= 0x80 && c <= 0x9f) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
         c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

} // namespace

std::string ascii_lower(std::string_view text) {
  std::string out(text);
  for (auto& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::vector<std::string> nearest_names(std::string_view word, const std::vector<std::string>& names, size_t count) {
  const auto wanted = ascii_lower(word.substr(0, 256));
  std::vector<std::pair<double, std::string>> ranked;
  for (const auto& name : names) {
    const auto have = ascii_lower(name);
    double distance = static_cast<double>(edit_distance(wanted, have));
    // A word that is part of the name is what people usually mean: "cache" for "L1-dcache-loads".
    if (!wanted.empty() && have.find(wanted) != std::string::npos) distance = std::min(distance, 1.0 + 0.01 * distance);
    ranked.emplace_back(distance, name);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> best;
  for (const auto& [distance, name] : ranked) {
    if (best.size() == count) break;
    if (distance <= std::max<double>(3, static_cast<double>(wanted.size()) * 0.7)) best.push_back(name);
  }
  return best;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (true) {
    const auto end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end == std::string_view::npos ? end : end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string all;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) all += separator;
    all += parts[i];
  }
  return all;
}

std::string trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

std::string format_number(double value, int decimals) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", decimals, value);
  return buffer;
}

std::string format_seconds(double seconds) {
  const double size = std::fabs(seconds);
  struct unit { double least, scale; const char* name; };
  static constexpr unit units[] = {{60, 1.0 / 60, " min"}, {1, 1, " s"}, {1e-3, 1e3, " ms"}, {1e-6, 1e6, " us"}, {0, 1e9, " ns"}};
  for (const auto& u : units)
    if (size >= u.least) {
      const double v = seconds * u.scale;
      return format_number(v, std::fabs(v) >= 100 ? 0 : std::fabs(v) >= 10 ? 1 : 2) + u.name;
    }
  return "0 s";
}

std::string format_bytes(double bytes) {
  static constexpr const char* names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int i = 0;
  while (std::fabs(bytes) >= 1024 && i < 4) {
    bytes /= 1024;
    ++i;
  }
  return format_number(bytes, i == 0 ? 0 : 1) + " " + names[i];
}

std::string cut_lines(std::string_view text, size_t head, size_t tail, size_t max_bytes) {
  auto lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  std::string out;
  if (lines.size() <= head + tail + 1) {
    out = join(lines, "\n");
  } else {
    out = join({lines.begin(), lines.begin() + static_cast<long>(head)}, "\n");
    out += "\n... (" + std::to_string(lines.size() - head - tail) + " lines left out)\n";
    out += join({lines.end() - static_cast<long>(tail), lines.end()}, "\n");
  }
  if (out.size() > max_bytes) {
    out.resize(max_bytes);
    out += "\n... (cut)";
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7f)) {
      out += static_cast<char>(c);
      ++i;
      continue;
    }
    const size_t length = c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;
    bool good = length > 0 && c < 0xf5 && i + length <= text.size();
    for (size_t k = 1; good && k < length; ++k) good = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
    if (good && length == 3) {
      const auto second = static_cast<unsigned char>(text[i + 1]);
      if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f)) good = false;
    }
    if (good && length == 4) {
      const auto second = static_cast<unsigned char>(text[i + 1]);
      if ((c == 0xf0 && second < 0x90) || (c == 0xf4 && second > 0x8f)) good = false;
    }
    if (good) {
      uint32_t character = length == 2 ? c & 0x1fu : length == 3 ? c & 0x0fu : c & 0x07u;
      for (size_t k = 1; k < length; ++k) character = character << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3fu);
      if (misleading(character)) out += '?';
      else out.append(text.substr(i, length));
      i += length;
    } else {
      if (c != '\r') out += '?';
      ++i;
    }
  }
  return out;
}

} // namespace pragma
