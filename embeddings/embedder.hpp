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
  /// Fitted on at most so many texts, evenly spread over those given; the others are embedded by the same model. More teach
  /// little and cost time and memory in proportion.
  size_t max_texts = 20'000;
  int shortest_gram = 3, longest_gram = 5;
  uint64_t seed = 1;                  ///< of the randomised SVD (Halko, Martinsson, Tropp 2011)
};
/// Words and character n-grams, tf-idf, truncated SVD. Deterministic for the same texts and options.
expected<std::unique_ptr<embedder>> fit_lsa(std::span<const std::string> texts, const lsa_options& options = {},
                                            const std::atomic<bool>* cancel = nullptr);
/// Checksummed file, mapped into memory when read. parse_error on damage; without `verify` only the header's checksum and
/// every size are checked, which takes no time and leaves a flipped byte elsewhere to falsify a number, never an address.
expected<void> save_lsa(const embedder& e, const std::filesystem::path& file);
expected<std::unique_ptr<embedder>> load_lsa(const std::filesystem::path& file, bool verify = true);

struct embedding_config {
  std::string kind = "lsa";           ///< "lsa", "http"
  std::string base_url, model;        ///< http: POST base_url/embeddings
  std::string key_env = "OPENAI_API_KEY";
  int dimension = 0;                  ///< http: 0 = as the first answer says; another one later is an error
  int batch = 64;
  int retries = 4;                    ///< after 429, 500, 502, 503, 504, timeouts, resets and answers that are not JSON
  double retry_seconds = 1;           ///< first wait; doubles, with jitter; Retry-After goes before
  double timeout_seconds = 60;        ///< one try
  double weight = 0.5;                ///< of the cosine in the fused score (docs/knowledge.md)
  bool use_proxy = false;
};
PRAGMA_JSON(embedding_config, kind, base_url, model, key_env, dimension, batch, retries, retry_seconds, timeout_seconds,
            weight, use_proxy)
/// As parse_llm_config(): unknown keys are errors with the nearest known one, keys that start with "_" are comments.
expected<embedding_config> parse_embedding_config(std::string_view text, std::string_view what);
expected<void> check_embedding_config(const embedding_config& config);
/// Where config.dimension is 0, one probing exchange finds it. Errors: remote_failed (status and the endpoint's message, a wrong
/// number of vectors or of dimensions), timeout, interrupted. The key is sent and never written.
expected<std::unique_ptr<embedder>> http_embedder(const embedding_config& config, const std::atomic<bool>* cancel = nullptr);

} // namespace pragma
