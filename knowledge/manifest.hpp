// Profiler manifests: what a user registers and what we ship in configs/profilers/*.json. This room reads the documentation's half;
// how to collect metrics stands in the same file under "collect" and is the business of profilers/.
#pragma once

#include "crawler/records.hpp"

#include <filesystem>

namespace pragma {

/// A tool's own list of its metrics, as a command. Only from a manifest, never from a page.
struct catalogue_command {
  std::vector<std::string> argv;
  std::string format;                 ///< "json", "csv", "yaml", "text"
  bool plain = false;                 ///< its names are complete: collect.names.suffixes are for the other lists (profilers/manifest.hpp)
};
PRAGMA_JSON(catalogue_command, argv, format, plain)

struct manifest_docs {
  std::vector<std::string> roots;     ///< official addresses
  std::vector<std::string> local;     ///< folders, files, "man:NAME.SECTION": read where they are installed
  std::vector<std::string> allow, deny;
  bool allow_private = false;
  double delay_seconds = doc_source{}.delay_seconds;
  int64_t max_pages = doc_source{}.max_pages;
};
PRAGMA_JSON(manifest_docs, roots, local, allow, deny, allow_private, delay_seconds, max_pages)

struct profiler_manifest {
  std::string name;                   ///< lower case letters, digits, '-', '_'
  std::string title;
  std::vector<std::string> backend;   ///< "cpu", "cuda", "rocm", "ascend"
  std::vector<std::string> aliases;   ///< what people call it
  std::vector<std::string> hardware;  ///< what all of its documentation is about: "Zen 3", "sm_90"; empty: the pages say
  bool simulates = false;             ///< its numbers are computed, not counted by the machine (valgrind, llvm-mca)
  bool prefer = false;                ///< its entries go before those of the same name of every other source
  manifest_docs docs;
  std::vector<catalogue_command> catalogue;
  json collect;                       ///< as it stands in the file; null where it has none
  std::string origin = "shipped";     ///< "shipped", "user"
};
PRAGMA_JSON(profiler_manifest, name, title, backend, aliases, hardware, simulates, prefer, docs, catalogue, collect, origin)

/// Unknown keys are errors that name the nearest known one; keys that start with "_" are comments. `what` names the file.
/// `docs_follow`: the caller adds documentation to it and checks the whole (check_manifest()).
expected<profiler_manifest> parse_manifest(std::string_view text, std::string_view what, bool docs_follow = false);
/// All of a folder, in order of name. An unreadable one is an error that names the file.
expected<std::vector<profiler_manifest>> shipped_manifests(const std::filesystem::path& folder);
/// invalid_argument: what is wrong with the name, an address, a pattern.
expected<void> check_manifest(const profiler_manifest& m);
/// What the crawler gets: roots first, then what of `local` is installed. `missing`: local documentation that is not there.
doc_source source_of(const profiler_manifest& m, std::vector<std::string>& missing);

} // namespace pragma
