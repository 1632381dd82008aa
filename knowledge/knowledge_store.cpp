#include "knowledge/knowledge_store.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/utc.hpp"
#include "knowledge/record_store.hpp"

#include <cstdio>
#include <unordered_set>

namespace pragma {

namespace {

constexpr int knowledge_schema = 1;
constexpr size_t write_buffer_bytes = 16u << 20;
const std::string manifests_ = "manifests", crawls = "crawls", pages_ = "pages", segments_ = "segments", summaries_ = "summaries",
                  entries_ = "entries", compendium = "compendium";
const std::string state_key = "state";

record_store_options knowledge_options() {
  record_store_options o;
  o.what = "knowledge store";
  o.families = {manifests_, crawls, pages_, segments_, summaries_, entries_, compendium};
  o.schema_version = knowledge_schema;
  o.made_by = "`pragma kb build` makes one";
  o.while_locked = "wait until it has finished or stop it; `pragma ask` and `pragma kb show` work meanwhile";
  o.when_damaged = "nothing was changed. Everything in it was made from the documentation: move the folder away and run `pragma kb build`; "
                   "`pragma kb import FILE` brings back what `pragma kb export` saved";
  o.after_failure = "Free space or mend the disk, then run `pragma kb build` again: it goes on where it stopped";
  o.write_buffer_bytes = write_buffer_bytes;
  return o;
}

template <class T> std::string encode(const T& value) { return json(value).dump(-1, ' ', false, json::error_handler_t::replace); }

template <class T> expected<T> decode(std::string_view text, const std::string& what) {
  auto value = parse_json(text, what + " in the knowledge store");
  if (!value) return fail(value.error());
  return from_json_value<T>(*value, what + " in the knowledge store");
}

// profiler \0 page \0 place: segments of one page lie together, in order.
std::string page_key(const std::string& profiler, const std::string& url) { return profiler + '\0' + url; }
std::string segment_key(const std::string& profiler, const std::string& origin, size_t place) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%08zu", place);
  return profiler + '\0' + origin + '\0' + digits;
}
std::string summary_key(const std::string& segment, const std::string& by) { return segment + '\0' + by; }

} // namespace

struct knowledge_store::impl {
  record_store records;

  template <class T> expected<std::optional<T>> get(const std::string& family, const std::string& key, const std::string& what) const {
    auto text = records.get(family, key, what);
    if (!text) return fail(text.error());
    if (!*text) return std::optional<T>{};
    auto value = decode<T>(**text, what);
    if (!value) return fail(value.error());
    return std::optional<T>(std::move(*value));
  }
  template <class T> expected<std::vector<T>> all(const std::string& family, const std::string& prefix, const std::string& what) const {
    std::vector<T> found;
    auto read = records.scan(family, prefix, what, [&](std::string_view, std::string_view text) -> expected<void> {
      auto value = decode<T>(text, what);
      if (!value) return fail(value.error());
      found.push_back(std::move(*value));
      return {};
    });
    if (!read) return fail(read.error());
    return found;
  }
};

expected<knowledge_store> knowledge_store::open(const std::filesystem::path& folder, mode m) {
  auto records = record_store::open(folder, m == mode::read_only ? record_store::mode::read_only : record_store::mode::read_write, knowledge_options());
  if (!records) return fail(records.error());
  return knowledge_store(std::make_unique<impl>(impl{std::move(*records)}));
}

knowledge_store::knowledge_store(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
knowledge_store::knowledge_store(knowledge_store&&) noexcept = default;
knowledge_store& knowledge_store::operator=(knowledge_store&&) noexcept = default;
knowledge_store::~knowledge_store() = default;

expected<void> knowledge_store::put_manifest(const profiler_manifest& m) {
  return impl_->records.write("register profiler " + m.name, [&](record_store::batch& b) { b.put(manifests_, m.name, encode(m)); });
}

expected<std::vector<profiler_manifest>> knowledge_store::manifests() const {
  return impl_->all<profiler_manifest>(manifests_, "", "a registered profiler");
}

expected<void> knowledge_store::remove_profiler(const std::string& profiler, bool keep_manifest) {
  return impl_->records.write("remove profiler " + profiler, [&](record_store::batch& b) {
    if (!keep_manifest) b.remove(manifests_, profiler);
    b.remove(crawls, profiler);
    b.remove_prefix(pages_, profiler + '\0');
    b.remove_prefix(segments_, profiler + '\0');
  });
}

expected<std::vector<page_record>> knowledge_store::pages(const std::string& profiler) {
  return impl_->all<page_record>(pages_, profiler + '\0', "a page of " + profiler);
}

expected<void> knowledge_store::commit(const std::string& profiler, const page_record& page, const std::optional<std::vector<segment>>& segments,
                                       const std::vector<page_record>& found) {
  return impl_->records.write("record page " + printable(page.url), [&](record_store::batch& b) {
    b.put(pages_, page_key(profiler, page.url), encode(page));
    for (const auto& f : found) b.put(pages_, page_key(profiler, f.url), encode(f));
    if (!segments) return;
    b.remove_prefix(segments_, profiler + '\0' + page.url + '\0');
    for (size_t i = 0; i < segments->size(); ++i) b.put(segments_, segment_key(profiler, page.url, i), encode((*segments)[i]));
  }, false); // RocksDB's log has it before the next page: a killed process loses nothing, and a page can be had again
}

expected<json> knowledge_store::crawl_state(const std::string& profiler) {
  auto found = impl_->get<json>(crawls, profiler, "the crawl of " + profiler);
  if (!found) return fail(found.error());
  return *found ? std::move(**found) : json(nullptr);
}

expected<void> knowledge_store::put_crawl_state(const std::string& profiler, const json& state) {
  return impl_->records.write("record the crawl of " + profiler, [&](record_store::batch& b) { b.put(crawls, profiler, encode(state)); });
}

expected<void> knowledge_store::each_segment(const std::string& profiler, const std::function<expected<void>(segment)>& take) const {
  return impl_->records.scan(segments_, profiler + '\0', "the segments of " + profiler, [&](std::string_view, std::string_view text) -> expected<void> {
    auto s = decode<segment>(text, "a segment of " + profiler);
    if (!s) return fail(s.error());
    return take(std::move(*s));
  });
}

expected<std::vector<std::string>> knowledge_store::profilers_with_segments() const {
  std::vector<std::string> names;
  auto read = impl_->records.scan(segments_, "", "the segments", [&](std::string_view key, std::string_view) -> expected<void> {
    const auto name = key.substr(0, key.find('\0'));
    if (names.empty() || names.back() != name) names.emplace_back(name);
    return {};
  });
  if (!read) return fail(read.error());
  return names;
}

expected<void> knowledge_store::put_catalogue(const std::string& profiler, const std::string& origin, const std::vector<segment>& segments) {
  return impl_->records.write("record the catalogue of " + profiler, [&](record_store::batch& b) {
    b.remove_prefix(segments_, profiler + '\0' + origin + '\0');
    for (size_t i = 0; i < segments.size(); ++i) b.put(segments_, segment_key(profiler, origin, i), encode(segments[i]));
  });
}

expected<std::optional<summary>> knowledge_store::get_summary(const std::string& segment, const std::string& by) const {
  return impl_->get<summary>(summaries_, summary_key(segment, by), "a summary");
}

expected<void> knowledge_store::put_summaries(const std::vector<summary>& made) {
  if (made.empty()) return {};
  return impl_->records.write("record summaries", [&](record_store::batch& b) {
    for (const auto& s : made) b.put(summaries_, summary_key(s.segment, s.by), encode(s));
  });
}

expected<int64_t> knowledge_store::collect_garbage() {
  std::unordered_set<std::string> alive;
  auto read = impl_->records.scan(segments_, "", "the segments", [&](std::string_view, std::string_view text) -> expected<void> {
    auto s = decode<segment>(text, "a segment");
    if (!s) return fail(s.error());
    alive.insert(std::move(s->id));
    return {};
  });
  if (!read) return fail(read.error());
  std::vector<std::string> dead;
  read = impl_->records.scan(summaries_, "", "the summaries", [&](std::string_view key, std::string_view) -> expected<void> {
    if (!alive.contains(std::string(key.substr(0, key.find('\0'))))) dead.emplace_back(key);
    return {};
  });
  if (!read) return fail(read.error());
  if (dead.empty()) return 0;
  auto removed = impl_->records.write("remove summaries", [&](record_store::batch& b) {
    for (const auto& key : dead) b.remove(summaries_, key);
  });
  if (!removed) return fail(removed.error());
  return static_cast<int64_t>(dead.size());
}

expected<compendium_state> knowledge_store::put_entries(const std::vector<entry>& all, const std::string& summarised_by) {
  auto before = state();
  if (!before) return before;
  std::string digests;
  std::vector<std::string> encoded;
  encoded.reserve(all.size());
  for (const auto& e : all) {
    encoded.push_back(encode(e));
    auto undated = e; // the same text fetched later is the same knowledge
    for (auto& s : undated.sources) s.fetched.clear();
    digests += sha256_hex(encode(undated));
  }
  compendium_state after = *before;
  after.content_hash = sha256_hex(digests);
  after.entries = static_cast<int64_t>(all.size());
  after.built = utc_now();
  after.summarised_by = summarised_by;
  const bool changed = after.content_hash != before->content_hash;
  if (changed) ++after.generation;
  auto written = impl_->records.write("record the compendium", [&](record_store::batch& b) {
    if (changed) {
      b.remove_prefix(entries_, "");
      for (size_t i = 0; i < all.size(); ++i) b.put(entries_, all[i].id, encoded[i]);
    }
    b.put(compendium, state_key, encode(after));
  });
  if (!written) return fail(written.error());
  return after;
}

expected<compendium_state> knowledge_store::state() const {
  auto found = impl_->get<compendium_state>(compendium, state_key, "the compendium's state");
  if (!found) return fail(found.error());
  return *found ? std::move(**found) : compendium_state{};
}

expected<std::optional<entry>> knowledge_store::get_entry(const std::string& id) const {
  return impl_->get<entry>(entries_, id, "entry " + printable(id));
}

expected<void> knowledge_store::each_entry(const std::function<expected<void>(const entry&)>& take) const {
  return impl_->records.scan(entries_, "", "the entries", [&](std::string_view key, std::string_view text) -> expected<void> {
    auto e = decode<entry>(text, "entry " + printable(key));
    if (!e) return fail(e.error());
    return take(*e);
  });
}

expected<std::vector<std::string>> knowledge_store::entry_ids() const {
  std::vector<std::string> ids;
  auto read = impl_->records.scan(entries_, "", "the entries", [&](std::string_view key, std::string_view) -> expected<void> {
    ids.emplace_back(key);
    return {};
  });
  if (!read) return fail(read.error());
  return ids;
}

expected<void> knowledge_store::verify() const { return impl_->records.verify(); }

} // namespace pragma
