// The dense half of retrieval: the entries' vectors in a checksummed file that is mapped, not read, and their nearest neighbours:
// by FAISS's exhaustive search up to 100,000 entries, by its HNSW graph (Malkov, Yashunin 2016) beyond. Used by retriever.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pragma {

struct vector_options {
  int64_t flat_limit = 100'000; ///< more vectors than this get a graph: an exhaustive search of 100,000 x 300 takes some 45 ms
  int graph_links = 32;         ///< HNSW's M
  int build_breadth = 80;       ///< HNSW's efConstruction
};

/// `count` says how many vectors will come: it decides between flat and graph.
class vector_writer {
public:
  static expected<vector_writer> create(const std::filesystem::path& file, int dimension, int64_t count, const vector_options& options = {});
  vector_writer(vector_writer&&) noexcept;
  vector_writer& operator=(vector_writer&&) noexcept;
  ~vector_writer();
  /// Whole rows.
  expected<void> add(std::span<const float> rows);
  expected<void> finish();

private:
  struct state;
  explicit vector_writer(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

struct vector_hit {
  int64_t row = 0;
  double score = 0; ///< inner product: the cosine of vectors of length 1
};

/// Thread-safe.
class vector_index {
public:
  /// not_found; parse_error names the file. The header and, where there is one, the graph are always verified before FAISS sees
  /// them (its reader believes any size that a file names); the vectors themselves with `verify`.
  static expected<vector_index> open(const std::filesystem::path& file, bool verify = false);
  vector_index(vector_index&&) noexcept;
  vector_index& operator=(vector_index&&) noexcept;
  ~vector_index();

  int64_t size() const;
  int dimension() const;
  const char* kind() const; ///< "flat", "hnsw"
  /// Best first. invalid_argument where the query has another dimension.
  expected<std::vector<vector_hit>> search(std::span<const float> query, size_t count) const;
  /// Inner product with one row; 0 for a row or query that is none.
  double similarity(std::span<const float> query, int64_t row) const;

private:
  struct state;
  explicit vector_index(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

} // namespace pragma
