#include "embeddings/tokens.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <libstemmer.h>
#include <memory>

namespace pragma {

namespace {

constexpr size_t max_token_bytes = 128; // the longest names of Nsight Compute have some 110
constexpr size_t max_name_bytes = 512;

// ASCII only, whatever the locale says.
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_foreign(char c) { return static_cast<unsigned char>(c) >= 0x80; }
bool is_word_byte(char c) { return is_lower(c) || is_upper(c) || is_digit(c) || is_foreign(c); }
bool is_separator(char c) { return c == '_' || c == '.' || c == '-' || c == ':'; }
char folded(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

std::string fold(std::string_view text, size_t most) {
  std::string out;
  for (const char c : text) {
    if (out.size() == most) break;
    if (is_word_byte(c)) out += folded(c);
  }
  return out;
}

/// Typographic characters in plain ones: a name from a PDF, with its hyphens and ligatures, is the name as people type it.
std::string plain(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  auto at = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  for (size_t i = 0; i < text.size();) {
    const unsigned a = at(i), b = at(i + 1), c = at(i + 2);
    if (a < 0x80) {
      out += text[i++];
    } else if (a == 0xc2 && b >= 0x80 && b < 0xc0) { // Latin-1's punctuation; the soft hyphen vanishes, micro is a u
      if (b == 0xb5) out += 'u';
      else if (b != 0xad) out += ' ';
      i += 2;
    } else if (a == 0xce && b == 0xbc) { // Greek mu, which people write for micro
      out += 'u';
      i += 2;
    } else if (a == 0xe2 && b >= 0x80 && c >= 0x80) { // U+2000..U+2FFF: punctuation, arrows, operators
      const bool invisible = (b == 0x80 && ((c >= 0x8b && c <= 0x8f) || (c >= 0xaa && c <= 0xae))) || (b == 0x81 && c >= 0xa0 && c <= 0xaf);
      if ((b == 0x80 && c >= 0x90 && c <= 0x95) || (b == 0x88 && c == 0x92)) out += '-';
      else if (b == 0x80 && (c == 0x98 || c == 0x99)) out += '\'';
      else if (!invisible) out += ' ';
      i += 3;
    } else if (a == 0xef && b == 0xac && (c == 0x81 || c == 0x82)) { // ligatures of PDF text
      out += c == 0x81 ? "fi" : "fl";
      i += 3;
    } else if (a == 0xef && b == 0xbb && c == 0xbf) {
      i += 3;
    } else if ((a == 0xee || (a == 0xef && b <= 0xa3)) && b >= 0x80 && c >= 0x80) { // private use: icons such as Sphinx's header link
      out += ' ';
      i += 3;
    } else {
      out += text[i++];
    }
  }
  return out;
}

/// Where a piece ends before text[i] because of its case: numBytes, TLBMisses, L2Cache.
bool case_changes(std::string_view text, size_t i) {
  const char before = text[i - 1], here = text[i];
  if (!is_upper(here)) return false;
  if (is_lower(before)) return true;
  return i + 1 < text.size() && is_lower(text[i + 1]) && (is_upper(before) || is_digit(before));
}

/// "TLBs", "SMs", "FLOPs": the plural of an abbreviation is no change of case.
bool is_plural_abbreviation(std::string_view text) {
  return text.size() >= 3 && text.back() == 's' &&
         std::all_of(text.begin(), text.end() - 1, [](char c) { return is_upper(c) || is_digit(c); });
}

std::vector<std::string_view> raw_pieces(std::string_view name) {
  std::vector<std::string_view> pieces;
  size_t start = 0;
  auto end_piece = [&](size_t end) {
    if (end > start) pieces.push_back(name.substr(start, end - start));
  };
  for (size_t i = 0; i < name.size(); ++i) {
    if (!is_word_byte(name[i])) {
      end_piece(i);
      start = i + 1;
    } else if (i > start && case_changes(name, i)) {
      const auto stop = std::find_if_not(name.begin() + static_cast<long>(i), name.end(), is_word_byte);
      const auto rest = name.substr(start, static_cast<size_t>(stop - name.begin()) - start);
      if (is_plural_abbreviation(rest)) continue;
      end_piece(i);
      start = i;
    }
  }
  end_piece(name.size());
  return pieces;
}

bool all_digits(std::string_view text) { return std::all_of(text.begin(), text.end(), is_digit); }

constexpr auto stop_words = std::to_array<std::string_view>({
    "about", "above", "after", "again", "all", "also", "am", "an", "and", "any", "are", "aren", "as", "at", "be", "because", "been",
    "before", "being", "below", "between", "both", "but", "by", "can", "cannot", "could", "couldn", "did", "didn", "do", "does",
    "doesn", "doing", "don", "down", "each", "eg", "etc", "explain", "few", "for", "from", "had", "has", "hasn", "have", "haven",
    "having", "he", "her", "here", "him", "his", "how", "ie", "if", "in", "into", "is", "isn", "it", "its", "just", "know", "ll",
    "may", "me", "mean", "meaning", "means", "might", "my", "no", "nor", "not", "of", "off", "on", "once", "only", "or", "other",
    "our", "out", "over", "own", "please", "same", "shall", "she", "should", "shouldn", "so", "some", "such", "tell", "tells",
    "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "through", "to", "too", "under",
    "until", "up", "ve", "very", "want", "was", "wasn", "we", "were", "weren", "what", "when", "where", "whether", "which",
    "while", "who", "whom", "whose", "why", "will", "with", "won", "would", "wouldn", "you", "your"});
static_assert(std::is_sorted(stop_words.begin(), stop_words.end()));

void append_word(std::string_view raw, token::type what, std::vector<token>& out) {
  if (is_plural_abbreviation(raw)) raw.remove_suffix(1);
  auto word = fold(raw, max_token_bytes);
  if (word.empty() || (word.size() == 1 && !is_digit(word[0])) || is_stop_word(word)) return;
  token t;
  t.text = stem_word(word);
  t.folded = std::move(word);
  t.what = what;
  out.push_back(std::move(t));
}

} // namespace

std::vector<chunk> chunks_of(std::string_view original) {
  const auto text = plain(original);
  std::vector<chunk> chunks;
  for (size_t i = 0; i < text.size();) {
    if (!is_word_byte(text[i])) {
      // The end of "doesn't" or "cachegrind's" is no word of its own.
      if (text[i] == '\'' && i > 0 && is_word_byte(text[i - 1])) {
        size_t end = i + 1;
        while (end < text.size() && is_lower(text[end])) ++end;
        if (end - i <= 3 && (end == text.size() || !is_word_byte(text[end]))) {
          i = end;
          continue;
        }
      }
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && (is_word_byte(text[end]) || is_separator(text[end]))) ++end;
    const size_t next = end;
    while (!is_word_byte(text[end - 1])) --end;
    chunk c;
    c.text = text.substr(i, end - i);
    const std::string_view view = c.text;
    c.identifier = std::any_of(view.begin(), view.end(), is_separator);
    for (size_t k = 1; k < view.size() && !c.identifier; ++k) c.identifier = case_changes(view, k);
    if (is_plural_abbreviation(view)) c.identifier = false;
    chunks.push_back(std::move(c));
    i = next;
  }
  return chunks;
}

void append_tokens(const chunk& c, std::vector<token>& out) {
  if (!c.identifier) return append_word(c.text, token::type::word, out);
  const auto base = base_metric(c.text);
  const auto pieces = raw_pieces(base);
  auto whole = fold(base, max_token_bytes);
  if (whole.size() > 1 && !all_digits(whole) && !is_stop_word(whole)) {
    token t;
    t.text = stem_word(whole);
    t.folded = std::move(whole);
    t.what = pieces.size() > 1 ? token::type::whole : token::type::word;
    out.push_back(std::move(t));
  }
  if (pieces.size() > 1)
    for (const auto piece : pieces) append_word(piece, token::type::piece, out);
}

std::vector<token> tokens_of(std::string_view text) {
  std::vector<token> tokens;
  for (const auto& c : chunks_of(text)) append_tokens(c, tokens);
  return tokens;
}

std::string fold_name(std::string_view name) { return fold(plain(name.substr(0, 4 * max_name_bytes)), max_name_bytes); }

std::string_view base_metric(std::string_view name) {
  static constexpr std::string_view exact[] = {"sum", "avg", "min", "max", "pct", "ratio", "max_rate"};
  static constexpr std::string_view starts[] = {"pct_of_peak_", "per_cycle_", "per_second", "peak_sustained"};
  for (;;) {
    const auto dot = name.rfind('.');
    if (dot == std::string_view::npos || dot == 0) break;
    const auto suffix = name.substr(dot + 1);
    const bool rollup = std::any_of(std::begin(exact), std::end(exact), [&](auto s) { return suffix == s; }) ||
                        std::any_of(std::begin(starts), std::end(starts), [&](auto s) { return suffix.starts_with(s); });
    if (!rollup) break;
    name = name.substr(0, dot);
  }
  // perf: user, kernel, hypervisor, guest, host, precise, pinned, exclusive, weak
  const auto colon = name.rfind(':');
  if (colon != std::string_view::npos && colon > 0 && colon + 1 < name.size() && name.size() - colon <= 5 && is_word_byte(name[colon - 1]) &&
      name.find_first_not_of("ukhGHpPDeW", colon + 1) == std::string_view::npos)
    name = name.substr(0, colon);
  return name;
}

std::vector<std::string> pieces_of(std::string_view name) {
  const auto text = plain(name.substr(0, 4 * max_name_bytes));
  std::vector<std::string> pieces;
  for (const auto raw : raw_pieces(base_metric(text)))
    if (auto piece = fold(raw, max_token_bytes); piece.size() > 1 || (piece.size() == 1 && is_digit(piece[0]))) pieces.push_back(std::move(piece));
  return pieces;
}

bool is_stop_word(std::string_view word) { return std::binary_search(stop_words.begin(), stop_words.end(), word); }

std::string stem_word(std::string_view word) {
  if (word.size() < 3 || !std::all_of(word.begin(), word.end(), is_lower)) return std::string(word);
  struct deleter {
    void operator()(sb_stemmer* s) const { sb_stemmer_delete(s); }
  };
  // Not shared: a stemmer keeps the last word in itself.
  thread_local const std::unique_ptr<sb_stemmer, deleter> stemmer(sb_stemmer_new("english", "UTF_8"));
  if (!stemmer) return std::string(word);
  const auto* stem = sb_stemmer_stem(stemmer.get(), reinterpret_cast<const sb_symbol*>(word.data()), static_cast<int>(word.size()));
  if (!stem) return std::string(word);
  return {reinterpret_cast<const char*>(stem), static_cast<size_t>(sb_stemmer_length(stemmer.get()))};
}

} // namespace pragma
