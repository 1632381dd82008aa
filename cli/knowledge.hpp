// What the knowledge commands share: paths, configuration of models and embeddings, printing entries.
#pragma once

#include "cli/terminal.hpp"
#include "knowledge/library.hpp"

#include <CLI/CLI.hpp>
#include <memory>

namespace pragma::cli {

/// --llm, --model, --base-url, --embeddings: as the commands that need them offer them.
struct model_options {
  std::string llm_file, model, base_url, command, embeddings;
  void add_to(CLI::App& app);
  /// Null where no model was configured.
  expected<std::optional<llm_config>> chat() const;
  /// --embeddings FILE, else $PRAGMA_HOME/embeddings.json where it exists, else lsa.
  expected<embedding_config> embedding() const;
};

/// Shipped ones, with the user's own beside or over them.
expected<std::vector<profiler_manifest>> all_manifests(const library_paths& paths);
void print_entry(terminal& out, const entry& e);
/// "https://host/page.html#anchor", shortened for a line.
std::string first_source(const entry& e);

} // namespace pragma::cli
