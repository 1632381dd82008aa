#include "knowledge/hardware_words.hpp"

#include "base/text.hpp"
#include "embeddings/tokens.hpp"

#include <algorithm>

namespace pragma {

namespace {

constexpr size_t longest_phrase = 4;      ///< words
constexpr size_t least_letters = 5;       ///< of a word without digits that is hardware wherever it stands; "ada" and "rome" are words too
constexpr size_t max_found = 4;

void add(std::vector<std::string>& list, const std::string& name) {
  if (!name.empty() && list.size() < max_found && std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
}

/// "Power and energy" is no processor, "POWER" is one.
bool means_the_word(std::string_view written) {
  return is_everyday_word(fold_name(written)) && std::any_of(written.begin(), written.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

bool telling(const std::string& folded) {
  const bool digit = std::any_of(folded.begin(), folded.end(), [](char c) { return c >= '0' && c <= '9'; });
  return folded.size() >= least_letters || (digit && folded.size() >= 4);
}

} // namespace

bool is_everyday_word(std::string_view folded) { return folded == "power"; }

hardware_words::hardware_words(const glossary& words) {
  for (const auto& [name, phrases] : words.hardware) {
    names_.emplace(fold_name(name), name);
    for (const auto& phrase : phrases) names_.emplace(fold_name(phrase), name);
  }
  for (const auto& [maker, all] : words.makers) {
    names_.emplace(fold_name(maker), maker);
    for (const auto& name : all) {
      names_.emplace(fold_name(name), name);
      makers_.emplace(fold_name(name), fold_name(maker));
    }
  }
}

std::string hardware_words::canonical(const std::string& text) const {
  const auto known = names_.find(fold_name(text));
  return known == names_.end() ? text : known->second;
}

bool hardware_words::related(const std::string& a, const std::string& b) const {
  const auto x = fold_name(canonical(a)), y = fold_name(canonical(b));
  if (x == y) return true;
  const auto of_x = makers_.find(x), of_y = makers_.find(y);
  return (of_x != makers_.end() && of_x->second == y) || (of_y != makers_.end() && of_y->second == x);
}

std::vector<std::string> hardware_words::in_address(std::string_view url) const {
  std::vector<std::string> found;
  const auto scheme = url.find("://");
  auto path = url.substr(scheme == std::string_view::npos ? 0 : scheme + 3);
  if (scheme != std::string_view::npos) path = path.substr(std::min(path.find('/'), path.size())); // a vendor's host is no hardware
  const auto parts = split(path, '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const auto whole = names_.find(fold_name(*part));
    if (whole != names_.end() && part->size() >= 3 && !means_the_word(*part)) {
      add(found, whole->second);
      continue;
    }
    std::string pieces = *part;
    for (auto& c : pieces)
      if (c == '_' || c == '.' || c == '-' || c == '%') c = ' ';
    for (const auto& name : in_title(pieces)) {
      add(found, name);
      break; // "alderlake_goldencove_core": the first word says which
    }
  }
  // The most special one is meant: "x86/amdzen3" is Zen 3.
  if (found.size() > 1) found.resize(1);
  return found;
}

std::vector<std::string> hardware_words::in_title(std::string_view title) const {
  std::vector<std::string> found;
  std::vector<std::string> words;
  for (const auto& c : chunks_of(title.substr(0, 400))) words.push_back(c.text);
  for (size_t i = 0; i < words.size();) {
    size_t taken = 0;
    for (size_t length = std::min(longest_phrase, words.size() - i); length > 0 && taken == 0; --length) {
      std::string phrase;
      for (size_t k = i; k < i + length; ++k) phrase += (phrase.empty() ? "" : " ") + words[k];
      const auto folded = fold_name(phrase);
      const auto known = names_.find(folded);
      if (known == names_.end() || means_the_word(phrase) || (!telling(folded) && folded != "amd" && folded != "arm")) continue;
      add(found, known->second);
      taken = length;
    }
    i += std::max<size_t>(taken, 1);
  }
  // A maker says nothing beside its chip.
  std::erase_if(found, [&](const std::string& wide) {
    return std::any_of(found.begin(), found.end(), [&](const std::string& narrow) {
      const auto maker = makers_.find(fold_name(narrow));
      return maker != makers_.end() && maker->second == fold_name(wide);
    });
  });
  return found;
}

} // namespace pragma
