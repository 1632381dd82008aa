// What an opened retriever holds, and the steps of an answer. Private to knowledge/: retrieval.cpp opens, ranking.cpp answers.
#pragma once

#include "knowledge/index_files.hpp"
#include "knowledge/lexical_index.hpp"
#include "knowledge/name_index.hpp"
#include "knowledge/question.hpp"
#include "knowledge/rerank.hpp"
#include "knowledge/vector_index.hpp"

#include <algorithm>

namespace pragma {

/// Which entries a scope admits, and what it adds to the score of those that it means. A scope that the user set filters; one
/// that the words of the question name only shifts, for words are ambiguous.
class scope_rule {
public:
  scope_rule(const question& q, const understood_question& u, const phrase_book& book, const name_index& names);
  bool admits(uint32_t row) const;
  double bonus(uint32_t row) const;
  /// Among entries of one name: 0 for what this machine counts, 1 where that is not known or the question says, 2 simulated, 3 elsewhere.
  int nearness(uint32_t row) const;
  /// hit::where.
  const char* where(uint32_t row) const;
  bool filters() const { return filter_profiler_ || filter_hardware_; }
  const std::string& profiler() const { return profiler_; }
  const std::string& hardware() const { return hardware_; }
  /// Some entry is of the hardware that is meant.
  bool knows_hardware() const { return std::find(same_hardware_.begin(), same_hardware_.end(), true) != same_hardware_.end(); }
  /// The user asked for a profiler that no entry has.
  bool unknown_profiler() const { return unknown_profiler_; }

private:
  enum class relation { any, same, other };
  relation profiler_of(uint32_t row) const;
  relation hardware_of(uint32_t row) const;

  enum class place { unknown, here, simulated, elsewhere };
  place place_of(uint32_t row) const;

  const name_index& names_;
  std::string profiler_, hardware_;
  std::vector<bool> same_profiler_, same_hardware_; ///< by number
  bool machine_known_ = false, asks_option_ = false, asks_metric_ = false;
  std::vector<bool> counts_here_, simulates_, hardware_here_; ///< by number: profilers, profilers, hardware
  bool filter_profiler_ = false, filter_hardware_ = false, unknown_profiler_ = false;
};

struct retriever::impl {
  index_stamp stamp;
  lexical_index words;
  vector_index vectors;
  name_index names;
  text_index texts;
  std::unique_ptr<embedder> model;
  phrase_book book;
  double weight;

  expected<found_entries> ask(const question& q, retrieval_mode mode) const;
  expected<std::vector<hit>> find_name(const std::string& name, const std::string& profiler, size_t count) const;

private:
  struct candidate {
    uint32_t row = 0;
    double lexical = 0, dense = 0, scope = 0, fuzzy = 0, score = 0;
    std::vector<uint32_t> group = {}; ///< other candidates that are the same event
    int nearness = 0;  ///< scope_rule::nearness()
    int name_rank = 0; ///< 0: not named; otherwise 1 for what the question names first and most surely
  };
  class pool;
  struct similar_name {
    uint32_t row;
    double similarity;
  };
  /// Names like this one, best first, none below `least`.
  expected<std::vector<similar_name>> similar_names(const std::string& name, const scope_rule& scope, size_t count, double least) const;
  expected<void> add_names(const understood_question& u, const scope_rule& scope, pool& found) const;
  struct weighed_words {
    double most = 0;                   ///< the most that BM25 can give for the question
    std::vector<std::string> searched; ///< its tokens that tell entries apart
    std::vector<std::string> expanded; ///< the glossary's that do
    std::vector<std::string> unknown;  ///< words of the question that no entry has
  };
  expected<weighed_words> weigh(const understood_question& u, const scope_rule& scope) const;
  /// The best BM25 over the words of the question itself, which is what it is judged to be answered by.
  expected<double> add_words(const weighed_words& w, const scope_rule& scope, size_t count, pool& found) const;
  expected<void> add_vectors(const understood_question& u, const scope_rule& scope, size_t count, pool& found) const;
  bool is_concept(uint32_t row) const;
  /// The first ones that are found by their words in the order of rerank.hpp, where `move` is set; the others keep their place. The best
  /// score of these. `dense_weight`: of the cosine; 0: there are no vectors.
  double rerank(std::vector<candidate>& ranked, const reranker& by, double dense_weight, bool move) const;
  /// Best first: what the question names, then by score.
  static void order(std::vector<candidate>& ranked, const name_index& names);
  /// One hit for each family.
  std::vector<hit> collapsed(const std::vector<candidate>& ranked, const scope_rule& scope, size_t count) const;
  /// Candidates that are found by their words and are one event stand behind the best of them, or behind the one without a size or
  /// threshold where the question has none.
  std::vector<candidate> grouped(std::vector<candidate> ranked, const understood_question& u) const;
};

} // namespace pragma
