// Which entry a row is, and which rows a name means: ids, names, profilers, hardware and families of all entries in one mapped
// file, so that look-ups by name and the scope of a question need no store. Used by retriever.
#pragma once

#include "base/section_file.hpp"
#include "knowledge/entry.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pragma {

/// How a name means a row, surest first.
enum class name_match : uint32_t {
  name,  ///< its name, folded
  base,  ///< its name without rollup suffix
  alias,
  stem   ///< name or alias with each word stemmed: "branch misses" for "branch-miss"
};

/// "bank conflicts", "Bank-conflict" -> "bankconflict": the words' stems in one. Empty where there is no word.
std::string stem_key(std::string_view name);

/// Fixed-size part of a row; texts and lists lie in sections of their own.
struct name_row {
  uint64_t text = 0;                   ///< where id, name and folded name stand, one after the other
  uint16_t id_bytes = 0, name_bytes = 0, folded_bytes = 0, profiler = 0;
  uint32_t family = 0;                 ///< 0: alone
  uint32_t hardware = 0, hardware_count = 0, flags = 0; ///< flags: source_trust, and 256 for an option of a tool
};
struct name_key {
  uint64_t hash = 0;
  uint32_t row = 0;
  name_match match = name_match::name;
};

class name_writer {
public:
  /// Rows count from 0 in the order of calls. limit_exceeded above 4 billion rows or 65,535 profilers.
  expected<void> add(const entry& e);
  expected<void> write(const std::filesystem::path& file);
  uint32_t size() const { return static_cast<uint32_t>(rows_.size()); }

private:
  void add_key(const std::string& key, name_match match);
  static uint32_t number_of(std::unordered_map<std::string, uint32_t>& numbers, std::vector<std::string>& names, const std::string& name);

  std::vector<name_row> rows_;
  std::vector<name_key> keys_;
  std::string texts_;
  std::vector<uint32_t> hardware_;
  std::vector<std::string> profilers_, hardware_names_, families_ = {""};
  std::unordered_map<std::string, uint32_t> profiler_numbers_, hardware_numbers_, family_numbers_ = {{"", 0}};
};

class name_index {
public:
  static expected<name_index> open(const std::filesystem::path& file, bool verify = false);

  uint32_t size() const { return static_cast<uint32_t>(rows_.size()); }
  /// Empty for a row that is none, here and below.
  std::string_view id(uint32_t row) const;
  std::string_view name(uint32_t row) const;
  std::string_view folded_name(uint32_t row) const;
  /// Number into profilers() or hardware_names().
  uint32_t profiler(uint32_t row) const;
  std::span<const uint32_t> hardware(uint32_t row) const;
  source_trust trust(uint32_t row) const;
  bool is_option(uint32_t row) const;
  const std::vector<std::string>& profilers() const { return profilers_; }
  const std::vector<std::string>& hardware_names() const { return hardware_names_; }
  uint32_t family(uint32_t row) const;
  /// Rows of one family in order; empty for 0.
  std::span<const uint32_t> family_rows(uint32_t family) const;
  /// Rows that the key means (fold_name() or stem_key() of what was asked), surest first.
  std::vector<name_key> find(std::string_view key) const;

private:
  std::string_view text(uint32_t row, size_t skip, size_t bytes) const;
  std::shared_ptr<const section_file> file_;
  std::span<const name_row> rows_;
  std::span<const name_key> keys_;
  std::span<const char> texts_;
  std::span<const uint32_t> hardware_, family_starts_, family_rows_;
  std::vector<std::string> profilers_, hardware_names_;
};

/// 0 to 1: how many of two folded names' letter trigrams are the same (Dice's coefficient).
class trigrams {
public:
  explicit trigrams(std::string_view folded);
  double similarity(std::string_view other) const;

private:
  std::vector<uint32_t> sorted_;
};

} // namespace pragma
