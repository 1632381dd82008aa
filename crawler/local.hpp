// Documentation on this machine: files, folder trees, manual pages. Reads bytes only, bounded, and never outside of what the user
// named: no symbolic link leads out of a folder. Used by crawl_run, which treats them as it treats pages of a server.
#pragma once

#include "crawler/url.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pragma {

struct local_page {
  enum class kind { content, missing, refused, failed };
  kind what = kind::failed;
  std::string reason;      ///< not of content
  std::string bytes;       ///< unpacked
  std::string name;        ///< what page_format goes by: the address without ".gz"
};

/// A file below one of the roots (file addresses; a root that is a file stands for its folder, as on the web).
local_page read_local_file(const page_url& url, const std::vector<page_url>& roots, uint64_t max_bytes);

/// man:NAME.SECTION in the manual path (".gz" too), following ".so" lines within its tree. `man_path` empty: man_path_of_system().
local_page read_man_page(const page_url& url, const std::vector<std::string>& man_path, uint64_t max_bytes);

/// $MANPATH, else the folders that man-db uses for $PATH, else /usr/local/man:/usr/local/share/man:/usr/share/man.
std::vector<std::string> man_path_of_system();

struct folder_listing {
  std::vector<page_url> files;   ///< regular files, sorted by path; hidden ones left out
  bool truncated = false;        ///< more than max_files
  std::string problem;           ///< the folder cannot be read
};
folder_listing list_folder(const std::string& path, size_t max_files);

} // namespace pragma
