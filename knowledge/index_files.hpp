// How the retrieval indexes lie in their folder, and the stamp that says which of them count. Private to knowledge/.
#pragma once

#include "knowledge/retrieval.hpp"

#include <map>
#include <utility>

namespace pragma {

inline constexpr const char* lexical_file = "lexical.sqlite";
inline constexpr const char* vector_file = "vectors";
inline constexpr const char* name_file = "names";
inline constexpr const char* text_file = "texts";
inline constexpr const char* model_file = "model.lsa";

inline constexpr int index_version = 2; ///< of the folder: an older one is built again

/// meta.json.
struct index_stamp {
  int version = index_version;
  std::string folder;                       ///< beside meta.json, "index-Ab12Cd"
  index_info info;
  std::map<std::string, std::string> files; ///< name -> SHA-256
};
expected<index_stamp> read_stamp(const std::filesystem::path& folder);
/// Renames it into place and syncs the folder: the moment from which the new indexes count.
expected<void> write_stamp(const std::filesystem::path& folder, const index_stamp& stamp);
/// Compares every file of the stamp with its SHA-256. parse_error names the first that differs.
expected<void> verify_files(const std::filesystem::path& folder, const index_stamp& stamp);
expected<std::string> file_sha256(const std::filesystem::path& file);

/// The only builder in `folder`; locked where there is another. Removes what killed builds left behind.
class build_lock {
public:
  static expected<build_lock> take(const std::filesystem::path& folder);
  build_lock(build_lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  build_lock& operator=(build_lock&&) = delete;
  ~build_lock();

private:
  explicit build_lock(int fd) : fd_(fd) {}
  int fd_;
};
/// Removes all index folders but the one named.
void remove_other_indexes(const std::filesystem::path& folder, const std::string& keep);
/// A new empty one; its name.
expected<std::string> make_index_folder(const std::filesystem::path& folder);

} // namespace pragma
