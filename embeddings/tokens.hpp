// Text -> tokens that know what an identifier is. A metric's name gives one token for the whole name, separators ignored and
// case folded, and one for each piece; prose gives its words, stemmed, without stop words. The LSA embedder and knowledge/'s
// lexical index and look-up by name all read text through here, so that they agree on what a word is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pragma {

/// A run of letters, digits and inner separators (_ . - :), as it stands in the text; typographic dashes, ligatures and the
/// micro sign are made plain.
struct chunk {
  std::string text;
  bool identifier = false; ///< has a separator or a change of case inside
};
std::vector<chunk> chunks_of(std::string_view text);

struct token {
  enum class type : unsigned char {
    word,  ///< of prose
    whole, ///< an identifier without its separators and rollup suffixes
    piece  ///< of an identifier
  };
  std::string text;   ///< folded and stemmed; letters, digits and bytes above 127 only, at most 128 bytes
  std::string folded; ///< the same before stemming
  type what = type::word;
};
std::vector<token> tokens_of(std::string_view text);
/// Of one chunk; none for a stop word or a single letter.
void append_tokens(const chunk& c, std::vector<token>& out);

/// "L1-dcache.load:Misses" -> "l1dcacheloadmisses": spellings that differ in case and separators fold to the same. At most 512 bytes.
std::string fold_name(std::string_view name);
/// "sm__cycles_active.avg.pct_of_peak_sustained_elapsed" -> "sm__cycles_active", "cycles:u" -> "cycles": the metric without
/// Nsight Compute's rollups and perf's modifiers.
std::string_view base_metric(std::string_view name);
/// The pieces of an identifier, folded: {"l1", "dcache", "load", "misses"}. Single letters are left out.
std::vector<std::string> pieces_of(std::string_view name);
/// Folded words that carry no subject: articles, prepositions, and those of which questions are made ("what", "mean").
bool is_stop_word(std::string_view folded);
/// Snowball's English stem of a folded word; a word with digits stays as it is.
std::string stem_word(std::string_view folded);

} // namespace pragma
