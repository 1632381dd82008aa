// Questions -> ranked entries. The lexical index (SQLite FTS5 over our own tokens) leads, the vectors (FAISS) re-score, by
// score and not by rank; a question that is a name answers with that entry first (measured: docs/knowledge.md). Both indexes are
// projections of the store, checksummed and stamped with its generation; whoever opens a stale or damaged one rebuilds it.
#pragma once

#include "embeddings/embedder.hpp"
#include "knowledge/entry.hpp"

#include <filesystem>
#include <functional>
#include <memory>

namespace pragma {

/// What the machine that asks (or its run) has. Its own metrics go first, then simulated ones, then those of other machines.
struct machine_view {
  std::vector<std::string> hardware;   ///< "AMD", "Zen 3", "sm_90"
  std::vector<std::string> profilers;  ///< that count on one of its backends
  std::vector<std::string> simulators; ///< whose numbers are computed
  bool known() const { return !hardware.empty() || !profilers.empty() || !simulators.empty(); }
};

struct question {
  std::string text;
  size_t count = 5;
  std::string profiler = {}, hardware = {}; ///< scope; empty: what the words of the question say ("in ncu", "on Zen 3")
  machine_view machine = {};
};

struct hit {
  std::string id;                     ///< of the entry
  double score = 0;                   ///< fused, 0 to 1; 1 for an entry that the question names
  double lexical = 0;                 ///< BM25 over the best one's
  double dense = 0;                   ///< cosine
  double scope = 0;                   ///< what the scope added
  std::string why;                    ///< "name", "fuzzy name", "text"
  std::string where;                  ///< "here", "simulated", "elsewhere"; empty: not known, or a concept
  std::vector<std::string> family;    ///< ids of entries that stand behind this one: of its family, or the same event (event_group.hpp)
};
PRAGMA_JSON(hit, id, score, lexical, dense, scope, why, where, family)

struct answer_times {
  double lexical = 0, dense = 0, fusion = 0; ///< seconds
};
PRAGMA_JSON(answer_times, lexical, dense, fusion)

struct found_entries {
  bool in_scope = false;              ///< false: the compendium does not know; `hits` holds the nearest all the same
  std::string why_not;
  double evidence = 0;                ///< best BM25 over the most that the question's words could give
  double known_share = 0;             ///< of the question's words, by their weight, those that some entry has, itself or as the glossary says it
  double fit = 0;                     ///< the best candidate's score of rerank.hpp; in_scope rests on these three and the number of words
  double similarity = 0;              ///< the best cosine
  std::string profiler, hardware;     ///< the scope that was used
  std::vector<std::string> expansions; ///< "llc -> last level cache"
  std::vector<std::string> notes;     ///< "without vectors: the endpoint does not answer ..."
  std::vector<hit> hits;
  answer_times seconds;
};
PRAGMA_JSON(found_entries, in_scope, why_not, evidence, known_share, fit, similarity, profiler, hardware, expansions, notes, hits, seconds)

/// configs/glossary.json: abbreviations, synonyms, and the words that name profilers and hardware.
struct glossary {
  std::vector<std::pair<std::string, std::vector<std::string>>> expansions; ///< "llc" -> {"last level cache", "l3 cache"}
  std::vector<std::pair<std::string, std::vector<std::string>>> same;       ///< "evicted" -> {"victim", "replaced"}: each is said for the others
  std::vector<std::pair<std::string, std::vector<std::string>>> profilers;  ///< "ncu" -> {"nsight compute", ...}
  std::vector<std::pair<std::string, std::vector<std::string>>> hardware;   ///< "zen 3" -> {"milan", "family 19h"}
  std::vector<std::pair<std::string, std::vector<std::string>>> makers;     ///< "amd" -> {"zen 3", "zen 4"}: hardware that a wider word means
  std::vector<std::pair<std::string, std::vector<std::string>>> name_pieces; ///< "rd" -> {"read"}: what events' names are made of
};
expected<glossary> parse_glossary(std::string_view text, std::string_view what);

struct index_info {
  int64_t entries = 0, generation = 0;
  std::string embedder;               ///< embedder::name()
  std::string vectors;                ///< "flat", "hnsw": chosen by size
  uint64_t bytes = 0;
};
PRAGMA_JSON(index_info, entries, generation, embedder, vectors, bytes)

/// without_rerank: BM25 and cosine in one sum, as the candidates of `fused` are gathered.
enum class retrieval_mode { fused, without_rerank, lexical_only, dense_only };

class retriever {
public:
  /// Writes the indexes for all entries into a new folder inside `folder`; they count from the moment when meta.json, which
  /// names that folder, is renamed into place, and the old ones are removed after. `next` gives the entries one by one and
  /// nullptr at the end; it is called twice over (restarted by `rewind`), so that 100,000 entries need not lie in memory.
  /// Errors: locked (another build), interrupted, io_error, and those of the embedder; the old indexes stay as they were.
  struct corpus {
    std::function<void()> rewind;
    std::function<const entry*()> next;
  };
  static expected<index_info> build(const corpus& entries, int64_t generation, const embedding_config& config,
                                    const std::filesystem::path& folder,
                                    const std::function<void(std::string_view what, int64_t done, int64_t of)>& on_progress = {},
                                    const std::atomic<bool>* cancel = nullptr);
  /// Checks the stamp and, where `verify` is set, every checksum. not_found (none), parse_error (damaged; names the file),
  /// invalid_argument (another generation or another embedder).
  static expected<retriever> open(const std::filesystem::path& folder, int64_t generation, const embedding_config& config,
                                  glossary words, bool verify = false);
  retriever(retriever&&) noexcept;
  retriever& operator=(retriever&&) noexcept;
  ~retriever();

  expected<found_entries> ask(const question& q, retrieval_mode mode = retrieval_mode::fused) const;
  /// Exact name or alias in any case and with any separators, then names whose pieces match; best first.
  expected<std::vector<hit>> find_name(const std::string& name, const std::string& profiler = {}, size_t count = 5) const;
  const index_info& info() const;

private:
  struct impl;
  explicit retriever(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

} // namespace pragma
