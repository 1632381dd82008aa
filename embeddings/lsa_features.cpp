#include "base/hash.hpp"
#include "embeddings/lsa_model.hpp"
#include "embeddings/tokens.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::lsa {

namespace {

constexpr uint64_t word_seed = 1, gram_seed = 2; // the same letters as a word and as an n-gram are two features

void count_up(std::vector<uint64_t>& hashes, counts& out) {
  std::sort(hashes.begin(), hashes.end());
  for (size_t i = 0; i < hashes.size();) {
    size_t end = i;
    while (end < hashes.size() && hashes[end] == hashes[i]) ++end;
    out.emplace_back(hashes[i], static_cast<float>(end - i));
    i = end;
  }
}

} // namespace

float term_weight(float count, float idf) { return (1 + std::log(count)) * idf; }

text_features features_of(std::string_view text, int shortest_gram, int longest_gram) {
  std::vector<uint64_t> words, grams;
  std::string padded;
  for (const auto& t : tokens_of(text)) {
    words.push_back(hash64(t.text, word_seed));
    if (t.what == token::type::whole) continue; // its pieces have its n-grams
    padded = '<' + t.folded + '>';
    for (auto n = static_cast<size_t>(shortest_gram); n <= static_cast<size_t>(longest_gram); ++n)
      for (size_t i = 0; i + n <= padded.size(); ++i) grams.push_back(hash64(std::string_view(padded).substr(i, n), gram_seed));
  }
  text_features f;
  count_up(words, f.words);
  count_up(grams, f.grams);
  return f;
}

} // namespace pragma::lsa
