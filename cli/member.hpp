// The options --head and --tls, which every command of a user shares that can work through a head.
#pragma once

#include "cluster/client.hpp"

#include <CLI/CLI.hpp>

namespace pragma::cli {

struct head_choice {
  std::string head, tls;
  bool local = false;

  /// Work in this process.
  static head_choice none() {
    head_choice here;
    here.local = true;
    return here;
  }
  void add_to(CLI::App& command);
  /// --head, else PRAGMA_HEAD, else "head" of cluster.json in data_home(), several with commas; none: work in this process.
  expected<std::vector<address>> chosen() const;
  /// --tls, else PRAGMA_TLS, else "tls" of cluster.json.
  expected<std::optional<std::filesystem::path>> certificates() const;
  /// Connected where one is chosen, else empty.
  expected<std::unique_ptr<head_client>> connect() const;
};

} // namespace pragma::cli
