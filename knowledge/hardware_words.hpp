// Which hardware a page is about, as its address and title say ("/SPR/events/sapphirerapids_core.json", "amdzen3", "... based on Sapphire
// Rapids microarchitecture"), in the glossary's words. And which hardware a wider word means: "AMD" means Zen 3. Used by the build, which
// gives entries their hardware, and by the ranking.
#pragma once

#include "knowledge/retrieval.hpp"

#include <unordered_map>

namespace pragma {

/// Names of hardware that are everyday words as well ("power"): they count in capitals only. `folded`: fold_name() of the word.
bool is_everyday_word(std::string_view folded);

class hardware_words {
public:
  hardware_words() = default;
  explicit hardware_words(const glossary& words);
  /// Canonical names, each once; empty where nothing is said. A deeper part of an address goes before its folders.
  std::vector<std::string> in_address(std::string_view url) const;
  std::vector<std::string> in_title(std::string_view title) const;
  /// The canonical name of what a user or a page calls it; the text itself where the glossary has none.
  std::string canonical(const std::string& text) const;
  /// The same hardware, or one of them means the other ("AMD", "Zen 3").
  bool related(const std::string& a, const std::string& b) const;

private:
  std::unordered_map<std::string, std::string> names_;   ///< folded phrase -> canonical name
  std::unordered_map<std::string, std::string> makers_;  ///< folded canonical name -> folded maker
};

} // namespace pragma
