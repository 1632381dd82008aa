// The compendium's common schema: one entry a metric or concept (the paper's second stage, III.B). Starter entries
// (knowledge/starter/*.json), crawled ones and catalogues all end here.
#pragma once

#include "base/json.hpp"

#include <string>
#include <vector>

namespace pragma {

struct entry_source {
  std::string url;                    ///< with #anchor; "starter:FILE" for what we wrote ourselves
  std::string segment;                ///< id, empty for the starter
  std::string quote;                  ///< word for word from the segment; empty for the starter
  std::string fetched;                ///< ISO time
  std::string by;                     ///< summary::by
};
PRAGMA_JSON(entry_source, url, segment, quote, fetched, by)

/// Whose word counts where several sources have an entry of the same name.
enum class source_trust {
  user,      ///< documentation that the user registered: a page may say anything
  vendor,    ///< documentation of a profiler that is shipped with PRAGMA
  shipped,   ///< what we wrote ourselves
  preferred  ///< registered with --prefer
};
NLOHMANN_JSON_SERIALIZE_ENUM(source_trust, {{source_trust::user, "user"},
                                            {source_trust::vendor, "vendor"},
                                            {source_trust::shipped, "shipped"},
                                            {source_trust::preferred, "preferred"}})

/// Two sources that say different things: both are shown.
struct entry_conflict {
  std::string field, value, url;
};
PRAGMA_JSON(entry_conflict, field, value, url)

struct entry {
  std::string id;                     ///< entry_id(profiler, name)
  std::string profiler;               ///< "perf", "ncu", ...; "" for concepts
  std::string name;
  std::vector<std::string> aliases;
  std::string unit;                   ///< "1/s", "%", "cycles", "" when not said
  std::string kind = "metric";        ///< "metric", "concept", "option"
  std::vector<std::string> hardware;  ///< "Zen 3", "sm_90"; empty: any
  std::string summary;                ///< `meaning` in one sentence
  std::string meaning, measurement;
  std::vector<std::string> diagnoses; ///< names of bottleneck classes
  std::string reading;                ///< what high and low mean
  std::vector<std::string> related;   ///< names
  std::vector<entry_source> sources;
  std::vector<entry_conflict> conflicts;
  std::vector<std::string> questions; ///< a model's: how somebody asks who does not know the page's words; never shown, only to be found by
  std::string spelled;                ///< the words that an identifier's pieces stand for: "LD_BLOCKS" -> "load blocks"
  std::string family;                 ///< entries of one name on many chips; empty: alone
  source_trust trust = source_trust::user; ///< of the source that leads it: among entries of one name the most trusted goes first
};
PRAGMA_JSON(entry, id, profiler, name, aliases, unit, kind, hardware, summary, meaning, measurement, diagnoses, reading, related, sources,
            conflicts, questions, spelled, family, trust)

/// "ncu/smsp__cycles_active": profiler, slash, name with case folded (as written where case alone tells two names apart is not supported).
std::string entry_id(const std::string& profiler, const std::string& name);

} // namespace pragma
