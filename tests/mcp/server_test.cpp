// The protocol without a transport: both revisions, what is refused and how, cancellation, and messages that nobody meant.
#include "fake_features.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace pragma;
using Catch::Contains;
using test::fake_features;

namespace {

const json modern_meta = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"}, {"io.modelcontextprotocol/clientCapabilities", json::object()}};

std::vector<json> say(mcp::server& s, const json& message, const std::string& scope = "one") {
  std::vector<json> heard;
  s.handle(message, scope, [&](const json& m) { heard.push_back(m); });
  return heard;
}
json request(const std::string& method, json params = json::object(), json id = 1) {
  return {{"jsonrpc", "2.0"}, {"id", std::move(id)}, {"method", method}, {"params", std::move(params)}};
}
json modern(const std::string& method, json params = json::object()) {
  params["_meta"] = modern_meta;
  return request(method, std::move(params));
}

} // namespace

TEST_CASE("mcp: a client of an earlier revision begins with initialize and is answered in it") {
  mcp::server s(fake_features());
  const auto hello = say(s, request("initialize", {{"protocolVersion", "2025-06-18"}, {"capabilities", json::object()}, {"clientInfo", {{"name", "t"}, {"version", "1"}}}}));
  REQUIRE(hello.size() == 1);
  CHECK(hello[0]["result"]["protocolVersion"] == "2025-06-18");
  CHECK(hello[0]["result"]["serverInfo"]["name"] == "pragma");
  CHECK(say(s, request("initialize", {{"protocolVersion", "1900-01-01"}}))[0]["result"]["protocolVersion"] == "2025-11-25");
  CHECK(say(s, {{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}}).empty());
  CHECK(say(s, request("ping"))[0]["result"] == json::object());
  const auto tools = say(s, request("tools/list"))[0]["result"];
  CHECK(tools["tools"].size() == 4);
  CHECK(tools["tools"][0]["inputSchema"]["required"] == json::array({"text"}));
  CHECK_FALSE(tools.contains("resultType")); // older clients validate strictly
  CHECK(say(s, request("prompts/get", {{"name", "greet"}, {"arguments", {{"name", "Ada"}}}}))[0]["result"]["messages"][0]["content"]["text"] == "Hello Ada");
  CHECK(say(s, request("resources/read", {{"uri", "fake://a"}}))[0]["result"]["contents"][0]["text"] == "<b>A</b>");
  CHECK(say(s, request("resources/templates/list"))[0]["result"]["resourceTemplates"][0]["uriTemplate"] == "fake://{name}");
}

TEST_CASE("mcp: the stateless revision needs no handshake; each result says what it is") {
  mcp::server s(fake_features());
  const auto found = say(s, modern("server/discover"))[0]["result"];
  CHECK(found["supportedVersions"] == json::array({"2026-07-28", "2025-11-25", "2025-06-18"}));
  CHECK(found["resultType"] == "complete");
  CHECK(found["ttlMs"] == 0);
  CHECK(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "pragma");
  CHECK(say(s, modern("tools/list"))[0]["result"]["cacheScope"] == "private");

  auto old = modern("tools/list");
  old["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "1900-01-01";
  const auto refused = say(s, old)[0]["error"];
  CHECK(refused["code"] == -32022);
  CHECK(refused["data"]["requested"] == "1900-01-01");
  CHECK(refused["data"]["supported"][0] == "2026-07-28");
  auto without = modern("tools/list");
  without["params"]["_meta"].erase("io.modelcontextprotocol/clientCapabilities");
  CHECK(say(s, without)[0]["error"]["code"] == -32602);
  CHECK(say(s, request("server/discover"))[0]["error"]["code"] == -32602);
  CHECK(say(s, modern("ping"))[0]["error"]["code"] == -32601); // gone in this revision
  CHECK(say(s, modern("initialize"))[0]["error"]["code"] == -32601);
}

TEST_CASE("mcp: a tool's failure is for the model to read; progress is sent to who asked, and always grows") {
  mcp::server s(fake_features());
  auto call = request("tools/call", {{"name", "echo"}, {"arguments", {{"text", "hi"}}}, {"_meta", {{"progressToken", "p"}}}});
  auto heard = say(s, call);
  REQUIRE(heard.size() == 3);
  CHECK(heard[0]["method"] == "notifications/progress");
  CHECK(heard[1]["params"]["progress"].get<double>() > heard[0]["params"]["progress"].get<double>());
  CHECK(heard[2]["result"]["structuredContent"]["times"] == 1);
  CHECK(heard[2]["result"]["isError"] == false);
  call["params"].erase("_meta");
  CHECK(say(s, call).size() == 1);

  const auto failed = say(s, request("tools/call", {{"name", "fail"}}))[0]["result"];
  CHECK(failed["isError"] == true);
  CHECK(failed["structuredContent"]["error"]["hint"] == "add one");
  CHECK(failed["content"][0]["text"].get<std::string>().find('\x1b') == std::string::npos);
  CHECK_THAT(say(s, request("tools/call", {{"name", "throw"}}))[0]["result"]["content"][0]["text"].get<std::string>(), Contains("thrown"));
  const auto wrong = [&](json arguments) {
    const auto r = say(s, request("tools/call", {{"name", "echo"}, {"arguments", std::move(arguments)}}))[0]["result"];
    CHECK(r["isError"] == true);
    return r["content"][0]["text"].get<std::string>();
  };
  CHECK_THAT(wrong(json::object()), Contains("'text' is missing"));
  CHECK_THAT(wrong({{"text", 3}}), Contains("of type string"));
  CHECK_THAT(wrong({{"text", "a"}, {"times", 10}}), Contains("from 1 to 9"));
  CHECK_THAT(wrong({{"text", "a"}, {"tmies", 2}}), Contains("did you mean 'times'"));
  CHECK_THAT(wrong(json::array({1})), Contains("an object"));
  CHECK_THAT(say(s, request("tools/call", {{"name", "ecko"}}))[0]["error"]["message"].get<std::string>(), Contains("there is no tool 'ecko'"));
}

TEST_CASE("mcp: a cancelled call ends and is not answered; another client's call of the same id goes on") {
  mcp::server s(fake_features());
  std::vector<json> one, two;
  std::atomic<int> waiting = 0;
  const auto call = [&](const std::string& scope, std::vector<json>& heard) {
    return std::thread([&s, &heard, &waiting, scope] {
      s.handle(request("tools/call", {{"name", "wait"}, {"_meta", {{"progressToken", 1}}}}, 7), scope, [&](const json& m) {
        heard.push_back(m);
        ++waiting;
      });
    });
  };
  auto first = call("one", one), second = call("two", two);
  while (waiting < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(say(s, request("tools/call", {{"name", "echo"}, {"arguments", {{"text", ""}}}}, 7), "one")[0]["error"]["code"] == -32600); // the id is taken
  s.cancel("one", 8);
  CHECK(say(s, {{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", 7}}}}, "one").empty());
  first.join();
  CHECK(one.size() == 1); // its progress
  CHECK(two.size() == 1);
  s.cancel_all("two");
  second.join();
  CHECK(two.size() == 1);
  CHECK(say(s, request("tools/call", {{"name", "echo"}, {"arguments", {{"text", ""}}}}, 7), "one")[0].contains("result"));
}

TEST_CASE("mcp: what is no message is refused, and nothing deep is copied") {
  mcp::server s(fake_features());
  for (const json& m : {json(1), json("x"), json::array(), json(nullptr), json::object(), json{{"jsonrpc", "1.0"}, {"id", 1}, {"method", "ping"}}, json{{"jsonrpc", "2.0"}, {"id", 1}},
                        json{{"jsonrpc", "2.0"}, {"id", 1.5}, {"method", "ping"}}, json{{"jsonrpc", "2.0"}, {"id", json::array()}, {"method", "ping"}}}) {
    const auto heard = say(s, m);
    REQUIRE(heard.size() == 1);
    CHECK(heard[0]["error"]["code"] == -32600);
  }
  CHECK(say(s, {{"jsonrpc", "2.0"}, {"id", 1}, {"method", "ping"}, {"params", "x"}})[0]["error"]["code"] == -32602);
  CHECK(say(s, {{"jsonrpc", "2.0"}, {"id", 1}, {"result", 1}}).empty()); // an answer to what we never asked
}

TEST_CASE("mcp: 20,000 mangled messages: each is answered by valid JSON-RPC or not at all") {
  mcp::server s(fake_features());
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const std::vector<std::string> seeds = {
      request("tools/call", {{"name", "echo"}, {"arguments", {{"text", "a"}, {"times", 2}}}, {"_meta", {{"progressToken", 1}}}}).dump(), modern("server/discover").dump(),
      modern("resources/read", {{"uri", "fake://a"}}).dump(), request("prompts/get", {{"name", "greet"}, {"arguments", {{"name", "x"}}}}).dump(),
      json{{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", 1}}}}.dump()};
  const std::string odd = "\"{}[]:,0-e\\\x01\x80nut";
  int parsed = 0, answered = 0;
  for (int i = 0; i < 20000; ++i) {
    auto text = seeds[below(seeds.size())];
    for (size_t k = 0, changes = 1 + below(4); k < changes && !text.empty(); ++k) {
      const auto at = below(text.size());
      switch (below(4)) {
        case 0: text[at] = odd[below(odd.size())]; break;
        case 1: text.erase(at, 1 + below(20)); break;
        case 2: text.insert(at, 1, odd[below(odd.size())]); break;
        default: text.insert(at, text.substr(below(text.size()), below(30)));
      }
    }
    auto message = parse_json(text, "the message");
    if (!message) continue;
    ++parsed;
    if (message->is_object() && message->contains("params") && (*message)["params"].is_object() && (*message)["params"].value("name", json()) == "wait") continue;
    for (const auto& m : say(s, *message)) {
      INFO(text);
      CHECK(m["jsonrpc"] == "2.0");
      CHECK((m.contains("result") || m.contains("error") || m["method"] == "notifications/progress"));
      (void)m.dump();
      ++answered;
    }
  }
  CHECK(parsed > 500);
  CHECK(answered > 500);
}
