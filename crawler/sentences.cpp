#include "crawler/sentences.hpp"

#include "crawler/charset.hpp"
#include "crawler/document.hpp"

#include <algorithm>
#include <cctype>

namespace pragma::crawler {

namespace {

bool is_abbreviation(std::string_view before) {
  static constexpr std::string_view known[] = {"e.g", "i.e",    "eg",   "ie",   "etc", "vs", "cf", "fig", "eq",  "sec",
                                               "no",  "approx", "resp", "incl", "dr",  "al", "ca", "st",  "vol", "ref"};
  const auto space = before.find_last_of(" \n(");
  const auto word = ascii_lower(before.substr(space == std::string_view::npos ? 0 : space + 1));
  // "etc." and "i.e." stand before lower case anyway; one capital letter is an initial.
  return word.size() == 1 || std::find(std::begin(known), std::end(known), word) != std::end(known);
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

/// Behind the lines from `at` on that are code.
size_t behind_code(std::string_view text, size_t at) {
  while (at < text.size() && text.substr(at).starts_with("    ")) at = std::min(text.find('\n', at), text.size() - 1) + 1;
  return at;
}

} // namespace

std::vector<std::string_view> sentences_of(std::string_view text) {
  std::vector<std::string_view> all;
  size_t start = behind_code(text, 0);
  auto close = [&](size_t end, size_t next) {
    auto sentence = trimmed(text.substr(start, end - start));
    if (sentence.starts_with("- ")) sentence = trimmed(sentence.substr(2));
    if (!sentence.empty()) all.push_back(sentence);
    start = next;
  };
  for (size_t i = start; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      const auto rest = text.substr(i + 1);
      const size_t next = behind_code(text, i + 1);
      if (next > i + 1 || rest.starts_with("\n") || rest.starts_with("- ")) {
        close(i, next);
        i = next - 1;
      }
      continue;
    }
    if (c != '.' && c != '!' && c != '?') continue;
    size_t end = i + 1;
    while (end < text.size() && (text[end] == ')' || text[end] == '"' || text[end] == '\'')) ++end;
    if (end >= text.size() || (text[end] != ' ' && text[end] != '\n')) continue;
    const auto next = text.find_first_not_of(" \n", end);
    if (next == std::string_view::npos) continue;
    if (c == '.' && is_abbreviation(text.substr(start, i - start))) continue;
    if (c == '.' && std::islower(static_cast<unsigned char>(text[next]))) {
      // Only a metric's name may begin a sentence in lower case.
      const auto word = text.substr(next, std::min(text.find_first_of(" \n,", next), text.size()) - next);
      if (!looks_like_metric(word)) continue;
    }
    close(end, end);
    i = end - 1;
  }
  if (start < text.size()) close(text.size(), text.size());
  return all;
}

} // namespace pragma::crawler
