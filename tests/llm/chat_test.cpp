// Models over real sockets and real processes: what a user notices when an endpoint behaves, and when it doesn't.
#include "chat_fixture.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <ctime>
#include <fstream>

using namespace pragma;
using namespace pragma::test;

TEST_CASE("a streamed answer arrives whole, with progress and the endpoint's own token counts") {
  const std::string text = "Use wider vectors.\n```cpp\nint x;\n```\nUnicode: \xc3\xa9 \xe2\x82\xac";
  stub_server server({completion_stream(text, true, true, 1000)});
  auto model = make_chat_model(openai(server), {});
  REQUIRE(model);
  size_t progress = 0;
  auto answer = (*model)->ask(question, [&](size_t chars) { progress = chars; });
  REQUIRE(answer);
  CHECK(answer->text == text);
  CHECK(answer->model == "stub-model");
  CHECK(answer->finish_reason == "stop");
  CHECK(answer->usage.prompt_tokens == 100);
  CHECK_FALSE(answer->usage.estimated);
  CHECK(progress == text.size());

  const auto sent = server.requests().at(0);
  CHECK(sent.method == "POST");
  CHECK(sent.path == "/v1/chat/completions");
  CHECK(sent.header("authorization") == std::string("Bearer ") + secret);
  const auto body = json::parse(sent.body);
  CHECK(body["model"] == "stub-model");
  CHECK(body["stream"] == true);
  CHECK(body["stream_options"]["include_usage"] == true);
  CHECK(body["messages"][1]["content"] == "what is it?");
  CHECK_FALSE(body.contains("temperature"));
  CHECK_FALSE(body.contains("max_tokens"));
}

TEST_CASE("a stream may be cut anywhere, use CRLF, comments and forget its last empty line") {
  stub_reply reply;
  reply.headers = {{"Content-Type", "text/event-stream; charset=utf-8"}};
  const std::string stream = ": keep-alive\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"one \"}}]}\r\n\r\n"
                             "event: x\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"two\"},\"finish_reason\":\"length\"}]}";
  for (const char c : stream) reply.chunks.emplace_back(1, c);
  stub_server server({reply});
  auto answer = ask(openai(server));
  REQUIRE(answer);
  CHECK(answer->text == "one two");
  CHECK(answer->finish_reason == "length");
}

TEST_CASE("an answer in one piece, without usage, is counted by an estimate that says so") {
  stub_server server({completion("sixteen letters!", false, "length")});
  auto c = openai(server);
  c.stream = false;
  c.temperature = 0.5;
  c.max_tokens = 77;
  c.extra_body = {{"reasoning_effort", "low"}};
  auto answer = ask(c);
  REQUIRE(answer);
  CHECK(answer->text == "sixteen letters!");
  CHECK(answer->finish_reason == "length");
  CHECK(answer->usage.completion_tokens == 4);
  CHECK(answer->usage.prompt_tokens > 0);
  CHECK(answer->usage.estimated);
  const auto body = json::parse(server.requests().at(0).body);
  CHECK(body["stream"] == false);
  CHECK(body["temperature"] == 0.5);
  CHECK(body["max_tokens"] == 77);
  CHECK(body["reasoning_effort"] == "low");
}

TEST_CASE("a server that ignores \"stream\" and one that has never heard of stream_options are both understood") {
  stub_server whole({completion("in one piece")});
  auto answer = ask(openai(whole));
  REQUIRE(answer);
  CHECK(answer->text == "in one piece");

  stub_server old({failure(400, "unknown field 'stream_options'"), completion_stream("ok"), completion_stream("again")});
  auto model = make_chat_model(openai(old), {});
  REQUIRE(model);
  auto first = (*model)->ask(question);
  REQUIRE(first);
  CHECK(first->text == "ok");
  CHECK(first->usage.retries == 0);
  REQUIRE((*model)->ask(question));
  CHECK(old.requests().size() == 3); // it is asked for only once
  CHECK_FALSE(json::parse(old.requests().at(2).body).contains("stream_options"));
}

TEST_CASE("401 is not retried, names the variable that was looked at, and never the key") {
  stub_server server({failure(401, std::string("Incorrect API key provided: ") + secret)});
  auto dir = temp_dir::create("llm");
  REQUIRE(dir);
  auto answer = ask(openai(server), dir->path() / "t.jsonl");
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ec::remote_failed);
  const auto shown = render(answer.error());
  CHECK_THAT(shown, Catch::Contains("401"));
  CHECK_THAT(shown, Catch::Contains("PRAGMA_TEST_KEY"));
  CHECK_THAT(shown, Catch::Contains("Incorrect API key"));
  CHECK_THAT(shown, !Catch::Contains(secret));
  CHECK_THAT(everything_in(dir->path()), !Catch::Contains(secret));
  CHECK(server.requests().size() == 1);

  ::unsetenv("PRAGMA_TEST_NO_KEY");
  stub_server other({failure(401, "no")});
  auto c = openai(other);
  c.key_env = "PRAGMA_TEST_NO_KEY";
  auto none = ask(c);
  REQUIRE_FALSE(none);
  CHECK_THAT(render(none.error()), Catch::Contains("PRAGMA_TEST_NO_KEY") && Catch::Contains("not set"));
  CHECK(other.requests().at(0).header("authorization").empty());
}

TEST_CASE("a model that repeats the key does not get it into the answer or the transcript") {
  stub_server server({completion(std::string("your key is ") + secret)});
  auto dir = temp_dir::create("llm");
  REQUIRE(dir);
  auto answer = ask(openai(server), dir->path() / "t.jsonl");
  REQUIRE(answer);
  CHECK_THAT(answer->text, !Catch::Contains(secret));
  CHECK_THAT(everything_in(dir->path()), !Catch::Contains(secret));
}

TEST_CASE("400, 403 and 404 are not retried") {
  for (const int status : {400, 403, 404}) {
    stub_server server({failure(status, "no such thing")});
    auto answer = ask(openai(server));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ec::remote_failed);
    CHECK_THAT(answer.error().message, Catch::Contains(std::to_string(status)) && Catch::Contains("no such thing"));
    CHECK(server.requests().size() == 1);
  }
}

TEST_CASE("429 is retried after the time that the server names") {
  stub_server server({failure(429, "slow down", {{"Retry-After", "0.25"}}), completion_stream("now")});
  auto answer = ask(openai(server));
  REQUIRE(answer);
  CHECK(answer->text == "now");
  CHECK(answer->usage.retries == 1);
  const auto sent = server.requests();
  REQUIRE(sent.size() == 2);
  CHECK(seconds_between(sent[0], sent[1]) >= 0.24);
}

TEST_CASE("Retry-After may be a date; one that is too far away is not waited for") {
  auto date_in = [](int seconds) {
    const std::time_t when = std::time(nullptr) + seconds;
    char text[64];
    std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", std::gmtime(&when));
    return std::string(text);
  };
  stub_server past({failure(503, "busy", {{"Retry-After", date_in(-100)}}), completion("now")});
  REQUIRE(ask(openai(past)));
  CHECK(past.requests().size() == 2);

  stub_server far({failure(429, "quota", {{"Retry-After", date_in(3600)}})});
  auto answer = ask(openai(far));
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ec::remote_failed);
  CHECK_THAT(answer.error().hint, Catch::Contains("max_wait_seconds"));
  CHECK(far.requests().size() == 1);
}

TEST_CASE("a 500 and a connection reset are retried, and given up after the configured number of tries") {
  stub_reply reset;
  reset.reset = true;
  stub_server server({failure(500, "oops"), reset, completion_stream("at last")});
  auto answer = ask(openai(server));
  REQUIRE(answer);
  CHECK(answer->text == "at last");
  CHECK(answer->usage.retries == 2);

  stub_server broken(std::vector<stub_reply>(3, failure(500, "still broken")));
  auto none = ask(openai(broken));
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ec::remote_failed);
  CHECK_THAT(none.error().message, Catch::Contains("still broken") && Catch::Contains("3 tries"));
  CHECK(broken.requests().size() == 3);
  CHECK(broken.unexpected() == 0);
}

TEST_CASE("an endpoint that is silent for too long is a timeout, after retries") {
  stub_reply hang;
  hang.hang = true;
  stub_server server({hang, hang});
  auto c = openai(server);
  c.timeout_seconds = 0.2;
  c.retries = 1;
  auto answer = ask(c);
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ec::timeout);
  CHECK(server.requests().size() == 2);
}

TEST_CASE("a stream that breaks off is an error, and is retried") {
  auto torn = completion_stream("half of the ans", true, false);
  torn.truncate = true;
  auto quiet = completion_stream("ends without saying so", true, false);
  stub_server server({torn, quiet, completion_stream("whole")});
  auto dir = temp_dir::create("llm");
  REQUIRE(dir);
  auto answer = ask(openai(server), dir->path() / "t.jsonl");
  REQUIRE(answer);
  CHECK(answer->text == "whole");
  CHECK(answer->usage.retries == 2);
  // The tries that failed had used tokens too.
  CHECK(answer->usage.prompt_tokens > 100);
  CHECK(answer->usage.estimated);
  CHECK(lines_of(dir->path() / "t.jsonl").at(0)["failed_tries"].size() == 2);

  stub_server again({torn, torn, torn});
  auto none = ask(openai(again));
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ec::remote_failed);
}

TEST_CASE("an error in the middle of a stream is told with the endpoint's words") {
  auto reply = completion_stream("half", true, false);
  reply.chunks.push_back("data: {\"error\": {\"message\": \"out of memory on the GPU\"}}\n\n");
  stub_server server({reply, reply, reply});
  auto answer = ask(openai(server));
  REQUIRE_FALSE(answer);
  CHECK_THAT(answer.error().message, Catch::Contains("out of memory on the GPU"));
}

TEST_CASE("an answer of 10 MB is cut off and refused, streamed or not, and not asked for again") {
  const std::string huge(10u << 20, 'x');
  for (const bool stream : {true, false}) {
    stub_server server({stream ? completion_stream(huge, true, true, 32768) : completion(huge)});
    auto c = openai(server);
    c.stream = stream;
    auto answer = ask(c);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ec::limit_exceeded);
    CHECK_THAT(answer.error().message, Catch::Contains("2.0 MiB"));
    CHECK(server.requests().size() == 1);
  }
  stub_reply one_event;
  one_event.headers = {{"Content-Type", "text/event-stream"}};
  one_event.chunks = {"data: " + huge};
  stub_server server({one_event});
  auto answer = ask(openai(server));
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ec::limit_exceeded);
}

TEST_CASE("malformed answers are errors that quote them") {
  for (const auto* body : {"<html>Bad gateway</html>", "{\"choices\":", "[]", "{}", "{\"choices\": []}", "{\"choices\": [1]}", ""}) {
    stub_reply reply;
    reply.headers = {{"Content-Type", "application/json"}};
    reply.body = body;
    stub_server server({reply});
    auto c = openai(server);
    c.retries = 0;
    auto answer = ask(c);
    INFO(body);
    if (std::string(body) == "{\"choices\": [1]}") {
      REQUIRE(answer); // an answer without text: the reader of answers says so
      CHECK(answer->text.empty());
    } else {
      REQUIRE_FALSE(answer);
      CHECK(answer.error().code == ec::remote_failed);
    }
  }
}

TEST_CASE("bytes that are not UTF-8, and emoji cut in half, do not lose the answer") {
  stub_reply reply;
  reply.headers = {{"Content-Type", "text/event-stream"}};
  reply.chunks = {"data: {\"choices\":[{\"delta\":{\"content\":\"a\xff\xfe b \"}}]}\n\n",
                  "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\n",
                  "data: {\"choices\":[{\"delta\":{\"content\":\"\\ude00 c \\ud83d\\ude00\"},\"finish_reason\":\"stop\"}]}\n\n"};
  stub_server server({reply});
  auto dir = temp_dir::create("llm");
  REQUIRE(dir);
  auto answer = ask(openai(server), dir->path() / "t.jsonl");
  REQUIRE(answer);
  CHECK_THAT(answer->text, Catch::StartsWith("a?? b ") && Catch::EndsWith(" c \xf0\x9f\x98\x80"));
  CHECK(lines_of(dir->path() / "t.jsonl").size() == 1);
}

TEST_CASE("what a model thinks aloud is kept in the transcript but is not part of the answer") {
  stub_reply reply;
  reply.headers = {{"Content-Type", "text/event-stream"}};
  reply.chunks = {"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"first I ponder\"}}]}\n\n",
                  "data: {\"choices\":[{\"delta\":{\"content\":\"<think>\\nthen I doubt</think>\\nanswer\"},\"finish_reason\":\"stop\"}]}\n\n"};
  stub_server server({reply});
  auto dir = temp_dir::create("llm");
  REQUIRE(dir);
  auto answer = ask(openai(server), dir->path() / "t.jsonl");
  REQUIRE(answer);
  CHECK_THAT(answer->text, !Catch::Contains("ponder") && !Catch::Contains("doubt") && Catch::Contains("answer"));
  const auto kept = lines_of(dir->path() / "t.jsonl").at(0)["reasoning"].get<std::string>();
  CHECK_THAT(kept, Catch::Contains("ponder") && Catch::Contains("doubt"));
}

TEST_CASE("thinking is stripped in the forms that models use") {
  CHECK(strip_thinking("plain") == "plain");
  CHECK(strip_thinking("<think>a</think>b") == "b");
  CHECK(strip_thinking("opened by the template</think>b") == "b");
  CHECK(strip_thinking("<think>cut off in the middle").empty());
  CHECK(strip_thinking("```cpp\n// </think>\n```") == "```cpp\n// </think>\n```");
}

TEST_CASE("a malformed answer that is sent back is neither empty nor endless") {
  stub_server server({completion("ok"), completion("ok")});
  auto model = make_chat_model(openai(server), {});
  REQUIRE(model);
  for (const auto& earlier : {std::string(), std::string(1 << 20, 'x')}) {
    auto messages = question;
    messages.push_back({"assistant", earlier});
    messages.push_back({"user", "again"});
    REQUIRE((*model)->ask(messages));
    const auto sent = json::parse(server.requests().back().body)["messages"][2]["content"].get<std::string>();
    CHECK_FALSE(sent.empty());
    CHECK(sent.size() < 100000);
  }
}

TEST_CASE("a call in flight, and a wait between tries, can be cancelled") {
  stub_reply hang;
  hang.hang = true;
  for (const auto& reply : {hang, failure(503, "later", {{"Retry-After", "4"}})}) {
    stub_server server({reply});
    std::atomic<bool> cancel = false;
    std::thread canceller([&] {
      server.wait_for_requests(1);
      cancel = true;
    });
    const auto start = std::chrono::steady_clock::now();
    auto answer = ask(openai(server), {}, &cancel);
    canceller.join();
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ec::interrupted);
    CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 3);
  }
}

TEST_CASE("nobody listening is an error that asks whether the server is up") {
  uint16_t port = 0;
  {
    stub_server server(std::vector<stub_reply>{});
    port = server.port();
  }
  llm_config c;
  c.base_url = "http://127.0.0.1:" + std::to_string(port) + "/v1";
  c.model = "m";
  c.retries = 1;
  c.retry_seconds = 0.01;
  auto answer = ask(c);
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ec::remote_failed);
  CHECK_THAT(answer.error().hint, Catch::Contains("server up"));
}

