// What ends a run of a model: budgets; models that are a command; the configuration.
#include "chat_fixture.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <ctime>
#include <fstream>

using namespace pragma;
using namespace pragma::test;

TEST_CASE("the token budget stops before the next call, and counts earlier parts of the run") {
  stub_server server({completion_stream(std::string(400, 'x')), completion_stream(std::string(400, 'y'))});
  auto dir = temp_dir::create("llm");
  REQUIRE(dir);
  const auto file = dir->path() / "t.jsonl";
  auto c = openai(server);
  c.budget_tokens = 200; // the first exchange costs 201
  {
    auto model = make_chat_model(c, file);
    REQUIRE(model);
    REQUIRE((*model)->ask(question));
    CHECK((*model)->total().prompt_tokens == 100);
    CHECK((*model)->total().completion_tokens == 101);
    auto second = (*model)->ask(question);
    REQUIRE_FALSE(second);
    CHECK(second.error().code == ec::limit_exceeded);
    CHECK_THAT(second.error().message, Catch::Contains("token budget of 200 used up"));
  }
  auto resumed = make_chat_model(c, file, nullptr, chat_usage{});
  REQUIRE(resumed);
  auto third = (*resumed)->ask(question);
  REQUIRE_FALSE(third);
  CHECK(third.error().code == ec::limit_exceeded);
  CHECK(server.requests().size() == 1);
  CHECK(ask(c, file)); // another run, with a budget of its own, in the same folder
  auto again = make_chat_model(c, file, nullptr, chat_usage{});
  REQUIRE(again);
  CHECK_FALSE((*again)->ask(question));
  CHECK(server.requests().size() == 2);
}

TEST_CASE("where the transcript is not here, what the run's record says counts against the budgets") {
  stub_server server({completion("fine"), completion("fine"), completion("fine")});
  auto dir = temp_dir::create("llm");
  REQUIRE(dir);
  auto c = openai(server);
  c.budget_tokens = 200;
  chat_usage used;
  used.prompt_tokens = 150;
  used.completion_tokens = 49;
  auto model = make_chat_model(c, dir->path() / "t.jsonl", nullptr, used);
  REQUIRE(model);
  const auto refused = (*model)->ask(question);
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message, Catch::Contains("199 were used"));
  CHECK(server.requests().empty());
  c.budget_tokens = 0;
  c.price_prompt = 1;
  c.budget_cost = 2;
  used.cost = 2;
  model = make_chat_model(c, {}, nullptr, used);
  REQUIRE(model);
  CHECK((*model)->ask(question).error().code == ec::limit_exceeded);
  used.cost = 1;
  model = make_chat_model(c, {}, nullptr, used);
  REQUIRE(model);
  CHECK((*model)->ask(question));
}

TEST_CASE("retries count against the token budget") {
  stub_server server(std::vector<stub_reply>(5, completion_stream(std::string(400, 'x'), true, false)));
  auto c = openai(server);
  c.retries = 5;
  c.budget_tokens = 150; // each failed try costs about 106
  auto answer = ask(c);
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ec::limit_exceeded);
  CHECK(server.requests().size() == 2);
}

TEST_CASE("the money budget stops a run") {
  stub_server server({completion_stream(std::string(396, 'x')), completion_stream("never")});
  auto c = openai(server);
  c.price_prompt = 1000000;      // 1 a token
  c.price_completion = 2000000;  // 2 a token
  c.budget_cost = 250;
  auto model = make_chat_model(c, {});
  REQUIRE(model);
  auto first = (*model)->ask(question);
  REQUIRE(first);
  CHECK(first->usage.cost == Approx(100 + 200));
  auto second = (*model)->ask(question);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ec::limit_exceeded);
  CHECK_THAT(second.error().message, Catch::Contains("money budget"));
}

TEST_CASE("a command gets the prompt on stdin and answers on stdout") {
  llm_config c;
  c.kind = "command";
  c.command = {"sh", "-c", "cat; echo noise >&2"};
  auto model = make_chat_model(c, {});
  REQUIRE(model);
  CHECK((*model)->name() == "command:sh");
  c.command = {"/bin/sh", "-c", "false --key secret"}; // a line for the shell, as `--command` gives it
  auto failing = make_chat_model(c, {});
  REQUIRE(failing);
  CHECK((*failing)->name() == "command:false");
  auto failed = (*failing)->ask(question);
  REQUIRE_FALSE(failed);
  CHECK_THAT(failed.error().message, Catch::Contains("the command 'false' failed") && !Catch::Contains("secret"));
  auto answer = (*model)->ask(question);
  REQUIRE(answer);
  CHECK_THAT(answer->text, Catch::Contains("# Instructions\n\nbe brief") && Catch::Contains("# Request\n\nwhat is it?"));
  CHECK_THAT(answer->text, !Catch::Contains("noise"));
  CHECK(answer->usage.estimated);
}

TEST_CASE("a command that fails, hangs, floods or does not exist is told so") {
  llm_config c;
  c.kind = "command";
  c.command = {"sh", "-c", "echo some words; echo the reason >&2; exit 3"};
  auto failed = ask(c);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ec::remote_failed);
  CHECK_THAT(failed.error().message, Catch::Contains("the reason") && Catch::Contains("3"));

  c.command = {"sh", "-c", "sleep 60"};
  c.timeout_seconds = 0.2;
  auto hung = ask(c);
  REQUIRE_FALSE(hung);
  CHECK(hung.error().code == ec::timeout);

  c.command = {"sh", "-c", "head -c 10000000 /dev/zero | tr '\\0' x"};
  c.timeout_seconds = 30;
  auto flooded = ask(c);
  REQUIRE_FALSE(flooded);
  CHECK(flooded.error().code == ec::limit_exceeded);

  c.command = {"pragma-no-such-program"};
  auto absent = ask(c);
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ec::not_found);

  std::atomic<bool> cancel = true;
  c.command = {"sh", "-c", "sleep 60"};
  auto cancelled = ask(c, {}, &cancel);
  REQUIRE_FALSE(cancelled);
  CHECK(cancelled.error().code == ec::interrupted);
}

TEST_CASE("the configuration is checked key by key") {
  CHECK(parse_llm_config(R"({"_comment": "x", "base_url": "http://127.0.0.1:1/v1", "model": "m", "timeout_seconds": 5})", "c"));
  struct bad {
    const char *text, *word;
  };
  for (const auto& [text, word] : std::vector<bad>{
           {R"({"base_ulr": "http://x/v1", "model": "m"})", "base_url"},
           {R"({"base_url": "http://x/v1"})", "model"},
           {R"({"model": "m"})", "base_url"},
           {R"({"base_url": "ftp://x", "model": "m"})", "http"},
           {R"({"base_url": "http://me:word@x/v1", "model": "m"})", "key_env"},
           {R"({"base_url": "http://x/v1", "model": "m", "retries": "4"})", "retries"},
           {R"({"base_url": "http://x/v1", "model": "m", "retries": 400})", "retries"},
           {R"({"base_url": "http://x/v1", "model": "m", "timeout_seconds": -1})", "timeout_seconds"},
           {R"({"base_url": "http://x/v1", "model": "m", "budget_cost": 1})", "price_prompt"},
           {R"({"kind": "opnai"})", "openai"},
           {R"({"kind": "command"})", "command"},
           {R"({"kind": "replay"})", "replay_file"},
           {R"([1])", "object"},
           {R"({"model": )", "line 1"}}) {
    auto config = parse_llm_config(text, "my.json");
    INFO(text);
    REQUIRE_FALSE(config);
    CHECK_THAT(render(config.error()), Catch::Contains(word) && Catch::Contains("my.json"));
    CHECK_THAT(render(config.error()), !Catch::Contains("me:word"));
  }
}

TEST_CASE("the shipped example of a configuration is valid and names every key") {
  auto text = read_file(std::filesystem::path(TESTS_DIR) / ".." / "configs" / "llm.json.example");
  REQUIRE(text);
  auto config = parse_llm_config(*text, "llm.json.example");
  if (!config) FAIL(render(config.error()));
  const auto example = json::parse(*text);
  const json all = llm_config{};
  for (const auto& [key, value] : all.items()) CHECK(example.contains(key));
}
