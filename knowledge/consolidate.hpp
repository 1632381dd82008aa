// Summaries of many segments -> one entry a metric (the paper's second stage, III.B). Pure functions over plain data, deterministic in
// the order of what they are given.
#pragma once

#include "crawler/records.hpp"
#include "knowledge/entry.hpp"
#include "knowledge/retrieval.hpp"

#include <filesystem>
#include <map>
#include <set>

namespace pragma {

/// Collects claims and gives the entries. Starter entries first, then claims in order of segment.
class consolidation {
public:
  consolidation() = default;
  /// `words`: name_pieces spells names out.
  explicit consolidation(const glossary& words);
  /// An entry that we wrote ourselves leads where it says something; documentation fills what it leaves open, adds its sources, and
  /// where it contradicts, both stand (entry::conflicts).
  void add_starter(entry e);
  /// `hardware`: what the source or the page is about, for claims that name none.
  void add(const segment& from, const summary& what, source_trust trust = source_trust::vendor, const std::vector<std::string>& hardware = {});
  /// In order of id.
  std::vector<entry> finish();

private:
  /// "Utilization" of one table is not that of another: the second is named "Utilization (L2 cache)" after its heading.
  claim qualified(const segment& from, claim c);
  void resolve_references();
  std::string spelled_out(const std::string& name) const;
  std::map<std::string, std::string> pieces_;
  std::set<std::string> listed_;                      ///< ids that a catalogue names: they are metrics, described or not
  std::set<std::string> defined_;                     ///< ids of which some text says what they are, and not only how to read them
  entry& place_for(const std::string& profiler, const claim& c, source_trust trust);
  std::map<std::string, entry> entries_;              ///< by id
  std::map<std::string, std::string> ids_of_aliases_; ///< "profiler/alias" -> id
  std::map<std::string, std::string> tables_;         ///< id -> heading of the table whose row told it first
};

/// Reads knowledge/starter/*.json. A mistake in a file is an error that names it.
expected<std::vector<entry>> read_starter(const std::filesystem::path& folder);

} // namespace pragma
