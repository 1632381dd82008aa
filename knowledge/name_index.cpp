#include "knowledge/name_index.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "embeddings/tokens.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace pragma {

namespace {

constexpr uint32_t option_flag = 256;
constexpr std::string_view names_kind = "names 2";
constexpr size_t max_name_bytes = 1024; // of an id or name; a longer one is no name
constexpr uint64_t key_seed = 3;

std::string lines_of(const std::vector<std::string>& names) {
  std::string all;
  for (const auto& name : names) {
    auto line = printable(name);
    std::replace(line.begin(), line.end(), '\n', ' ');
    all += line + '\n';
  }
  return all;
}

std::vector<std::string> names_of(std::span<const char> lines) {
  auto names = split(std::string_view(lines.data(), lines.size()), '\n');
  if (!names.empty()) names.pop_back();
  return names;
}

void append_trigrams(std::string_view folded, std::vector<uint32_t>& out) {
  auto at = [&](size_t i) { return i == 0 || i > folded.size() ? 0u : static_cast<unsigned char>(folded[i - 1]); };
  for (size_t i = 0; i + 2 < folded.size() + 2; ++i) out.push_back(at(i) << 16 | at(i + 1) << 8 | at(i + 2)); // with an edge on each side
}

} // namespace

std::string stem_key(std::string_view name) {
  std::string key;
  for (const auto& c : chunks_of(name.substr(0, max_name_bytes)))
    for (const auto& piece : pieces_of(c.text)) key += stem_word(piece);
  return key;
}

void name_writer::add_key(const std::string& key, name_match match) {
  if (!key.empty()) keys_.push_back({hash64(key, key_seed), static_cast<uint32_t>(rows_.size()), match});
}

uint32_t name_writer::number_of(std::unordered_map<std::string, uint32_t>& numbers, std::vector<std::string>& names, const std::string& name) {
  const auto [it, is_new] = numbers.emplace(name, static_cast<uint32_t>(names.size()));
  if (is_new) names.push_back(name);
  return it->second;
}

expected<void> name_writer::add(const entry& e) {
  const auto folded = fold_name(e.name);
  const auto profiler = number_of(profiler_numbers_, profilers_, e.profiler);
  if (e.id.empty() || e.id.size() > max_name_bytes || e.name.size() > max_name_bytes)
    return fail(ec::invalid_argument, "entry '" + printable(e.id.substr(0, 80)) + "' has no id, or an id or name longer than " +
                                          std::to_string(max_name_bytes) + " bytes");
  if (profiler > UINT16_MAX || rows_.size() >= UINT32_MAX - 1) return fail(ec::limit_exceeded, "more profilers or entries than an index can hold");
  add_key(folded, name_match::name);
  if (const auto base = fold_name(base_metric(e.name)); base != folded) add_key(base, name_match::base);
  std::vector<std::string> stems = {stem_key(e.name)};
  for (const auto& alias : e.aliases) {
    add_key(fold_name(alias), name_match::alias);
    if (auto stem = stem_key(alias); std::find(stems.begin(), stems.end(), stem) == stems.end()) stems.push_back(std::move(stem));
  }
  for (const auto& stem : stems) add_key(stem, name_match::stem);
  name_row row;
  row.text = texts_.size();
  row.id_bytes = static_cast<uint16_t>(e.id.size());
  row.name_bytes = static_cast<uint16_t>(e.name.size());
  row.folded_bytes = static_cast<uint16_t>(folded.size());
  texts_ += e.id;
  texts_ += e.name;
  texts_ += folded;
  row.profiler = static_cast<uint16_t>(profiler);
  row.family = number_of(family_numbers_, families_, e.family);
  row.hardware = static_cast<uint32_t>(hardware_.size());
  for (const auto& hardware : e.hardware) hardware_.push_back(number_of(hardware_numbers_, hardware_names_, hardware));
  row.hardware_count = static_cast<uint32_t>(hardware_.size()) - row.hardware;
  row.flags = static_cast<uint32_t>(e.trust) | (e.kind == "option" ? option_flag : 0);
  rows_.push_back(row);
  return {};
}

expected<void> name_writer::write(const std::filesystem::path& file) {
  std::sort(keys_.begin(), keys_.end(), [](const name_key& a, const name_key& b) {
    return std::tie(a.hash, a.match, a.row) < std::tie(b.hash, b.match, b.row);
  });
  // Counting sort of the rows by family; family 0 (alone) stays empty.
  std::vector<uint32_t> starts(families_.size() + 1, 0);
  for (const auto& row : rows_)
    if (row.family > 0) ++starts[row.family + 1];
  for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  std::vector<uint32_t> members(starts.back()), next(starts);
  for (uint32_t row = 0; row < rows_.size(); ++row)
    if (const auto family = rows_[row].family; family > 0) members[next[family]++] = row;

  auto writer = section_writer::create(file, names_kind);
  if (!writer) return fail(writer.error());
  const auto profilers = lines_of(profilers_), hardware_names = lines_of(hardware_names_);
  for (auto&& put : {writer->put("rows", std::span<const name_row>(rows_)), writer->put("keys", std::span<const name_key>(keys_)),
                     writer->put("texts", std::span<const char>(texts_)), writer->put("hardware", std::span<const uint32_t>(hardware_)),
                     writer->put("family_starts", std::span<const uint32_t>(starts)),
                     writer->put("family_rows", std::span<const uint32_t>(members)),
                     writer->put("profilers", std::span<const char>(profilers)),
                     writer->put("hardware_names", std::span<const char>(hardware_names))})
    if (!put) return put;
  return writer->finish();
}

expected<name_index> name_index::open(const std::filesystem::path& path, bool verify) {
  auto file = section_file::open(path, names_kind);
  if (!file) return fail(file.error());
  if (verify)
    if (auto good = file->verify(); !good) return fail(good.error());
  const auto rows = file->section<name_row>("rows");
  const auto keys = file->section<name_key>("keys");
  const auto texts = file->section<char>("texts");
  const auto hardware = file->section<uint32_t>("hardware");
  const auto starts = file->section<uint32_t>("family_starts");
  const auto members = file->section<uint32_t>("family_rows");
  const auto profilers = file->section<char>("profilers");
  const auto hardware_names = file->section<char>("hardware_names");
  if (!rows) return fail(rows.error());
  if (!keys) return fail(keys.error());
  if (!texts) return fail(texts.error());
  if (!hardware) return fail(hardware.error());
  if (!starts) return fail(starts.error());
  if (!members) return fail(members.error());
  if (!profilers) return fail(profilers.error());
  if (!hardware_names) return fail(hardware_names.error());
  name_index index;
  index.rows_ = *rows;
  index.keys_ = *keys;
  index.texts_ = *texts;
  index.hardware_ = *hardware;
  index.family_starts_ = *starts;
  index.family_rows_ = *members;
  index.profilers_ = names_of(*profilers);
  index.hardware_names_ = names_of(*hardware_names);
  index.file_ = std::make_shared<const section_file>(std::move(*file));
  return index;
}

// Without verify() any number may stand in a section: every look-up checks its bounds.

std::string_view name_index::text(uint32_t row, size_t skip, size_t bytes) const {
  const uint64_t start = rows_[row].text;
  if (start > texts_.size() || skip + bytes > texts_.size() - start) return {};
  return {texts_.data() + start + skip, bytes};
}

std::string_view name_index::id(uint32_t row) const { return row < size() ? text(row, 0, rows_[row].id_bytes) : std::string_view(); }

std::string_view name_index::name(uint32_t row) const {
  return row < size() ? text(row, rows_[row].id_bytes, rows_[row].name_bytes) : std::string_view();
}

std::string_view name_index::folded_name(uint32_t row) const {
  if (row >= size()) return {};
  const auto& r = rows_[row];
  return text(row, size_t{r.id_bytes} + r.name_bytes, r.folded_bytes);
}

uint32_t name_index::profiler(uint32_t row) const { return row < size() ? rows_[row].profiler : 0; }
source_trust name_index::trust(uint32_t row) const {
  const auto value = row < size() ? rows_[row].flags & 0xffu : 0;
  return value <= static_cast<uint32_t>(source_trust::preferred) ? static_cast<source_trust>(value) : source_trust::user;
}
bool name_index::is_option(uint32_t row) const { return row < size() && (rows_[row].flags & option_flag) != 0; }
uint32_t name_index::family(uint32_t row) const { return row < size() ? rows_[row].family : 0; }

std::span<const uint32_t> name_index::hardware(uint32_t row) const {
  if (row >= size()) return {};
  const auto& r = rows_[row];
  if (r.hardware > hardware_.size() || r.hardware_count > hardware_.size() - r.hardware) return {};
  return hardware_.subspan(r.hardware, r.hardware_count);
}

std::span<const uint32_t> name_index::family_rows(uint32_t family) const {
  if (family == 0 || size_t{family} + 1 >= family_starts_.size()) return {};
  const uint32_t start = family_starts_[family], end = family_starts_[family + 1];
  if (start > end || end > family_rows_.size()) return {};
  return family_rows_.subspan(start, end - start);
}

std::vector<name_key> name_index::find(std::string_view key) const {
  std::vector<name_key> found;
  if (key.empty()) return found;
  const auto hash = hash64(key, key_seed);
  auto it = std::lower_bound(keys_.begin(), keys_.end(), hash, [](const name_key& k, uint64_t h) { return k.hash < h; });
  std::unordered_set<uint32_t> seen;
  for (; it != keys_.end() && it->hash == hash; ++it)
    if (it->row < size() && seen.insert(it->row).second) found.push_back(*it);
  return found;
}

trigrams::trigrams(std::string_view folded) {
  append_trigrams(folded, sorted_);
  std::sort(sorted_.begin(), sorted_.end());
}

double trigrams::similarity(std::string_view other) const {
  thread_local std::vector<uint32_t> theirs; // called for every name of the index
  theirs.clear();
  append_trigrams(other, theirs);
  if (sorted_.empty() || theirs.empty()) return 0;
  std::sort(theirs.begin(), theirs.end());
  size_t same = 0;
  for (size_t i = 0, k = 0; i < sorted_.size() && k < theirs.size();) {
    if (sorted_[i] == theirs[k]) {
      ++same;
      ++i;
      ++k;
    } else if (sorted_[i] < theirs[k]) {
      ++i;
    } else {
      ++k;
    }
  }
  return 2.0 * static_cast<double>(same) / static_cast<double>(sorted_.size() + theirs.size());
}

} // namespace pragma
