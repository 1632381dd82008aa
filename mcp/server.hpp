// The Model Context Protocol, without a transport: one message in, answers out. Speaks the stateless revision (2026-07-28) and those
// that begin with `initialize` (2025-11-25, 2025-06-18), told apart by what each message carries. What the tools do is the caller's.
#pragma once

#include "mcp/parameters.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace pragma::mcp {

inline constexpr const char* stateless_version = "2026-07-28";
/// Newest first; the first is offered to a client that asks for one that we do not know.
inline const std::vector<std::string> handshake_versions = {"2025-11-25", "2025-06-18"};

/// A tool's work in progress.
struct call {
  json arguments;                                 ///< checked, with fallbacks filled in
  const std::atomic<bool>& cancelled;
  /// Heard only by clients that asked for progress. `done` may stand still; what is sent always grows.
  std::function<void(double done, double total, const std::string& text)> progress;
};

struct answer {
  std::string text;                               ///< for the model to read
  json data = json::object();                     ///< the same for programs (structuredContent); an object
};

struct tool {
  std::string name, title, description;
  std::vector<parameter> parameters;
  bool reads_only = true;                         ///< it changes nothing that a user would miss
  std::function<expected<answer>(const call&)> run;
};

struct resource {
  std::string uri, name, description, mime;       ///< of a template, `uri` has {parts}
};
struct resource_text {
  std::string mime, text;
};

struct prompt {
  std::string name, title, description;
  std::vector<parameter> parameters;
  std::function<expected<std::string>(const json& arguments)> text;
};

struct features {
  std::string instructions;
  std::vector<tool> tools;
  std::vector<prompt> prompts;
  std::vector<resource> templates;
  std::function<expected<std::vector<resource>>()> resources;
  std::function<expected<resource_text>(const std::string& uri)> read;
};

/// Codes of JSON-RPC and of the protocol.
namespace code {
inline constexpr int parse_error = -32700, invalid_request = -32600, no_method = -32601, invalid_params = -32602, internal = -32603,
                     header_mismatch = -32020, unsupported_version = -32022;
}

/// {"jsonrpc", "id", "error"}; `id` null where it could not be read.
json error_message(const json& id, int number, const std::string& text, json data = nullptr);

class server {
public:
  explicit server(features what) : what_(std::move(what)) {}

  using sender = std::function<void(const json& message)>;
  /// Answers one message of the client `scope` (ids are unique within one only): notifications of its progress and at most one response
  /// go to `send`, from this thread, before it returns. A cancelled call is not answered.
  void handle(const json& message, const std::string& scope, const sender& send);
  /// Ends the call; nothing when there is none.
  void cancel(const std::string& scope, const json& id);
  void cancel_all(const std::string& scope);
  /// Whether handle() may take long: a tool is called.
  static bool is_call(const json& message);
  /// The revision that the message itself names; empty: none (a client that began with `initialize`).
  static std::string version_of(const json& message);

private:
  json answer_to(const std::string& method, const json& params, bool stateless);
  json call_tool(const json& params, const std::string& scope, const json& id, const sender& send);
  json discover() const;
  json read(const json& params) const;
  json get_prompt(const json& params) const;

  features what_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<std::atomic<bool>>> running_; ///< (scope, id as JSON)
};

} // namespace pragma::mcp
