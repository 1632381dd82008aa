// The HTTP client against a server that does what servers of strangers do.
#include "base/http.hpp"
#include "stub_server.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

using namespace pragma;
using namespace pragma::test;

namespace {

http_request get(const stub_server& server, const std::string& path = "/x") {
  http_request r;
  r.url = server.url(path);
  r.timeout_seconds = 10;
  return r;
}

stub_reply text(std::string body, int status = 200) {
  stub_reply reply;
  reply.status = status;
  reply.headers = {{"X-Name", "value"}};
  reply.body = std::move(body);
  return reply;
}

} // namespace

TEST_CASE("a response of any status comes with its headers and body") {
  stub_server server({text("hello"), text("gone", 404), text("")});
  auto found = http_send(get(server, "/a?b=c"));
  REQUIRE(found);
  CHECK(found->status == 200);
  CHECK(found->ok());
  CHECK(found->body == "hello");
  REQUIRE(found->header("X-NAME"));
  CHECK(*found->header("x-name") == "value");
  CHECK_FALSE(found->header("absent"));
  CHECK(server.requests().at(0).path == "/a?b=c");
  auto gone = http_send(get(server));
  REQUIRE(gone);
  CHECK(gone->status == 404);
  CHECK_FALSE(gone->ok());
  auto post = get(server);
  post.method = "POST";
  post.body = std::string("a\0b", 3);
  post.headers = {{"X-Key", "v"}};
  REQUIRE(http_send(post));
  CHECK(server.requests().at(2).method == "POST");
  CHECK(server.requests().at(2).body == post.body);
  CHECK(server.requests().at(2).header("x-key") == "v");
  CHECK(server.requests().at(2).header("expect").empty());
}

TEST_CASE("a body that is too long is limit_exceeded, also when it was sent compressed") {
  stub_server plain({text(std::string(10000, 'x'))});
  auto request = get(plain);
  request.max_body_bytes = 9999;
  auto refused = http_send(request);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ec::limit_exceeded);

  // The start of a gzip of zero bytes: a deflate block in which each further bit stands for 258 more of them.
  static const unsigned char head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0xec, 0xc1, 1, 1, 0, 0, 0, 0x80, 0x90, 0xfe, 0xaf, 0xee, 8, 0x0a};
  std::string zeros(reinterpret_cast<const char*>(head), sizeof head);
  zeros.append(2000, '\0');
  auto reply = text(zeros);
  reply.headers = {{"Content-Encoding", "gzip"}};
  stub_server packed({reply});
  auto small = get(packed);
  small.max_body_bytes = 4096; // more than was sent, less than it unpacks to
  auto bomb = http_send(small);
  REQUIRE_FALSE(bomb);
  CHECK(bomb.error().code == ec::limit_exceeded);
}

TEST_CASE("endless headers are refused") {
  stub_reply reply = text("x");
  for (int i = 0; i < 400; ++i) reply.headers.emplace_back("X-" + std::to_string(i), std::string(1000, 'h'));
  stub_server server({reply});
  auto refused = http_send(get(server));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ec::limit_exceeded);
}

TEST_CASE("silence is a timeout, a cancel flag is interrupted, a reset and a torn body are remote_failed") {
  stub_reply hang, reset, torn = text("0123456789");
  hang.hang = true;
  reset.reset = true;
  torn.truncate = true;
  stub_server server({hang, hang, reset, torn});
  auto request = get(server);
  request.timeout_seconds = 0.1;
  CHECK(http_send(request).error().code == ec::timeout);

  std::atomic<bool> cancel = false;
  request.timeout_seconds = 30;
  request.cancel = &cancel;
  std::thread canceller([&] {
    server.wait_for_requests(2);
    cancel = true;
  });
  CHECK(http_send(request).error().code == ec::interrupted);
  canceller.join();

  CHECK(http_send(get(server)).error().code == ec::remote_failed);
  CHECK(http_send(get(server)).error().code == ec::remote_failed);
}

TEST_CASE("a stream comes chunk by chunk with its status, and can be stopped") {
  stub_reply reply;
  reply.chunks = {"one", "two", "three"};
  reply.chunk_delay_seconds = 0.02;
  stub_server server({reply, reply});
  std::string all;
  auto request = get(server);
  request.on_body = [&](const http_response& so_far, std::string_view chunk) {
    CHECK(so_far.status == 200);
    all += chunk;
    return true;
  };
  auto whole = http_send(request);
  REQUIRE(whole);
  CHECK(all == "onetwothree");
  CHECK(whole->body.empty());
  CHECK_FALSE(whole->stopped);

  all.clear();
  request.on_body = [&](const http_response&, std::string_view chunk) {
    all += chunk;
    return all.size() < 4;
  };
  auto part = http_send(request);
  REQUIRE(part);
  CHECK(part->stopped);
  CHECK(all == "onetwo");
}

TEST_CASE("redirects are followed only when asked for, never to another protocol, and never with the key to another host") {
  auto to = [](const std::string& where) {
    auto reply = text("", 302);
    reply.headers = {{"Location", where}};
    return reply;
  };
  stub_server target({text("there")});
  stub_server server({to(target.url("/y")), to(target.url("/y")), to("file:///etc/passwd"), to("/again"), to("/again"), to("/again")});
  auto kept = http_send(get(server));
  REQUIRE(kept);
  CHECK(kept->status == 302);
  auto request = get(server);
  request.max_redirects = 2;
  request.headers = {{"Authorization", "Bearer secret-key"}};
  auto followed = http_send(request);
  REQUIRE(followed);
  CHECK(followed->body == "there");
  CHECK(followed->url == target.url("/y"));
  CHECK(target.requests().at(0).header("authorization").empty());
  CHECK(http_send(request).error().code == ec::remote_failed);
  CHECK(http_send(request).error().code == ec::remote_failed); // a loop
}

TEST_CASE("requests that cannot be meant are invalid_argument, without showing secrets") {
  http_request request;
  for (const char* url : {"", "file:///etc/passwd", "ftp://x/y", "localhost:80", "gopher://x", "http://a\r\nb"}) {
    request.url = url;
    auto refused = http_send(request);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ec::invalid_argument);
  }
  request.url = "http://127.0.0.1:1/";
  request.headers = {{"Authorization", "Bearer sec\r\nret"}};
  auto injected = http_send(request);
  REQUIRE_FALSE(injected);
  CHECK(injected.error().code == ec::invalid_argument);
  CHECK_THAT(injected.error().message, !Catch::Contains("sec"));
  request.headers = {};
  request.method = "PATCHY";
  CHECK(http_send(request).error().code == ec::invalid_argument);

  CHECK(public_url("https://me:word@host:8/a/b?key=1#x") == "https://host:8/a/b");
  CHECK(public_url("http://host/a@b") == "http://host/a@b");
}

TEST_CASE("a proxy of the environment is used only when asked for") {
  stub_server server({text("direct")}), proxy({text("proxied")});
  ::setenv("http_proxy", proxy.url("").c_str(), 1);
  auto request = get(server);
  auto direct = http_send(request);
  request.proxy_from_environment = true;
  auto proxied = http_send(request);
  ::unsetenv("http_proxy");
  REQUIRE(direct);
  CHECK(direct->body == "direct");
  REQUIRE(proxied);
  CHECK(proxied->body == "proxied");
}

TEST_CASE("Retry-After is seconds or a date") {
  auto with = [](const char* value) {
    http_response r;
    r.headers = {{"retry-after", value}};
    return retry_after_seconds(r);
  };
  CHECK(with("7") == 7.0);
  CHECK(with("0.5") == 0.5);
  CHECK(with("Thu, 01 Jan 1970 00:00:00 GMT") == 0.0);
  CHECK(with("Fri, 31 Dec 2100 23:59:59 GMT") > 1e8);
  CHECK_FALSE(with("-1"));
  CHECK_FALSE(with("soon"));
  CHECK_FALSE(with(""));
  CHECK_FALSE(retry_after_seconds(http_response{}));
}
