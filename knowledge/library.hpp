// The compendium for whoever asks: opens store and indexes for reading, and answers. Where nothing was built yet, it builds them from the
// starter entries, so that a fresh install answers. Used by `pragma ask`, `pragma kb show` and the knowledge actor.
#pragma once

#include "knowledge/build.hpp"

namespace pragma {

struct library_paths {
  std::filesystem::path store;        ///< RocksDB's folder
  std::filesystem::path indexes;
  std::filesystem::path starter;      ///< knowledge/starter as it is shipped
  std::filesystem::path glossary;     ///< configs/glossary.json
  std::filesystem::path manifests;    ///< configs/profilers
  /// Below data_home() and share_dir().
  static library_paths usual();
};

/// Profilers that the user registered and that say how to collect on `backend`, as load_request::manifests takes them: without their
/// documentation. Empty where nothing was registered.
expected<std::vector<json>> registered_collectors(const library_paths& paths, const std::string& backend);

/// What this machine has: its processor, and which of the profilers count on a backend that it has.
machine_view view_of_this_machine(const glossary& words, const std::vector<profiler_manifest>& profilers);
expected<glossary> read_glossary(const library_paths& paths);

/// A sentence of a model's answer, and the entries that it rests on.
struct cited_sentence {
  std::string text;
  std::vector<std::string> entries;   ///< ids
};
PRAGMA_JSON(cited_sentence, text, entries)

struct library_answer {
  found_entries found;
  std::vector<entry> entries;         ///< of found.hits, in the same order
  std::vector<cited_sentence> sentences; ///< of a model; empty without one
  std::string note;                   ///< why there is no model's answer although one was asked
  chat_usage usage;
};
PRAGMA_JSON(library_answer, found, entries, sentences, note, usage)

class library {
public:
  /// `may_build`: builds or mends what is missing (not when another process writes the store). Otherwise not_found tells what to run.
  static expected<library> open(const library_paths& paths, const embedding_config& embedding, bool may_build, std::string* built = nullptr);
  library(library&&) noexcept;
  library& operator=(library&&) noexcept;
  ~library();

  /// With a model, the first 50 in its order, and a short answer of which every sentence names entries among the hits; sentences that do not are dropped.
  expected<library_answer> ask(const question& q, chat_model* model = nullptr) const;
  /// The entry of that name (any case, separators or alias), else the nearest ones. Empty: none is near.
  expected<std::vector<entry>> show(const std::string& name, const std::string& profiler = {}, size_t count = 5, bool* exact = nullptr) const;
  compendium_state state() const;
  const index_info& index() const;

private:
  struct impl;
  explicit library(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

} // namespace pragma
