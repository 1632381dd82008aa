// What is left of a conversation: every exchange, before its answer is used; and a recorded run once more.
#include "chat_fixture.hpp"

#include <catch2/catch.hpp>

using namespace pragma;
using namespace pragma::test;

TEST_CASE("each exchange is in the transcript before its answer is used, also the failed ones") {
  stub_server server({completion_stream("first"), failure(404, "gone")});
  auto dir = temp_dir::create("llm");
  REQUIRE(dir);
  const auto file = dir->path() / "sub" / "t.jsonl";
  auto model = make_chat_model(openai(server), file);
  REQUIRE(model);
  REQUIRE((*model)->ask(question));
  auto lines = lines_of(file);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0]["answer"] == "first");
  CHECK(lines[0]["messages"][1]["content"] == "what is it?");
  CHECK(lines[0]["usage"]["prompt_tokens"] == 100);
  REQUIRE_FALSE((*model)->ask(question));
  lines = lines_of(file);
  REQUIRE(lines.size() == 2);
  CHECK(lines[1]["error"]["code"] == "remote_failed");
  CHECK((std::filesystem::status(file).permissions() & std::filesystem::perms::others_read) == std::filesystem::perms::none);
}

TEST_CASE("a full disk loses no answer silently") {
  std::error_code ignored;
  if (!std::filesystem::exists("/dev/full", ignored)) return;
  stub_server server({completion_stream("paid for")});
  auto answer = ask(openai(server), "/dev/full");
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ec::io_error);
}

TEST_CASE("a recorded run is replayed in order, ends with a clear error, and goes on where a resumed run stood") {
  auto dir = temp_dir::create("llm");
  REQUIRE(dir);
  const auto recorded = dir->path() / "recorded.jsonl", again = dir->path() / "again.jsonl";
  {
    stub_server server({completion_stream("one"), failure(404, "x"), completion_stream("two"), completion_stream("three")});
    auto model = make_chat_model(openai(server), recorded);
    REQUIRE(model);
    for (int i = 0; i < 4; ++i) (void)(*model)->ask(question);
    std::ofstream(recorded, std::ios::app) << "{\"answer\": \"torn by kill -9";
  }
  llm_config c;
  c.kind = "replay";
  c.replay_file = recorded;
  {
    auto model = make_chat_model(c, again);
    REQUIRE(model);
    CHECK((*model)->ask({{"user", "another question"}})->text == "one");
    CHECK((*model)->ask(question)->text == "two");
    CHECK((*model)->total().cost == 0);
  }
  auto resumed = make_chat_model(c, again, nullptr, chat_usage{});
  REQUIRE(resumed);
  CHECK((*resumed)->ask(question)->text == "three");
  auto end = (*resumed)->ask(question);
  REQUIRE_FALSE(end);
  CHECK(end.error().code == ec::not_found);
  CHECK_THAT(end.error().message, Catch::Contains("no more answers"));
  CHECK_FALSE(make_chat_model(c, recorded)); // never read and written at once
}

TEST_CASE("a transcript that is missing or is no transcript is refused") {
  auto dir = temp_dir::create("llm");
  REQUIRE(dir);
  llm_config c;
  c.kind = "replay";
  c.replay_file = dir->path() / "absent.jsonl";
  auto absent = make_chat_model(c, {});
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ec::not_found);
  std::ofstream(c.replay_file) << "hello\n";
  auto garbled = make_chat_model(c, {});
  REQUIRE_FALSE(garbled);
  CHECK(garbled.error().code == ec::parse_error);
  CHECK_THAT(garbled.error().message, Catch::Contains("line 1"));
}
