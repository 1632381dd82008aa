// What `pragma mcp` offers: the tools, resources and prompts, as functions of the engine, the store and the compendium.
#pragma once

#include "actors/resident.hpp"
#include "cli/engine.hpp"
#include "mcp/server.hpp"

namespace pragma::cli {

/// What all clients of one server share.
struct mcp_state {
  resident tasks;
  head_choice head = head_choice::none();
  std::mutex engine_mutex;
  std::weak_ptr<engine> running;      ///< one for the runs that go on side by side: their agents and the compendium are shared
};

mcp::features mcp_features(const std::shared_ptr<mcp_state>& state);

// Its parts.
std::vector<mcp::tool> kernel_tools(const std::shared_ptr<mcp_state>& state);   ///< verify, profile, compare
mcp::tool optimize_tool(const std::shared_ptr<mcp_state>& state);
std::vector<mcp::tool> record_tools();                                          ///< diagnose, ask, show_metric, hardware, runs
expected<std::vector<mcp::resource>> list_resources();
expected<mcp::resource_text> read_resource(const std::string& uri);
/// What verify, profile and compare found, as a model reads it: right, not accepted, or not established.
std::string examination_text(const examination& e);
/// The findings as a model reads them.
std::string findings_text(const std::vector<finding>& findings);

} // namespace pragma::cli
