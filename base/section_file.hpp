// A file of named sections, checksummed and mapped into memory: how the embedding model and the retrieval indexes lie on disk.
// Opening one checks the header and that every section lies within the file and touches no section, so that it takes no
// longer for a large file; verify() reads everything. Numbers are little-endian, as this machine's.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace pragma {

/// Writes a neighbour of `file`, which takes its place in finish(); without that nothing is left behind.
class section_writer {
public:
  /// `kind`: what the file holds, with its version ("lsa 1"), at most 31 bytes; open() asks for the same.
  static expected<section_writer> create(const std::filesystem::path& file, std::string_view kind);
  section_writer(section_writer&&) noexcept;
  section_writer& operator=(section_writer&&) noexcept;
  ~section_writer();
  /// Ends the section before; names of at most 23 bytes, at most 32 sections.
  expected<void> begin(std::string_view name);
  expected<void> write(const void* data, size_t bytes);
  /// One section in one piece.
  template <class T> expected<void> put(std::string_view name, std::span<const T> values) {
    if (auto begun = begin(name); !begun) return begun;
    return write(values.data(), values.size_bytes());
  }
  /// Header, fsync, rename.
  expected<void> finish();

private:
  struct state;
  explicit section_writer(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

class section_file {
public:
  /// not_found, io_error; parse_error: another kind of file, cut short, or a damaged header. The message names the file.
  static expected<section_file> open(const std::filesystem::path& file, std::string_view kind);
  const std::filesystem::path& path() const;
  uint64_t bytes() const;
  /// Checksums of all sections, or of the one named. parse_error names the file and the section.
  expected<void> verify(std::string_view name = {}) const;
  /// Valid as long as a copy of this object lives. parse_error: no such section, or not a whole number of T.
  template <class T> expected<std::span<const T>> section(std::string_view name) const {
    const auto raw = raw_section(name, sizeof(T));
    if (!raw) return fail(raw.error());
    return std::span<const T>(reinterpret_cast<const T*>(raw->data()), raw->size() / sizeof(T));
  }
  /// For whoever finds that a section's content cannot be: "FILE is damaged (WHAT)", with what to do.
  tl::unexpected<error> damaged(std::string_view what) const;

private:
  struct mapping;
  expected<std::span<const std::byte>> raw_section(std::string_view name, size_t unit) const;
  std::shared_ptr<const mapping> mapping_;
};

} // namespace pragma
