// Text -> vector. `lsa` is fitted on the corpus at build time and needs nothing; `http` asks an OpenAI-compatible endpoint.
// Used by knowledge/ for the dense half of retrieval.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pragma {

class embedder {
public:
  virtual ~embedder() = default;
  virtual int dimension() const = 0;
  /// "lsa 1 300 <hash of what it was fitted on>", "http MODEL DIMENSION": vectors of another name are rebuilt.
  virtual std::string name() const = 0;
  /// Row-major, texts.size() x dimension(), each row of length 1 (or 0 for a text without any known word).
  virtual expected<std::vector<float>> embed(std::span<const std::string> texts) const = 0;
};

struct lsa_options {
  int dimensions = 300;               ///< at most; a small corpus gets fewer
  int min_documents = 2;              ///< a feature in fewer texts is dropped
  size_t max_features = 200'000;
  int shortest_gram = 3, longest_gram = 5;
  uint64_t seed = 1;                  ///< of the randomised SVD (Halko, Martinsson, Tropp 2011)
};
/// Words and character n-grams, tf-idf, truncated SVD. Deterministic for the same texts and options.
expected<std::unique_ptr<embedder>> fit_lsa(std::span<const std::string> texts, const lsa_options& options = {});
/// Checksummed file, mapped into memory when read. parse_error on damage.
expected<void> save_lsa(const embedder& e, const std::filesystem::path& file);
expected<std::unique_ptr<embedder>> load_lsa(const std::filesystem::path& file);

struct embedding_config {
  std::string kind = "lsa";           ///< "lsa", "http"
  std::string base_url, model;        ///< http: POST base_url/embeddings
  std::string key_env = "OPENAI_API_KEY";
  int dimension = 0;                  ///< http: 0 = as the first answer says; another one later is an error
  int batch = 64;
  int retries = 4;
  double timeout_seconds = 60;
  double weight = 0.5;                ///< of the cosine in the fused score (docs/knowledge.md)
  bool use_proxy = false;
};
PRAGMA_JSON(embedding_config, kind, base_url, model, key_env, dimension, batch, retries, timeout_seconds, weight, use_proxy)
/// As parse_llm_config(): unknown keys are errors with the nearest known one, keys that start with "_" are comments.
expected<embedding_config> parse_embedding_config(std::string_view text, std::string_view what);
/// One probing exchange finds the dimension. Errors: remote_failed (status and the endpoint's message), timeout, parse_error.
expected<std::unique_ptr<embedder>> http_embedder(const embedding_config& config, const std::atomic<bool>* cancel = nullptr);

} // namespace pragma
