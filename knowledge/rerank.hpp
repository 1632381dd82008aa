// The order among the first candidates: a linear model over how much of the question an entry explains and how much of the entry the question
// asked for. BM25 counts a word as often as it stands there and knows nothing of words that mean the same; here each word or phrase of the
// question counts once, by itself or by what the glossary says for it. Used by retriever::ask(); bench/fit_rerank fits the weights.
#pragma once

#include "knowledge/question.hpp"
#include "knowledge/text_index.hpp"

#include <array>

namespace pragma {

/// What is known of a candidate before: BM25 over the best one's, cosine, what the scope adds.
struct first_scores {
  double lexical = 0, dense = 0, scope = 0;
};

/// All 0 to 1 but `scope`; shares are weighed by idf. "Said": a group's own words, or for half as much one of its phrases whole.
struct rerank_features {
  double lexical = 0, dense = 0, scope = 0;
  double name = 0, name_said = 0;       ///< of the question, what the entry's names have
  double anywhere = 0, anywhere_said = 0; ///< of the question, what the entry has
  double summary = 0, summary_said = 0; ///< of the summary's different words, what the question has
  double pairs = 0;                     ///< of neighbours in the question, those that stand near each other in the meaning
  std::array<double, 10> list() const { return {lexical, dense, scope, name, name_said, anywhere, anywhere_said, summary, summary_said, pairs}; }
};

class reranker {
public:
  reranker(const text_index& texts, const understood_question& u);
  rerank_features features(uint32_t row, const first_scores& first) const;
  /// Of 1 for an entry that has everything and nothing else; can be negative.
  static double score(const rerank_features& f);
  /// Of the question's words by idf: those that some entry has, or that the glossary says in words that some entry has.
  double known_share() const { return known_share_; }
  size_t groups() const { return groups_.size(); }

private:
  struct weighed_group {
    std::vector<uint32_t> own;
    std::vector<std::vector<uint32_t>> others;
    double weight = 0;
  };
  double covered(const weighed_group& g, const std::vector<uint32_t>& sorted, bool said) const;
  const text_index& texts_;
  std::vector<weighed_group> groups_;
  std::vector<uint32_t> own_, said_;    ///< sorted: the question's words; all that the glossary says for them
  double total_ = 0, known_share_ = 0;
};

} // namespace pragma
