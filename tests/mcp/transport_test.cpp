// The same server over pipes and over HTTP: lines of any shape, streams, who is let in, two clients at once.
#include "fake_features.hpp"

#include "base/files.hpp"
#include "base/http.hpp"
#include "mcp/http.hpp"
#include "mcp/stdio.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

using namespace pragma;
using Catch::Contains;
using test::fake_features;

namespace {

/// A server over pipes in a thread.
struct piped {
  mcp::server server{fake_features()};
  std::atomic<bool> stop = false;
  int to[2], from[2];
  std::string rest;
  std::thread thread;

  piped() {
    REQUIRE(::pipe2(to, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(from, O_CLOEXEC) == 0);
    thread = std::thread([this] {
      mcp::serve_stdio(server, to[0], from[1], stop);
      ::close(from[1]);
    });
  }
  ~piped() {
    if (to[1] >= 0) ::close(to[1]);
    thread.join();
    ::close(to[0]);
    ::close(from[0]);
  }
  void write(std::string text) {
    while (!text.empty()) {
      const auto n = ::write(to[1], text.data(), text.size());
      REQUIRE(n > 0);
      text.erase(0, static_cast<size_t>(n));
    }
  }
  /// The next message; null at the end.
  json read() {
    for (;;) {
      if (const auto end = rest.find('\n'); end != std::string::npos) {
        auto line = rest.substr(0, end);
        rest.erase(0, end + 1);
        return json::parse(line);
      }
      char buffer[4096];
      const auto n = ::read(from[0], buffer, sizeof buffer);
      if (n <= 0) return nullptr;
      rest.append(buffer, static_cast<size_t>(n));
    }
  }
};

struct over_http {
  mcp::server server{fake_features()};
  std::atomic<bool> stop = false;
  std::string secret = web::new_secret();
  web::listener where = open(secret);
  std::thread thread;

  static web::listener open(const std::string& secret) {
    web::listen_options options;
    options.secret = secret;
    auto opened = web::listener::open(options);
    REQUIRE(opened);
    return std::move(*opened);
  }
  over_http() {
    mcp::serve_http(server, where);
    thread = std::thread([this] { where.run(stop); });
  }
  ~over_http() {
    stop = true;
    thread.join();
  }
  http_response send(const std::string& method, const std::string& body, http_headers headers, bool authorised = true, std::function<bool(const http_response&, std::string_view)> on_body = {}) {
    http_request r;
    r.method = method;
    r.url = where.address() + "/mcp";
    r.body = body;
    r.headers = std::move(headers);
    r.headers.emplace_back("Content-Type", "application/json");
    r.headers.emplace_back("Accept", "application/json, text/event-stream");
    if (authorised) r.headers.emplace_back("Authorization", "Bearer " + secret);
    r.on_body = std::move(on_body);
    auto answer = http_send(r);
    if (!answer) FAIL(render(answer.error()));
    return *answer;
  }
};

json modern(const std::string& method, json params = json::object()) {
  params["_meta"] = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"}, {"io.modelcontextprotocol/clientCapabilities", json::object()}};
  return {{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", std::move(params)}};
}
http_headers headers_of(const json& m) {
  http_headers all = {{"MCP-Protocol-Version", "2026-07-28"}, {"Mcp-Method", m["method"]}};
  if (m["params"].contains("name")) all.emplace_back("Mcp-Name", m["params"]["name"]);
  return all;
}

} // namespace

TEST_CASE("mcp over pipes: lines in pieces, empty, too long and broken; a call goes on while others are answered; the end cancels it") {
  piped p;
  p.write("\n\r\n{\"jsonrpc\":\"2.0\",");
  p.write("\"id\":1,\"method\":\"ping\"}\n");
  CHECK(p.read()["id"] == 1);
  p.write("{broken\n");
  CHECK(p.read()["error"]["code"] == -32700);
  p.write(std::string(9 << 20, 'x') + "\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n");
  CHECK_THAT(p.read()["error"]["message"].get<std::string>(), Contains("at most 8 MiB"));
  CHECK(p.read()["id"] == 2);
  p.write(R"({"jsonrpc":"2.0","id":"w","method":"tools/call","params":{"name":"wait","_meta":{"progressToken":1}}})" "\n");
  CHECK(p.read()["method"] == "notifications/progress");
  p.write("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\n");
  CHECK(p.read()["id"] == 3); // beside the call
  ::close(p.to[1]);
  p.to[1] = -1;
  CHECK(p.read().is_null()); // the call was cancelled, and is not answered
}

TEST_CASE("mcp over HTTP: who is let in") {
  over_http h;
  const auto list = modern("tools/list");
  CHECK(h.send("POST", list.dump(), headers_of(list)).status == 200);
  CHECK(h.send("POST", list.dump(), headers_of(list), false).status == 401);
  auto elsewhere = headers_of(list);
  elsewhere.emplace_back("Origin", "https://evil.example");
  CHECK(h.send("POST", list.dump(), elsewhere).status == 403);
  auto rebound = headers_of(list);
  rebound.emplace_back("Host", "evil.example");
  CHECK(h.send("POST", list.dump(), rebound).status == 403);
  CHECK(h.send("GET", "", {}).status == 405);
  web::listen_options off;
  off.address = "0.0.0.0";
  const auto refused = web::listener::open(off);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ec::invalid_argument);
}

TEST_CASE("mcp over HTTP: headers must say what the body says, unknown methods and versions have their status") {
  over_http h;
  const auto list = modern("tools/list");
  auto headers = headers_of(list);
  headers[1].second = "tools/call";
  auto refused = h.send("POST", list.dump(), headers);
  CHECK(refused.status == 400);
  CHECK(json::parse(refused.body)["error"]["code"] == -32020);
  CHECK(h.send("POST", list.dump(), {}).status == 400);
  const auto nothing = modern("no/such");
  CHECK(h.send("POST", nothing.dump(), headers_of(nothing)).status == 404);
  auto call = modern("tools/call", {{"name", "echo"}, {"arguments", {{"text", "a"}}}});
  headers = headers_of(call);
  headers[2].second = "=?base64?ZWNobw==?="; // "echo"
  CHECK(h.send("POST", call.dump(), headers).status == 200);
  CHECK(h.send("POST", "{", {}).status == 400);
  CHECK(h.send("POST", std::string(100000, '['), {}).status == 400);
  CHECK(h.send("POST", R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})", {}).status == 400); // neither revision
}

TEST_CASE("mcp over HTTP: a call streams its progress, and its client's leaving cancels it") {
  over_http h;
  auto call = modern("tools/call", {{"name", "echo"}, {"arguments", {{"text", "hello"}}}});
  call["params"]["_meta"]["progressToken"] = "t";
  const auto done = h.send("POST", call.dump(), headers_of(call));
  CHECK(*done.header("content-type") == "text/event-stream");
  CHECK_THAT(done.body, Contains("notifications/progress") && Contains("hello"));

  call = modern("tools/call", {{"name", "wait"}});
  call["params"]["_meta"]["progressToken"] = "t";
  const auto left = h.send("POST", call.dump(), headers_of(call), true, [](const http_response&, std::string_view chunk) { return chunk.find("waiting") == std::string_view::npos; });
  CHECK(left.stopped);
  // The listener's end waits for the call; "wait" gives up after a minute only.
}

TEST_CASE("mcp over HTTP: two clients of an earlier revision at once, each with its session; ids do not collide") {
  over_http h;
  const json hello = {{"jsonrpc", "2.0"}, {"id", 1}, {"method", "initialize"}, {"params", {{"protocolVersion", "2025-11-25"}, {"capabilities", json::object()}}}};
  const auto a = h.send("POST", hello.dump(), {}), b = h.send("POST", hello.dump(), {});
  REQUIRE(a.header("mcp-session-id"));
  REQUIRE(b.header("mcp-session-id"));
  CHECK(*a.header("mcp-session-id") != *b.header("mcp-session-id"));
  const json wait = {{"jsonrpc", "2.0"}, {"id", 5}, {"method", "tools/call"}, {"params", {{"name", "wait"}, {"_meta", {{"progressToken", 1}}}}}};
  std::atomic<int> waiting = 0;
  std::string heard[2];
  const auto begin = [&](int i, const std::string& session) {
    return std::thread([&, i, session] {
      (void)h.send("POST", wait.dump(), {{"Mcp-Session-Id", session}}, true, [&, i](const http_response&, std::string_view chunk) {
        if (heard[i].empty()) ++waiting;
        heard[i] += chunk;
        return true;
      });
    });
  };
  auto one = begin(0, *a.header("mcp-session-id")), two = begin(1, *b.header("mcp-session-id"));
  while (waiting < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const json cancel = {{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", 5}}}};
  CHECK(h.send("POST", cancel.dump(), {{"Mcp-Session-Id", *a.header("mcp-session-id")}}).status == 202);
  one.join();
  CHECK(heard[0].find("result") == std::string::npos);
  CHECK(h.send("DELETE", "", {{"Mcp-Session-Id", *b.header("mcp-session-id")}}).status == 204); // ends the other's
  two.join();
  CHECK(h.send("POST", wait.dump(), {{"Mcp-Session-Id", *b.header("mcp-session-id")}}).status == 404);
}

TEST_CASE("the token is made once, for its owner alone") {
  const auto folder = temp_dir::create("pragma-test-");
  REQUIRE(folder);
  const auto file = folder->path() / "home" / "token";
  const auto first = web::kept_secret(file);
  REQUIRE(first);
  CHECK(first->size() == 32);
  CHECK(*web::kept_secret(file) == *first);
  CHECK((std::filesystem::status(file).permissions() & std::filesystem::perms::all) == (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
}
