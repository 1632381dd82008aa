#include "knowledge/consolidate.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "embeddings/tokens.hpp"

#include <algorithm>

namespace pragma {

namespace {

constexpr size_t max_sources = 12;      ///< of one entry; the first ones in order of page
constexpr size_t max_conflicts = 8;
constexpr size_t max_related = 24, max_questions = 8;
constexpr size_t max_text_bytes = 1200; ///< of meaning, measurement, reading each
constexpr uint64_t max_starter_bytes = 8u << 20;

std::string folded(std::string_view text) {
  std::string out;
  for (const char c : text) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

/// Without punctuation, spaces and case: to tell whether two texts say the same.
std::string essence(std::string_view text) {
  std::string out;
  for (const char c : folded(text))
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80) out += c;
  return out;
}

/// "percent" and "%" are one unit.
std::string unit_class(const std::string& unit) {
  const auto u = essence(unit);
  if (unit.find('%') != std::string::npos || u.starts_with("percent") || u == "pct") return "%";
  if (u == "cycle" || u == "cycles") return "cycle";
  if (u == "byte" || u == "bytes" || u == "b") return "byte";
  if (u == "ns" || u.starts_with("nanosecond") || u == "nsecond") return "ns";
  if (u == "s" || u == "second" || u == "seconds") return "s";
  return u;
}

void add_unique(std::vector<std::string>& list, const std::string& value, size_t most = max_related) {
  if (value.empty() || list.size() >= most) return;
  for (const auto& v : list)
    if (folded(v) == folded(value)) return;
  list.push_back(value);
}

std::string shortened(const std::string& text) {
  if (text.size() <= max_text_bytes) return text;
  size_t end = max_text_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end; // not in the middle of a character
  const auto stop = text.rfind(". ", end);
  return stop != std::string::npos && stop > max_text_bytes / 2 ? text.substr(0, stop + 1) : text.substr(0, end) + " ...";
}

void note_conflict(entry& e, const char* field, const std::string& value, const std::string& url) {
  if (e.conflicts.size() >= max_conflicts) return;
  for (const auto& c : e.conflicts)
    if (c.field == field && essence(c.value) == essence(value)) return;
  e.conflicts.push_back({field, value, url});
}

/// What was there first stays. Two sentences about one metric complete each other as a rule, so that a second text is taken where
/// the first says nothing; only units can be seen to contradict.
void fill(std::string& field, const std::string& value) {
  if (field.empty()) field = shortened(value);
}

} // namespace

/// Words of a language, as some tools name metrics in their tables ("Hit Rate", "Utilization"), and no identifier.
bool plain_words(const std::string& name) {
  constexpr size_t shortest_word = 6; // "IPC", "Bcm" and "cycles" are names wherever they stand
  if (name.find_first_of("_.:%") != std::string::npos) return false;
  const bool capitalised = folded(name) != name && folded(name).substr(1) == name.substr(1);
  return name.find(' ') != std::string::npos || (capitalised && name.size() > shortest_word);
}

std::string entry_id(const std::string& profiler, const std::string& name) { return profiler + "/" + folded(name); }

consolidation::consolidation(const glossary& words) {
  for (const auto& [piece, meaning] : words.name_pieces) pieces_.emplace(piece, join(meaning, " "));
}

std::string consolidation::spelled_out(const std::string& name) const {
  std::string words;
  if (name.find_first_of("_.") == std::string::npos) return words;
  for (const auto& piece : pieces_of(name)) {
    const auto known = pieces_.find(piece);
    words += (words.empty() ? "" : " ") + (known == pieces_.end() ? piece : known->second);
  }
  return words;
}

void consolidation::add_starter(entry e) {
  e.id = entry_id(e.profiler, e.name);
  e.trust = source_trust::shipped;
  for (const auto& alias : e.aliases) ids_of_aliases_.emplace(entry_id(e.profiler, alias), e.id);
  entries_[e.id] = std::move(e);
}

claim consolidation::qualified(const segment& from, claim c) {
  if (from.kind != "row" || c.kind != "metric" || c.meaning.empty() || from.headings.empty() || !plain_words(c.name)) return c;
  const auto id = entry_id(from.profiler, c.name);
  const auto& heading = from.headings.back();
  const auto [first, is_first] = tables_.emplace(id, heading);
  if (is_first || first->second == heading) return c;
  if (const auto known = entries_.find(id); known != entries_.end() && essence(known->second.meaning) != essence(shortened(c.meaning)))
    c.name += " (" + heading + ")";
  return c;
}

entry& consolidation::place_for(const std::string& profiler, const claim& c, source_trust trust) {
  const auto owner = c.kind == "concept" ? std::string() : profiler;
  auto id = entry_id(owner, c.name);
  if (!entries_.contains(id))
    if (const auto known = ids_of_aliases_.find(id); known != ids_of_aliases_.end()) id = known->second;
  auto& e = entries_[id];
  if (e.id.empty()) {
    e.id = id;
    e.profiler = owner;
    e.name = c.name;
    e.kind = c.kind;
    e.trust = trust;
  }
  return e;
}

void consolidation::add(const segment& from, const summary& what, source_trust trust, const std::vector<std::string>& hardware) {
  const auto by = what.note.empty() ? what.by : "extractive; refused: " + what.by;
  const auto url = from.anchor.empty() ? from.url : from.url + "#" + from.anchor;
  for (const auto& told : what.claims) {
    if (told.name.empty()) continue;
    const auto c = qualified(from, told);
    auto& e = place_for(from.profiler, c, trust);
    if (from.kind == "catalogue") listed_.insert(e.id);
    if (from.kind != "prose" || !c.meaning.empty()) defined_.insert(e.id);
    if (folded(e.name) != folded(told.name)) add_unique(e.aliases, told.name);
    if (!c.unit.empty()) {
      if (e.unit.empty()) e.unit = c.unit;
      else if (unit_class(e.unit) != unit_class(c.unit)) note_conflict(e, "unit", c.unit, url);
    }
    if (e.meaning.empty()) e.summary = c.summary;
    fill(e.meaning, c.meaning);
    fill(e.measurement, c.measurement);
    fill(e.reading, c.reading);
    for (const auto& d : c.diagnoses) add_unique(e.diagnoses, d);
    for (const auto& r : c.related)
      if (folded(r) != folded(e.name)) add_unique(e.related, r);
    for (const auto& q : c.questions) add_unique(e.questions, q, max_questions);
    if (e.trust != source_trust::shipped) // ours say themselves for which hardware they are
      for (const auto& h : c.hardware.empty() ? hardware : c.hardware) add_unique(e.hardware, h);
    const bool cited = std::any_of(e.sources.begin(), e.sources.end(),
                                  [&](const entry_source& s) { return s.url == url && s.quote == c.quote; });
    if (!cited && e.sources.size() < max_sources) e.sources.push_back({url, from.id, c.quote, from.fetched, by});
  }
}

/// An entry that only names an event which others describe (the kernel's ArchStdEvent, without the shared file) says what they say.
void consolidation::resolve_references() {
  std::map<std::string, const entry*> described; // by folded name and alias; the most trusted
  for (const auto& [id, e] : entries_) {
    if (e.meaning.empty() || e.kind != "metric") continue;
    auto names = e.aliases;
    names.push_back(e.name);
    for (const auto& name : names) {
      auto& best = described[folded(name)];
      if (!best || best->trust < e.trust) best = &e;
    }
  }
  for (auto& [id, e] : entries_) {
    if (!e.meaning.empty() || !e.measurement.empty() || !e.reading.empty() || e.kind != "metric") continue;
    const auto known = described.find(folded(e.name));
    if (known == described.end()) continue;
    const auto& from = *known->second;
    e.summary = from.summary;
    e.meaning = from.meaning;
    e.measurement = from.measurement;
    e.reading = from.reading;
    e.diagnoses = from.diagnoses;
    if (e.unit.empty()) e.unit = from.unit;
    add_unique(e.related, from.name);
    if (!from.sources.empty()) e.sources.push_back(from.sources.front());
  }
}

std::vector<entry> consolidation::finish() {
  resolve_references();
  std::vector<entry> all;
  all.reserve(entries_.size());
  for (auto& [id, e] : entries_) {
    if (e.kind == "metric") e.spelled = spelled_out(e.name);
    // Documentation that only names an event, or describes it by its name ("L2_RQSTS.HWPF_MISS"), is spelt out.
    const bool only_named = e.meaning.empty() ? e.measurement.empty() && e.reading.empty() : essence(e.meaning) == essence(e.name);
    if (only_named && !pieces_.empty() && listed_.contains(id))
      e.meaning = e.summary = (e.spelled.empty() ? folded(e.name) : e.spelled) + " (its documentation only names it)";
    if (e.meaning.empty() && ((e.measurement.empty() && e.reading.empty()) || !defined_.contains(id))) continue; // a name alone, or remarks on what nobody explains
    // A name with a roll-up suffix belongs to its base metric's family.
    const auto dot = e.name.find('.');
    if (e.kind == "metric" && e.name.find("__") != std::string::npos && dot != std::string::npos)
      e.family = entry_id(e.profiler, e.name.substr(0, dot));
    all.push_back(std::move(e));
  }
  entries_.clear();
  return all;
}

expected<std::vector<entry>> read_starter(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code problem;
  for (const auto& file : std::filesystem::directory_iterator(folder, problem))
    if (file.path().extension() == ".json") files.push_back(file.path());
  if (problem) return fail(ec::io_error, "cannot read the starter compendium in " + folder.string() + ": " + problem.message());
  std::sort(files.begin(), files.end());
  std::vector<entry> all;
  for (const auto& file : files) {
    auto text = read_file(file, max_starter_bytes);
    if (!text) return fail(text.error());
    auto parsed = parse_json(*text, file.string());
    if (!parsed) return fail(parsed.error());
    auto top = only_known_keys(*parsed, {"profiler", "entries"}, file.string());
    if (!top) return fail(top.error());
    auto entries = from_json_value<std::vector<entry>>(top->value("entries", json::array()), file.string());
    if (!entries) return fail(entries.error());
    const auto profiler = top->value("profiler", "");
    for (auto& e : *entries) {
      e.profiler = profiler;
      for (auto& s : e.sources)
        if (s.by.empty()) s.by = "starter " + file.filename().string();
      if (e.sources.empty()) e.sources.push_back({"starter:" + file.filename().string(), "", "", "", "starter " + file.filename().string()});
      all.push_back(std::move(e));
    }
  }
  return all;
}

} // namespace pragma
