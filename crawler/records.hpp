// What a crawl works on, as plain data: the source that a user registered, its pages with their state, the segments cut
// from them and the summaries of those. Stored in RocksDB by knowledge/, through the crawl_store of crawl.hpp.
#pragma once

#include "base/json.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pragma {

/// One profiler's documentation, and how far a crawl may go.
struct doc_source {
  std::string profiler;
  std::vector<std::string> docs;      ///< "https://host/path/", "/usr/share/doc/x/html", "file.pdf", "man:perf-stat.1"
  std::vector<std::string> allow;     ///< patterns (`*` matches anything) on URL or path; empty: below the folder of each of `docs`
  std::vector<std::string> deny;      ///< wins over allow
  bool allow_private = false;         ///< loopback, private and link-local addresses
  bool robots = true;                 ///< honour robots.txt (RFC 9309)
  int64_t max_pages = 2000;
  int max_depth = 8;                  ///< links from a root
  uint64_t max_page_bytes = 16u << 20; ///< decompressed
  uint64_t max_bytes = 512u << 20;    ///< of the whole crawl, decompressed
  double max_seconds = 1800;
  double delay_seconds = 0.5;         ///< between two requests to one host; robots.txt may ask for more
};
PRAGMA_JSON(doc_source, profiler, docs, allow, deny, allow_private, robots, max_pages, max_depth, max_page_bytes, max_bytes,
            max_seconds, delay_seconds)

enum class page_state {
  queued,    ///< found, not yet fetched
  fetched,   ///< its segments are stored
  unchanged, ///< fetched before; the server or the hash says that it is the same
  excluded,  ///< reason: the rule that left it out
  failed,    ///< reason: what happened; segments of an earlier crawl stay
  gone       ///< 404 or 410, or no longer linked after a complete crawl; its segments are removed
};
NLOHMANN_JSON_SERIALIZE_ENUM(page_state, {{page_state::queued, "queued"},
                                          {page_state::fetched, "fetched"},
                                          {page_state::unchanged, "unchanged"},
                                          {page_state::excluded, "excluded"},
                                          {page_state::failed, "failed"},
                                          {page_state::gone, "gone"}})

struct page_record {
  std::string url;                    ///< normalised, without fragment; for local files file:///absolute/path, man:page.section
  page_state state = page_state::queued;
  std::string reason;                 ///< one sentence for excluded, failed, gone; empty otherwise
  int64_t generation = 0;             ///< the crawl that set this state
  int depth = 0;                      ///< links from a root
  std::string from;                   ///< the page or sitemap that named it first; empty for a root
  int status = 0;                     ///< HTTP
  std::string final_url;              ///< of an excluded page: the page it is read as (redirect, same content); else empty
  std::string etag, last_modified, content_hash, content_type, charset, title;
  std::string fetched;                ///< ISO time
  uint64_t bytes = 0;                 ///< decompressed
  int64_t segments = 0;
  std::string links;                  ///< pages in scope that it named, 16 hex digits each (link_id()): an unchanged page brings none
};
PRAGMA_JSON(page_record, url, state, reason, generation, depth, from, status, final_url, etag, last_modified, content_hash,
            content_type, charset, title, fetched, bytes, segments, links)

/// A table row, definition-list item or catalogue record that names a metric.
struct metric_record {
  std::string name, unit, description;
  std::map<std::string, std::string> fields; ///< other columns, by their header
  std::string kind = "metric";        ///< "metric"; "option": a switch of the tool, with what it does
};
PRAGMA_JSON(metric_record, name, unit, description, fields, kind)

/// A piece of one page that can be understood by itself.
struct segment {
  std::string id;                     ///< segment_id(): the same text under the same headings is never summarised twice
  std::string profiler, url, anchor;  ///< cite as url#anchor
  std::vector<std::string> headings;  ///< from the page's title down
  std::string kind = "prose";         ///< "prose", "row", "definition", "catalogue"
  std::string text;                   ///< plain UTF-8, without markup, control, zero-width and bidi characters
  bool has_record = false;
  metric_record record;
  std::string fetched;                ///< ISO time
  int64_t unread = 0;                 ///< rows of tables and items of definition lists in `text` that define nothing, as far as was understood
};
PRAGMA_JSON(segment, id, profiler, url, anchor, headings, kind, text, has_record, record, fetched, unread)

/// SHA-256 of profiler, headings, kind, text and record: not of where it was found, so that a page may move.
std::string segment_id(const segment& s);

/// What one segment says of one metric or concept. Empty: it does not say.
struct claim {
  std::string name, unit;
  std::string kind = "metric";        ///< "metric", "concept", "option"
  std::string summary;                ///< `meaning` in one sentence
  std::string meaning;                ///< what it describes: the whole paragraph, without what stands in the two below
  std::string measurement;            ///< how it is measured or computed
  std::string reading;                ///< what high and low values tell
  std::vector<std::string> diagnoses; ///< names of bottleneck classes (diagnosis/finding.hpp) that it reveals
  std::vector<std::string> related;   ///< other metrics that the segment names with it
  std::vector<std::string> hardware;
  std::vector<std::string> questions; ///< a model's: how somebody asks for it who does not know the passage's words; only to be found by
  std::string quote;                  ///< a span of the segment's text, word for word
};
PRAGMA_JSON(claim, name, unit, kind, summary, meaning, measurement, reading, diagnoses, related, hardware, questions, quote)

struct summary {
  std::string segment;                ///< id
  std::string by;                     ///< "extractive 1", "openai:gpt-x prompt 1": who and which version
  std::string note;                   ///< why a model's summary was refused; empty otherwise
  std::vector<claim> claims;          ///< none: the segment tells nothing about metrics
};
PRAGMA_JSON(summary, segment, by, note, claims)

} // namespace pragma
