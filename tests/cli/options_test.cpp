// What the shared options refuse before anything is started or recorded.
#include "base/files.hpp"
#include "cli/options.hpp"
#include "execution/contention.hpp"

#include <catch2/catch.hpp>

using namespace pragma;
using Catch::Contains;

namespace {

std::string refused(const cli::run_options& options, const std::string& task) {
  const auto request = options.request(task, "");
  REQUIRE_FALSE(request);
  return request.error().message;
}

} // namespace

TEST_CASE("a model and a command are two coders: neither is dropped silently") {
  const auto folder = temp_dir::create("pragma-test-");
  REQUIRE(folder);
  const auto task = (folder->path() / "task.py").string();
  REQUIRE(write_file_atomic(task, "class Model: pass\n"));
  cli::run_options options;
  CHECK(options.request(task, ""));
  options.command = "my-agent";
  CHECK(options.request(task, ""));
  for (auto* other : {&options.model, &options.base_url, &options.llm_config}) {
    *other = "x";
    CHECK_THAT(refused(options, task), Contains("two coders"));
    other->clear();
  }
}

TEST_CASE("--threads takes a number, or all: the cores of one socket") {
  const auto threads_of = [](const std::string& given) {
    CLI::App app;
    int threads = 1;
    cli::add_threads(app, threads, "threads");
    app.parse("--threads " + given);
    return threads;
  };
  CHECK(threads_of("3") == 3);
  CHECK(threads_of("all") == measuring_cores());
  CHECK(measuring_cores() >= 1);
  for (const char* wrong : {"some", "0", "-1", "2000", "1.5"}) CHECK_THROWS_AS(threads_of(wrong), CLI::ParseError);
}

TEST_CASE("what is no task file is refused before a run is recorded") {
  const auto folder = temp_dir::create("pragma-test-");
  REQUIRE(folder);
  const cli::run_options options;
  CHECK_THAT(refused(options, (folder->path() / "task.py").string()), Contains("no such task file"));
  CHECK_THAT(refused(options, folder->path().string()), Contains("not a task file"));
}
