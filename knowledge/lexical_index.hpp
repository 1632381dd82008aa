// The lexical half of retrieval: an SQLite FTS5 table over our own tokens (embeddings/tokens.hpp), ranked by BM25 with weighted
// columns. It holds no text, only which row has which token where: the store has the entries. Used by retriever.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace pragma {

/// Weights of the columns name, meaning, rest in BM25 (how docs/knowledge.md says they were chosen).
inline constexpr double name_weight = 3, meaning_weight = 1.5, rest_weight = 1;
/// BM25's k1, fixed by FTS5: no token adds more than idf * (k1 + 1) to a score.
inline constexpr double bm25_k1 = 1.2;

/// Writes one transaction into a neighbour of `file`, which takes its place in finish().
class lexical_writer {
public:
  static expected<lexical_writer> create(const std::filesystem::path& file);
  lexical_writer(lexical_writer&&) noexcept;
  lexical_writer& operator=(lexical_writer&&) noexcept;
  ~lexical_writer();
  /// Tokens separated by spaces; rows from 0.
  expected<void> add(int64_t row, const std::string& name, const std::string& meaning, const std::string& rest);
  expected<void> finish();

private:
  struct state;
  explicit lexical_writer(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

struct lexical_hit {
  int64_t row = 0;
  double score = 0; ///< BM25, more is better
};

/// Thread-safe; one query at a time.
class lexical_index {
public:
  /// not_found; parse_error where it is no index of ours. `verify`: SQLite's and FTS5's own checks of the whole file.
  static expected<lexical_index> open(const std::filesystem::path& file, bool verify = false);
  lexical_index(lexical_index&&) noexcept;
  lexical_index& operator=(lexical_index&&) noexcept;
  ~lexical_index();

  /// Rows that have any of the tokens, best first. A token is matched as it is; bytes that no token has are left out, so that no
  /// text can become syntax. At most 64 different tokens count.
  expected<std::vector<lexical_hit>> search(const std::vector<std::string>& tokens, size_t limit) const;
  /// The same in names and aliases only.
  expected<std::vector<lexical_hit>> search_names(const std::vector<std::string>& tokens, size_t limit) const;
  /// BM25's inverse document frequency of a token, as FTS5 computes it; of an unknown token the largest there is.
  struct frequency {
    int64_t documents = 0;
    double idf = 0;
  };
  expected<frequency> frequency_of(const std::string& token) const;
  int64_t size() const;

private:
  struct state;
  explicit lexical_index(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

} // namespace pragma
