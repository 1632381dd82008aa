// Which words each entry has, and where: its tokens in order, by field, in one mapped file. The lexical index scores whole columns; what is
// asked here is which words of a question an entry explains and which of its own words nobody asked for. Used by rerank.cpp.
#pragma once

#include "base/section_file.hpp"
#include "knowledge/entry.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pragma {

/// Fields of an entry, each a run of tokens. A word's number is what it is called here.
enum class entry_field : uint32_t { name, summary, meaning, rest };
inline constexpr size_t entry_fields = 4;

class text_writer {
public:
  /// Rows count from 0 in the order of calls. limit_exceeded above 4 billion different words.
  expected<void> add(const entry& e);
  expected<void> write(const std::filesystem::path& file);

private:
  void append(std::string_view text, size_t most_tokens, std::vector<uint32_t>& out);
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> entries_of_, tokens_;
  std::vector<uint64_t> starts_;
};

class text_index {
public:
  static constexpr uint32_t unknown = ~uint32_t{0};
  static expected<text_index> open(const std::filesystem::path& file, bool verify = false);
  uint32_t size() const { return static_cast<uint32_t>(starts_.size() / entry_fields); }
  /// Empty for a row that is none.
  std::span<const uint32_t> words(uint32_t row, entry_field field) const;
  /// Of a token (embeddings/tokens.hpp); `unknown` where no entry has it.
  uint32_t number_of(std::string_view token) const;
  /// BM25's inverse document frequency over the fields here, at least 0.2; of an unknown word the largest there is.
  double idf(uint32_t number) const;

private:
  std::shared_ptr<const section_file> file_;
  std::span<const uint64_t> hashes_, starts_; ///< hashes sorted; starts_: entry_fields for each row, and the end
  std::span<const uint32_t> entries_of_, tokens_;
};

} // namespace pragma
