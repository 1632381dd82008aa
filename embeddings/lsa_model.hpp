// The LSA embedder's parts: features of a text (lsa_features.cpp), the fitted model and its file (lsa_model.cpp), the fit
// (lsa.cpp). Private to embeddings/.
#pragma once

#include "base/section_file.hpp"
#include "embeddings/embedder.hpp"

#include <optional>
#include <utility>

namespace pragma::lsa {

/// Hash of a feature and how often it stands in the text; sorted by hash.
using counts = std::vector<std::pair<uint64_t, float>>;

/// Words (whole identifiers, pieces, stems) and character n-grams are two blocks, each brought to the same length before they
/// are joined: otherwise the hundreds of n-grams of a text drown its words.
struct text_features {
  counts words, grams;
};
text_features features_of(std::string_view text, int shortest_gram, int longest_gram);

/// 1 + ln(count), times the feature's inverse document frequency.
float term_weight(float count, float idf);

struct model_head {
  uint32_t version = 1, dimensions = 1, shortest_gram = 3, longest_gram = 5;
  uint64_t texts = 0;
  uint32_t bucket_bits = 0, reserved = 0;
};

/// The projection of each feature as signed bytes with one scale: a quarter of the file, and its rounding (below 1 % of a row's
/// largest number) is far below what truncation leaves out.
struct model_data {
  model_head head;
  std::string name;
  std::vector<uint64_t> keys;    ///< sorted hashes
  std::vector<uint32_t> buckets; ///< 2^bits + 1: where the keys of each leading bit pattern begin
  std::vector<float> idf, scale; ///< per key
  std::vector<int8_t> rows;      ///< keys x dimensions
};

class model : public embedder {
public:
  explicit model(model_data data);
  static expected<std::unique_ptr<model>> load(const std::filesystem::path& file, bool verify);
  expected<void> save(const std::filesystem::path& file) const;

  int dimension() const override { return static_cast<int>(head_.dimensions); }
  std::string name() const override { return name_; }
  expected<std::vector<float>> embed(std::span<const std::string> texts) const override;

private:
  model() = default;
  expected<void> check(const section_file& file) const;
  /// Index of a key, or keys_.size().
  size_t find(uint64_t key) const;
  void add(const counts& block, std::span<float> sum) const;

  model_head head_;
  std::string name_;
  std::span<const uint64_t> keys_;
  std::span<const uint32_t> buckets_;
  std::span<const float> idf_, scale_;
  std::span<const int8_t> rows_;
  std::optional<model_data> owned_;
  std::optional<section_file> file_;
};

/// Where the keys of each leading bit pattern begin; about two keys a bucket.
std::vector<uint32_t> buckets_of(std::span<const uint64_t> sorted_keys, uint32_t& bits);

} // namespace pragma::lsa
