#include "sandbox/sandbox.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

using namespace pragma;

namespace {

bool has_landlock() {
  for (const auto& [name, value] : sandbox_facts())
    if (name == "landlock") return value.rfind("abi", 0) == 0;
  return false;
}

/// A shell in the sandbox of a tool; it stands for whatever a hijacked compiler might try.
process_result shell(const std::string& script, const std::filesystem::path& scratch, sandbox_policy policy = sandbox_policy::compiler) {
  process_spec spec;
  spec.argv = {"/bin/sh", "-c", script};
  spec.cwd = scratch.string();
  spec.limits.wall_seconds = 10;
  sandbox_options options;
  options.policy = policy;
  options.scratch = scratch;
  REQUIRE(apply_sandbox(spec, options));
  auto result = run_process(spec);
  INFO((result ? "" : render(result.error())));
  REQUIRE(result);
  return *result;
}

} // namespace

TEST_CASE("The facts name all three protections", "[sandbox]") {
  const auto facts = sandbox_facts();
  REQUIRE(facts.size() == 3);
  CHECK(facts[0].first == "seccomp");
  CHECK_THAT(facts[0].second, Catch::StartsWith("yes"));
  CHECK(facts[1].first == "landlock");
  CHECK(facts[2].first == "uid");
}

TEST_CASE("Where the sandbox's user is stopped on the way to a file", "[sandbox]") {
  CHECK(barred_at("/usr/bin/env").empty());
  CHECK(barred_at("/no/such/place").empty()); // what is not there stops nobody
  auto closed = temp_dir::create("pragma-closed-"), open = temp_dir::create("pragma-open-", 0755);
  REQUIRE((closed && open));
  REQUIRE(write_file_atomic(closed->path() / "file", "text"));
  REQUIRE(write_file_atomic(open->path() / "file", "text"));
  ::chmod((open->path() / "file").c_str(), 0644);
  std::filesystem::create_symlink(closed->path() / "file", open->path() / "link");
  CHECK(barred_at(open->path() / "file").empty());
  if (::geteuid() != 0) return; // its user is this one
  CHECK(barred_at(closed->path() / "file") == closed->path());
  CHECK(barred_at(open->path() / "link") == closed->path());
  ::chmod((open->path() / "file").c_str(), 0600);
  CHECK(barred_at(open->path() / "file") == open->path() / "file");
}

TEST_CASE("A TMPDIR that the sandbox's user cannot enter is none for what it needs", "[sandbox]") {
  if (::geteuid() != 0) return; // its user is this one
  const auto closed = temp_dir::create("pragma-closed-");
  REQUIRE(closed);
  const char* set = std::getenv("TMPDIR");
  const std::string before = set ? set : "";
  ::setenv("TMPDIR", closed->path().c_str(), 1);
  const auto ours = temp_dir::create("pragma-ours-"), theirs = temp_dir::create("pragma-theirs-", 0711);
  set ? ::setenv("TMPDIR", before.c_str(), 1) : ::unsetenv("TMPDIR");
  REQUIRE((ours && theirs));
  CHECK(ours->path().parent_path() == closed->path());
  CHECK(theirs->path().parent_path() == "/tmp");
}

TEST_CASE("A tool writes in its scratch folder and nowhere else", "[sandbox]") {
  auto scratch = temp_dir::create("pragma-scratch-", 0711);
  auto other = temp_dir::create("pragma-other-", 0777);
  REQUIRE((scratch && other));
  const auto inside = shell("echo hello > made && cat made && mkdir d && mv made d/ && rm -r d", scratch->path());
  INFO(inside.err);
  CHECK(inside.ok());
  CHECK(inside.out == "hello\n");
  // As root the other uid is stopped by permissions, as an ordinary user Landlock stops it.
  REQUIRE(write_file_atomic(other->path() / "precious", "keep me"));
  ::chmod((other->path() / "precious").c_str(), 0600);
  if (::geteuid() != 0 && !has_landlock()) return;
  const auto outside = shell("echo overwritten > " + (other->path() / "precious").string(), scratch->path());
  CHECK(outside.exit_code != 0);
  CHECK(*read_file(other->path() / "precious") == "keep me");
  if (!has_landlock()) return;
  shell("rm -f " + (other->path() / "precious").string() + "; touch " + (other->path() / "new").string(), scratch->path());
  CHECK(std::filesystem::exists(other->path() / "precious"));
  CHECK_FALSE(std::filesystem::exists(other->path() / "new"));
}

TEST_CASE("A tool has no secrets to read: environment, other processes, private files", "[sandbox]") {
  auto scratch = temp_dir::create("pragma-scratch-", 0711);
  REQUIRE(scratch);
  ::setenv("PRAGMA_TEST_API_KEY", "sk-secret", 1);
  const auto env = shell("env", scratch->path());
  CHECK(env.ok());
  CHECK_THAT(env.out, !Catch::Contains("sk-secret"));
  ::unsetenv("PRAGMA_TEST_API_KEY");
  if (!has_landlock() && ::geteuid() != 0) return;
  for (const auto policy : {sandbox_policy::compiler, sandbox_policy::profiler}) {
    CHECK(shell("cat /proc/" + std::to_string(::getpid()) + "/environ", scratch->path(), policy).exit_code != 0);
    CHECK(shell("cat /etc/shadow", scratch->path(), policy).exit_code != 0);
    CHECK(shell("kill -9 " + std::to_string(::getpid()), scratch->path(), policy).exit_code != 0);
  }
}

TEST_CASE("A tool has no network and cannot become root", "[sandbox]") {
  if (::access("/usr/bin/python3", X_OK) != 0) return;
  auto scratch = temp_dir::create("pragma-scratch-", 0711);
  REQUIRE(scratch);
  const auto net = shell("/usr/bin/python3 -S -c 'import socket; socket.socket()' 2>&1", scratch->path());
  CHECK(net.exit_code != 0);
  CHECK_THAT(net.out, Catch::Contains("PermissionError"));
  const auto ids = shell("id -u; grep NoNewPrivs /proc/self/status", scratch->path(), sandbox_policy::profiler);
  CHECK_THAT(ids.out, Catch::StartsWith(std::to_string(::geteuid() == 0 ? 65534 : ::geteuid()) + "\n"));
  CHECK_THAT(ids.out, Catch::Contains("NoNewPrivs:\t1"));
}

TEST_CASE("A tool's processes and files are bounded", "[sandbox]") {
  auto scratch = temp_dir::create("pragma-scratch-", 0711);
  REQUIRE(scratch);
  process_spec spec;
  spec.argv = {"/bin/sh", "-c", "bomb() { bomb | bomb & }; bomb; sleep 5"};
  spec.limits.wall_seconds = 1;
  sandbox_options options;
  options.policy = sandbox_policy::compiler;
  options.scratch = scratch->path();
  REQUIRE(apply_sandbox(spec, options));
  REQUIRE(run_process(spec));
  process_spec alive;
  alive.argv = {"/bin/true"};
  CHECK(run_process(alive)->ok()); // this machine lives on
  process_spec writer;
  writer.argv = {"/bin/sh", "-c", "head -c 3000000 /dev/zero > big || head -c 3000000 /usr/bin/python3 > big"};
  writer.cwd = scratch->path().string();
  writer.limits.file_bytes = 1 << 20;
  writer.limits.wall_seconds = 10;
  REQUIRE(apply_sandbox(writer, options));
  REQUIRE(run_process(writer));
  CHECK(std::filesystem::file_size(scratch->path() / "big") <= 1 << 20);
}
