// The whole way from registered documentation to an index that answers: crawl -> segments -> summaries -> entries -> indexes. Each
// stage keeps what it did in the store, so that a build which was killed goes on, and one that has nothing new to do does nothing.
#pragma once

#include "embeddings/embedder.hpp"
#include "knowledge/knowledge_store.hpp"
#include "knowledge/retrieval.hpp"
#include "llm/chat.hpp"

#include <atomic>

namespace pragma {

/// What was found in one source, by the form in which it stood there.
struct source_coverage {
  int64_t metrics = 0, options = 0, concepts = 0; ///< different names
  int64_t rows = 0, definitions = 0, records = 0; ///< segments that define something: rows of tables, items of lists, records of catalogues
  int64_t unread = 0;                   ///< pieces of tables and lists that define nothing
  std::vector<std::string> examples;    ///< "NAME: meaning", three of them
  std::vector<std::string> unread_places; ///< "address: the beginning of what was not read", the first ones
  /// Share of tables and lists that gave nothing.
  double unread_share() const {
    const auto all = rows + definitions + unread;
    return all > 0 ? static_cast<double>(unread) / static_cast<double>(all) : 0;
  }
};
PRAGMA_JSON(source_coverage, metrics, options, concepts, rows, definitions, records, unread, examples, unread_places)

struct build_source_result {
  std::string profiler;
  crawl_result crawl;
  std::vector<std::string> missing;     ///< local documentation that is not installed
  std::vector<std::string> failed;      ///< "URL: reason", the first few
  std::vector<std::string> catalogues;  ///< "perf list: 312 metrics", "ncu: not installed"
  int64_t segments = 0, summarised = 0, cached = 0, refused = 0; ///< refused: a model's summaries that were not grounded
  source_coverage coverage;             ///< what its segments gave
  std::string problem;                  ///< documentation was read, or should have been, and nothing came of it; empty: something did
};
PRAGMA_JSON(build_source_result, profiler, crawl, missing, failed, catalogues, segments, summarised, cached, refused, coverage, problem)

struct build_result {
  std::vector<build_source_result> sources;
  compendium_state compendium;
  index_info index;
  bool changed = false;                 ///< the entries differ from those before
  bool complete = true;                 ///< false: interrupted, or the model's budget ended it; the entries rest on what is there
  std::string reason;
  int64_t garbage = 0;                  ///< summaries that nothing needs any more
  chat_usage usage;
  double crawl_seconds = 0, summary_seconds = 0, entry_seconds = 0, index_seconds = 0;
};
PRAGMA_JSON(build_result, sources, compendium, index, changed, complete, reason, garbage, usage, crawl_seconds, summary_seconds, entry_seconds,
            index_seconds)

using build_progress = std::function<void(const std::string& stage, const std::string& what, int64_t done, int64_t of)>;

struct knowledge_build_options {
  std::vector<profiler_manifest> profilers; ///< to crawl; entries are always made of everything in the store
  std::filesystem::path starter;            ///< folder of starter entries
  std::filesystem::path indexes;            ///< folder of the indexes
  embedding_config embedding;
  glossary words;                           ///< tells the hardware that a page is about
  std::function<std::unique_ptr<chat_model>()> make_model; ///< empty: extractive. One model per worker
  int workers = 4;                          ///< summaries asked for at once
  bool crawl = true;                        ///< false: only summaries, entries and indexes of what is stored
  crawl_options crawling;
  build_progress on_progress;
  const std::atomic<bool>* cancel = nullptr;
};

/// Trouble with a page, a catalogue or one summary is in the result. Errors: the store, the starter files, the indexes, the model where
/// it cannot be used at all.
expected<build_result> build_knowledge(knowledge_store& store, const knowledge_build_options& options);

/// What the segments of one profiler give, as the extractive summariser reads them. `places`: how many unread ones are listed.
expected<source_coverage> coverage_of(const knowledge_store& store, const std::string& profiler, size_t places = 20);

/// Indexes of all entries of the store, for its present generation.
expected<index_info> build_indexes(const knowledge_store& store, const std::filesystem::path& folder, const embedding_config& embedding,
                                   const build_progress& on_progress = {}, const std::atomic<bool>* cancel = nullptr);

/// Opens the indexes for the store's present entries; builds them anew where there are none, or stale or damaged ones, and the
/// store's folder may be written. `rebuilt` tells why.
expected<retriever> open_retriever(const knowledge_store& store, const std::filesystem::path& indexes, const embedding_config& embedding,
                                   const glossary& words, bool may_rebuild, std::string* rebuilt = nullptr);

} // namespace pragma
