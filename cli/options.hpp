// The options that optimize, resume and bench share, and what they become.
#pragma once

#include "actors/messages.hpp"

#include <CLI/CLI.hpp>

namespace pragma::cli {

/// --backend and what belongs to it, for every command that builds or measures a candidate.
struct backend_options {
  std::string backend = "cpu";
  int index = 0;
  std::string baseline = "eager";
  tf32_use tf32 = tf32_use::convolutions; ///< on a device; a processor has none
  bool allow_torch = false;

  void add_to(CLI::App& command);
  /// invalid_argument for an unknown backend, or a baseline or flag that has no meaning on this one.
  expected<void> apply(load_request& load) const;
  /// What a request says of them.
  static backend_options of(const load_request& load);
  /// All of them, for run.json and for bench.json.
  json flags() const;
};

/// --threads N, or `all`: the cores of one memory node (measuring_cores()).
void add_threads(CLI::App& command, int& threads, const std::string& help);

struct run_options {
  std::string coder;                   ///< "", "builtin", "llm", "command"
  std::string command;                 ///< --command "claude -p"
  std::string llm_config;              ///< file
  std::string model, base_url;
  int attempts = defaults::attempts;
  int threads = defaults::threads;
  int seeds = defaults::verify_seeds;
  int patience = 0;
  int parallel = 1;
  int priority = 0;
  std::string needs;
  bool no_profile = false, no_check = false;
  double profile_seconds = 3;
  double max_minutes = 0, target = 0;
  int64_t budget_tokens = 0;
  double budget_cost = 0;
  std::string seed = "builtin";
  std::string search = "findings";
  uint64_t search_seed = 1;
  bool no_algebra = false, cold = false;
  std::vector<std::string> metrics;
  backend_options device;

  void add_to(CLI::App& command);
  /// invalid_argument for contradictions, unreadable configuration, unknown metric names.
  expected<run_request> request(const std::string& task, const std::string& out_dir) const;
  /// What results must agree in to stand in one table (`bench`).
  json key() const;
};

} // namespace pragma::cli
