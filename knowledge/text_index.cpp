#include "knowledge/text_index.hpp"

#include "base/hash.hpp"
#include "embeddings/tokens.hpp"
#include "knowledge/index_text.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pragma {

namespace {

constexpr std::string_view texts_kind = "texts 1";
constexpr uint64_t word_seed = 5;
constexpr size_t most_words = 2000;   // of a field: a page that was taken for an entry must not fill the index
constexpr size_t summary_words = 25;  // of the meaning, where an entry has no summary
constexpr double least_idf = 0.2;

} // namespace

void text_writer::append(std::string_view text, size_t most_tokens, std::vector<uint32_t>& out) {
  for (const auto& t : tokens_of(text)) {
    if (out.size() == most_tokens) break;
    if (t.what == token::type::whole) continue; // its pieces are words here
    const auto [it, is_new] = numbers_.emplace(t.text, static_cast<uint32_t>(hashes_.size()));
    if (is_new) {
      hashes_.push_back(hash64(t.text, word_seed));
      entries_of_.push_back(0);
    }
    out.push_back(it->second);
  }
}

expected<void> text_writer::add(const entry& e) {
  const auto texts = columns_of(e);
  std::vector<uint32_t> all;
  const auto put = [&](std::string_view text, size_t most) {
    std::vector<uint32_t> words;
    append(text, most, words);
    starts_.push_back(tokens_.size());
    tokens_.insert(tokens_.end(), words.begin(), words.end());
    all.insert(all.end(), words.begin(), words.end());
  };
  put(texts.name, most_words);
  if (e.summary.empty()) put(texts.meaning, summary_words);
  else put(e.summary, most_words);
  put(texts.meaning, most_words);
  put(texts.rest, most_words);
  if (hashes_.size() >= text_index::unknown) return fail(ec::limit_exceeded, "more different words than an index can hold");
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (const auto word : all) ++entries_of_[word];
  return {};
}

expected<void> text_writer::write(const std::filesystem::path& file) {
  // Numbered anew by hash, so that a reader finds a word's number by halving.
  std::vector<uint32_t> by_hash(hashes_.size()), number(hashes_.size()), counts;
  std::iota(by_hash.begin(), by_hash.end(), 0u);
  std::sort(by_hash.begin(), by_hash.end(), [&](uint32_t a, uint32_t b) { return hashes_[a] < hashes_[b]; });
  std::vector<uint64_t> hashes;
  for (uint32_t i = 0; i < by_hash.size(); ++i) {
    number[by_hash[i]] = i;
    hashes.push_back(hashes_[by_hash[i]]);
    counts.push_back(entries_of_[by_hash[i]]);
  }
  for (auto& t : tokens_) t = number[t];
  starts_.push_back(tokens_.size());
  auto writer = section_writer::create(file, texts_kind);
  if (!writer) return fail(writer.error());
  if (auto put = writer->put("hashes", std::span<const uint64_t>(hashes)); !put) return put;
  if (auto put = writer->put("counts", std::span<const uint32_t>(counts)); !put) return put;
  if (auto put = writer->put("starts", std::span<const uint64_t>(starts_)); !put) return put;
  if (auto put = writer->put("tokens", std::span<const uint32_t>(tokens_)); !put) return put;
  return writer->finish();
}

expected<text_index> text_index::open(const std::filesystem::path& file, bool verify) {
  auto opened = section_file::open(file, texts_kind);
  if (!opened) return fail(opened.error());
  if (verify)
    if (auto good = opened->verify(); !good) return fail(good.error());
  text_index index;
  const auto hashes = opened->section<uint64_t>("hashes"), starts = opened->section<uint64_t>("starts");
  const auto counts = opened->section<uint32_t>("counts"), tokens = opened->section<uint32_t>("tokens");
  for (const auto* part : {&hashes, &starts})
    if (!*part) return fail(part->error());
  for (const auto* part : {&counts, &tokens})
    if (!*part) return fail(part->error());
  if (counts->size() != hashes->size() || starts->size() % entry_fields != 1 || starts->back() != tokens->size()) return opened->damaged("sections of other lengths");
  index.file_ = std::make_shared<const section_file>(std::move(*opened));
  index.hashes_ = *hashes;
  index.starts_ = *starts;
  index.entries_of_ = *counts;
  index.tokens_ = *tokens;
  return index;
}

std::span<const uint32_t> text_index::words(uint32_t row, entry_field field) const {
  const auto at = size_t{row} * entry_fields + static_cast<size_t>(field);
  if (row >= size()) return {};
  const auto from = starts_[at], to = starts_[at + 1];
  if (from > to || to > tokens_.size()) return {}; // damaged, and not verified
  return tokens_.subspan(from, to - from);
}

uint32_t text_index::number_of(std::string_view token) const {
  const auto hash = hash64(token, word_seed);
  const auto it = std::lower_bound(hashes_.begin(), hashes_.end(), hash);
  return it != hashes_.end() && *it == hash ? static_cast<uint32_t>(it - hashes_.begin()) : unknown;
}

double text_index::idf(uint32_t number) const {
  const double n = size(), d = number < entries_of_.size() ? std::min<double>(entries_of_[number], n) : 0;
  return std::max(least_idf, std::log((n - d + 0.5) / (d + 0.5)));
}

} // namespace pragma
