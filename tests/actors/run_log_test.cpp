// The log of a run: what is written is read, from any line on; it stays bounded, and nothing in it or in a run's name does harm.
#include "actors/run_log.hpp"
#include "base/files.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <fstream>
#include <sys/resource.h>

using namespace pragma;

namespace {

log_line said(const std::string& text) { return {0, "2026-11-23T10:00:00Z", 1, "coding", text}; }

run_event verifying(const std::string& text) {
  run_event e;
  e.what = "verifying";
  e.attempt = 3;
  e.text = text;
  e.time = "2026-11-23T10:00:00Z";
  return e;
}

} // namespace

TEST_CASE("run log: lines are numbered over a resumption, and read from any of them on") {
  const auto dir = std::move(*temp_dir::create("pragma-log-"));
  run_log first(dir.path(), "r1");
  first.add(said("one"));
  first.add(said("two"));
  run_log resumed(dir.path(), "r1");
  resumed.add(said("three"));
  const auto all = read_run_log(dir.path(), "r1", 0);
  REQUIRE(all.size() == 3);
  CHECK(all[2].n == 3);
  CHECK(all[0].text == "one");
  const auto rest = read_run_log(dir.path(), "r1", 3);
  REQUIRE(rest.size() == 1);
  CHECK(rest[0].text == "three");
  CHECK(read_run_log(dir.path(), "r1", 4).empty());
  CHECK(read_run_log(dir.path(), "none", 0).empty());
}

TEST_CASE("run log: it stays bounded, keeps the newest lines, and a line that a crash cut is none") {
  const auto dir = std::move(*temp_dir::create("pragma-log-"));
  run_log log(dir.path(), "r");
  for (int i = 0; i < 4000; ++i) log.add(said(std::string(200, 'x')));
  CHECK(std::filesystem::file_size(run_log_file(dir.path(), "r")) < 300u << 10);
  std::ofstream(run_log_file(dir.path(), "r"), std::ios::app) << "{\"n\": 4001, \"te";
  const auto lines = read_run_log(dir.path(), "r", 0);
  REQUIRE(lines.size() > 300);
  CHECK(lines.back().n == 4000);
  run_log(dir.path(), "r").add(said("goes on"));
  CHECK(read_run_log(dir.path(), "r", 0).back().text == "goes on");
  for (size_t i = 1; i < lines.size(); ++i) REQUIRE(lines[i].n == lines[i - 1].n + 1);
}

TEST_CASE("run log: a full disk costs the line that it met, and no later one") {
  const auto dir = std::move(*temp_dir::create("pragma-log-"));
  run_log log(dir.path(), "r");
  log.add(said("before"));
  rlimit usual{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &usual) == 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{static_cast<rlim_t>(std::filesystem::file_size(run_log_file(dir.path(), "r")) + 7), usual.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &full) == 0);
  log.add(said("cut"));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &usual) == 0);
  std::signal(SIGXFSZ, ignored);
  log.add(said("after"));
  const auto lines = read_run_log(dir.path(), "r", 0);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].text == "before");
  CHECK(lines[1].text == "after");
}

TEST_CASE("run log: its folder is its user's alone") {
  const auto dir = std::move(*temp_dir::create("pragma-log-"));
  run_log(dir.path() / "logs", "r").add(said("one"));
  CHECK(std::filesystem::status(dir.path() / "logs").permissions() == std::filesystem::perms::owner_all);
}

TEST_CASE("run log: a name leads to no other folder; what is not UTF-8, or long, is kept as text that is") {
  CHECK(run_log_file("/logs", "../../etc/passwd").parent_path() == "/logs");
  CHECK(run_log_file("/logs", "..").parent_path() == "/logs");
  CHECK(run_log_file("/logs", "20261123-t-3fa9c1").filename() == "20261123-t-3fa9c1.jsonl");
  const auto dir = std::move(*temp_dir::create("pragma-log-"));
  run_log log(dir.path(), "r");
  log.add(line_of(verifying("\xff\xfe broken\nin two")));
  log.add(line_of(verifying(std::string(399, 'x') + "\xc3\xa9\xc3\xa9")));
  const auto lines = read_run_log(dir.path(), "r", 0);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].attempt == 3);
  CHECK(lines[0].stage == "verifying");
  CHECK(lines[1].text == std::string(399, 'x') + " ..."); // between characters
}

TEST_CASE("run log: an attempt that is over says how it ended") {
  run_event e;
  e.what = "iteration";
  e.iteration.number = 2;
  e.iteration.verdict.stage = verdict_stage::compare;
  e.iteration.verdict.reason = "no such thing";
  const auto line = line_of(e);
  CHECK(line.attempt == 2);
  CHECK(line.stage == "failed at compare");
  CHECK(line.text == "no such thing");
}
