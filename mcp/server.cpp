#include "mcp/server.hpp"

#include "base/text.hpp"
#include "base/version.hpp"

namespace pragma::mcp {

namespace {

constexpr size_t most_calls = 32;       ///< in progress at once, of all clients
constexpr size_t most_listed = 200;     ///< resources in one list

constexpr const char* version_key = "io.modelcontextprotocol/protocolVersion";
constexpr const char* capabilities_key = "io.modelcontextprotocol/clientCapabilities";

/// What ends a request with an error of the protocol.
struct refusal {
  int code;
  std::string text;
  json data = nullptr;
};

json identity() { return {{"name", "pragma"}, {"title", "PRAGMA"}, {"version", pragma_version}}; }

json capabilities() { return {{"tools", json::object()}, {"prompts", json::object()}, {"resources", json::object()}}; }

bool valid_id(const json& id) { return id.is_string() || id.is_number_integer(); }

const json& member(const json& object, const char* key) {
  static const json none;
  if (!object.is_object()) return none;
  const auto it = object.find(key);
  return it == object.end() ? none : *it;
}

std::string text_of(const json& object, const char* key) {
  const auto& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

template <class T> const T* named(const std::vector<T>& all, const std::string& name) {
  for (const auto& one : all)
    if (one.name == name) return &one;
  return nullptr;
}

template <class T> refusal unknown(const char* what, const std::vector<T>& all, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& one : all) names.push_back(one.name);
  return {code::invalid_params, std::string("there is no ") + what + " '" + printable(name.substr(0, 80)) + "'; there are: " + join(names, ", ")};
}

json described(const resource& r, const char* address) {
  return {{address, r.uri}, {"name", r.name}, {"description", r.description}, {"mimeType", r.mime}};
}

json tool_list(const std::vector<tool>& tools) {
  json all = json::array();
  for (const auto& t : tools)
    all.push_back({{"name", t.name},
                   {"title", t.title},
                   {"description", t.description},
                   {"inputSchema", schema_of(t.parameters)},
                   {"annotations", {{"readOnlyHint", t.reads_only}, {"destructiveHint", false}, {"openWorldHint", false}}}});
  return all;
}

json prompt_list(const std::vector<prompt>& prompts) {
  json all = json::array();
  for (const auto& p : prompts) {
    json arguments = json::array();
    for (const auto& a : p.parameters) arguments.push_back({{"name", a.name}, {"description", a.description}, {"required", a.required}});
    all.push_back({{"name", p.name}, {"title", p.title}, {"description", p.description}, {"arguments", std::move(arguments)}});
  }
  return all;
}

/// A failure of the tool is for the model to read and to act on; it is no error of the protocol.
json failed(const error& e) {
  return {{"content", json::array({{{"type", "text"}, {"text", printable(render(e))}}})},
          {"structuredContent", {{"error", {{"code", name(e.code)}, {"message", e.message}, {"hint", e.hint}}}}},
          {"isError", true}};
}

bool cacheable(const std::string& method) { return method == "server/discover" || method == "resources/read" || method.ends_with("/list"); }

/// The stateless revision's marks on a result.
void mark(json& result, const std::string& method) {
  result["resultType"] = "complete";
  result["_meta"]["io.modelcontextprotocol/serverInfo"] = identity();
  if (!cacheable(method)) return;
  result["ttlMs"] = 0;
  result["cacheScope"] = "private";
}

} // namespace

json error_message(const json& id, int number, const std::string& text, json data) {
  json e = {{"code", number}, {"message", text}};
  if (!data.is_null()) e["data"] = std::move(data);
  return {{"jsonrpc", "2.0"}, {"id", valid_id(id) ? id : json(nullptr)}, {"error", std::move(e)}};
}

bool server::is_call(const json& message) { return text_of(message, "method") == "tools/call" && valid_id(member(message, "id")); }

std::string server::version_of(const json& message) { return text_of(member(member(message, "params"), "_meta"), version_key); }

json server::discover() const {
  std::vector<std::string> versions = {stateless_version};
  versions.insert(versions.end(), handshake_versions.begin(), handshake_versions.end());
  return {{"supportedVersions", versions}, {"capabilities", capabilities()}, {"instructions", what_.instructions}};
}

json server::read(const json& params) const {
  const auto uri = text_of(params, "uri");
  if (uri.empty()) throw refusal{code::invalid_params, "resources/read needs 'uri'"};
  auto found = what_.read ? what_.read(uri) : fail(ec::not_found, "there are no resources");
  if (!found) throw refusal{code::invalid_params, printable(found.error().message), {{"uri", uri}}};
  return {{"contents", json::array({{{"uri", uri}, {"mimeType", found->mime}, {"text", found->text}}})}};
}

json server::get_prompt(const json& params) const {
  const auto* wanted = named(what_.prompts, text_of(params, "name"));
  if (!wanted) throw unknown("prompt", what_.prompts, text_of(params, "name"));
  auto arguments = check_arguments(member(params, "arguments"), wanted->parameters);
  if (!arguments) throw refusal{code::invalid_params, render(arguments.error())};
  auto text = wanted->text(*arguments);
  if (!text) throw refusal{code::invalid_params, printable(render(text.error()))};
  return {{"description", wanted->description}, {"messages", json::array({{{"role", "user"}, {"content", {{"type", "text"}, {"text", *text}}}}})}};
}

json server::call_tool(const json& params, const std::string& scope, const json& id, const sender& send) {
  const auto* wanted = named(what_.tools, text_of(params, "name"));
  if (!wanted) throw unknown("tool", what_.tools, text_of(params, "name"));
  auto arguments = check_arguments(member(params, "arguments"), wanted->parameters);
  if (!arguments) return failed(arguments.error());
  const auto key = std::pair(scope, id.dump());
  const auto cancelled = std::make_shared<std::atomic<bool>>(false);
  {
    const std::lock_guard lock(mutex_);
    if (running_.size() >= most_calls) return failed({ec::limit_exceeded, std::to_string(most_calls) + " calls are in progress", "wait for one of them, or cancel it"});
    if (!running_.emplace(key, cancelled).second) throw refusal{code::invalid_request, "a call with this id is in progress"};
  }
  const auto token = member(member(params, "_meta"), "progressToken");
  double last = 0;
  call now{std::move(*arguments), *cancelled, [&](double done, double total, const std::string& text) {
             if (!valid_id(token) || *cancelled) return;
             last = done > last ? done : last + 1e-3;
             json p = {{"progressToken", token}, {"progress", last}, {"message", printable(text)}};
             if (total > 0) p["total"] = std::max(total, last);
             send({{"jsonrpc", "2.0"}, {"method", "notifications/progress"}, {"params", std::move(p)}});
           }};
  expected<answer> done = fail(ec::internal, "");
  try {
    done = wanted->run(now);
  } catch (const std::exception& e) { // a call must end its entry, whatever a library throws
    done = fail(ec::internal, std::string("the tool failed: ") + e.what());
  }
  {
    const std::lock_guard lock(mutex_);
    running_.erase(key);
  }
  if (*cancelled) return nullptr;
  if (!done) return failed(done.error());
  return {{"content", json::array({{{"type", "text"}, {"text", printable(done->text)}}})}, {"structuredContent", std::move(done->data)}, {"isError", false}};
}

json server::answer_to(const std::string& method, const json& params, bool stateless) {
  if (method == "tools/list") return {{"tools", tool_list(what_.tools)}};
  if (method == "prompts/list") return {{"prompts", prompt_list(what_.prompts)}};
  if (method == "prompts/get") return get_prompt(params);
  if (method == "resources/read") return read(params);
  if (method == "resources/templates/list") {
    json all = json::array();
    for (const auto& t : what_.templates) all.push_back(described(t, "uriTemplate"));
    return {{"resourceTemplates", std::move(all)}};
  }
  if (method == "resources/list") {
    json all = json::array();
    if (what_.resources) {
      auto found = what_.resources();
      if (!found) throw refusal{code::internal, printable(found.error().message)};
      for (const auto& r : *found)
        if (all.size() < most_listed) all.push_back(described(r, "uri"));
    }
    return {{"resources", std::move(all)}};
  }
  if (stateless && method == "server/discover") return discover();
  if (!stateless && method == "ping") return json::object();
  if (!stateless && method == "initialize") {
    const auto asked = text_of(params, "protocolVersion");
    const bool known = std::find(handshake_versions.begin(), handshake_versions.end(), asked) != handshake_versions.end();
    return {{"protocolVersion", known ? asked : handshake_versions.front()}, {"capabilities", capabilities()}, {"serverInfo", identity()}, {"instructions", what_.instructions}};
  }
  throw refusal{code::no_method, "there is no method '" + printable(method.substr(0, 80)) + "'"};
}

void server::handle(const json& message, const std::string& scope, const sender& send) {
  const auto id = member(message, "id");
  try {
    if (!message.is_object() || text_of(message, "jsonrpc") != "2.0") throw refusal{code::invalid_request, "a message is a JSON-RPC 2.0 object"};
    const auto method = text_of(message, "method");
    const auto& params = member(message, "params");
    if (method.empty()) {
      if (message.contains("result") || message.contains("error")) return; // we ask nothing, so nothing of ours is answered
      throw refusal{code::invalid_request, "a message names its method"};
    }
    if (!message.contains("id")) { // a notification is never answered
      if (method == "notifications/cancelled") cancel(scope, member(params, "requestId"));
      return;
    }
    if (!valid_id(id)) throw refusal{code::invalid_request, "an id is a string or a whole number"};
    if (!params.is_null() && !params.is_object()) throw refusal{code::invalid_params, "params is an object"};
    const auto& meta = member(params, "_meta");
    const bool stateless = meta.is_object() && meta.contains(version_key);
    if (stateless) {
      if (version_of(message) != stateless_version)
        throw refusal{code::unsupported_version, "unsupported protocol version", {{"supported", discover()["supportedVersions"]}, {"requested", meta[version_key]}}};
      if (!member(meta, capabilities_key).is_object()) throw refusal{code::invalid_params, std::string("_meta lacks ") + capabilities_key};
    } else if (method == "server/discover") {
      throw refusal{code::invalid_params, std::string("_meta lacks ") + version_key};
    }
    auto result = method == "tools/call" ? call_tool(params, scope, id, send) : answer_to(method, params, stateless);
    if (result.is_null()) return; // cancelled
    if (stateless) mark(result, method);
    send({{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}});
  } catch (const refusal& r) {
    send(error_message(id, r.code, r.text, r.data));
  } catch (const std::exception& e) {
    send(error_message(id, code::internal, printable(e.what())));
  }
}

void server::cancel(const std::string& scope, const json& id) {
  if (!valid_id(id)) return;
  const std::lock_guard lock(mutex_);
  if (const auto it = running_.find({scope, id.dump()}); it != running_.end()) *it->second = true;
}

void server::cancel_all(const std::string& scope) {
  const std::lock_guard lock(mutex_);
  for (auto& [key, flag] : running_)
    if (key.first == scope) *flag = true;
}

} // namespace pragma::mcp
