// Tools that do nothing of PRAGMA's, for tests of the protocol alone.
#pragma once

#include "mcp/server.hpp"

#include <thread>

namespace pragma::test {

inline mcp::features fake_features() {
  using mcp::kind;
  mcp::features f;
  f.instructions = "Say hello.";
  f.tools.push_back({"echo", "Echo", "says it again", {{"text", kind::text, "what", true}, {"times", kind::whole, "how often", false, 1, {}, 1, 9}}, true, [](const mcp::call& c) -> expected<mcp::answer> {
                       c.progress(0, 2, "thinking");
                       c.progress(0, 2, "thinking still");
                       return mcp::answer{c.arguments["text"], {{"times", c.arguments["times"]}}};
                     }});
  f.tools.push_back({"fail", "Fail", "fails", {}, true, [](const mcp::call&) -> expected<mcp::answer> { return fail(ec::build_failed, "no semicolon\x1b[31m", "add one"); }});
  f.tools.push_back({"throw", "Throw", "throws", {}, true, [](const mcp::call&) -> expected<mcp::answer> { throw std::runtime_error("thrown"); }});
  f.tools.push_back({"wait", "Wait", "until it is cancelled", {}, false, [](const mcp::call& c) -> expected<mcp::answer> {
                       c.progress(1, 0, "waiting");
                       for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60); !c.cancelled; std::this_thread::sleep_for(std::chrono::milliseconds(5)))
                         if (std::chrono::steady_clock::now() > end) return mcp::answer{"never cancelled", {{"cancelled", false}}};
                       return mcp::answer{"cancelled", {{"cancelled", true}}};
                     }});
  f.prompts.push_back({"greet", "Greet", "greets", {{"name", kind::text, "whom", true}}, [](const json& a) -> expected<std::string> { return "Hello " + a["name"].get<std::string>(); }});
  f.templates.push_back({"fake://{name}", "fake", "made up", "text/plain"});
  f.resources = []() -> expected<std::vector<mcp::resource>> { return std::vector<mcp::resource>{{"fake://a", "a", "the first", "text/plain"}}; };
  f.read = [](const std::string& uri) -> expected<mcp::resource_text> {
    if (uri != "fake://a") return fail(ec::not_found, "no such thing");
    return mcp::resource_text{"text/plain", "<b>A</b>"};
  };
  return f;
}

} // namespace pragma::test
