// The command tree: each command adds its row (name, help, options, example) to the parser and returns its exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace pragma::cli {

/// What main() runs after parsing; set by the callback of the chosen command.
using action = std::function<int()>;

void add_optimize(CLI::App& app, action& chosen);  ///< optimize, resume
void add_candidate(CLI::App& app, action& chosen); ///< verify, profile
void add_bench(CLI::App& app, action& chosen);     ///< bench
void add_runs(CLI::App& app, action& chosen);      ///< runs, show
void add_diagnose(CLI::App& app, action& chosen);  ///< diagnose
void add_ask(CLI::App& app, action& chosen);       ///< ask
void add_export(CLI::App& app, action& chosen);    ///< export
void add_kb(CLI::App& app, action& chosen);        ///< kb build, status, verify, show, export, import
void add_profilers(CLI::App& app, action& chosen); ///< profiler add, list, show, remove
void add_cluster(CLI::App& app, action& chosen);   ///< node, cluster status, release, cancel; and the next two
void add_head(CLI::App& app, action& chosen);      ///< head, head backup, head restore
void add_ca(CLI::App& cluster, action& chosen);    ///< cluster ca init, issue, revoke
void add_compare(CLI::App& app, action& chosen);   ///< compare
void add_dashboard(CLI::App& app, action& chosen); ///< dashboard
void add_mcp(CLI::App& app, action& chosen);       ///< mcp
void add_machine(CLI::App& app, action& chosen);   ///< hardware, doctor

} // namespace pragma::cli
