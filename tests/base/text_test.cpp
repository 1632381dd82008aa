#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace pragma;

TEST_CASE("a misspelt name brings the nearest ones") {
  const std::vector<std::string> names = {"instructions", "cycles", "branch-misses", "L1-dcache-load-misses"};
  CHECK(nearest_names("instrctions", names).front() == "instructions");
  CHECK(nearest_names("dcache", names).front() == "L1-dcache-load-misses");
  CHECK(nearest_names("completely different thing", names).empty());
}

TEST_CASE("numbers are written as people read them") {
  CHECK(format_seconds(1.2345e-3) == "1.23 ms");
  CHECK(format_seconds(45.6e-6) == "45.6 us");
  CHECK(format_seconds(250) == "4.17 min");
  CHECK(format_bytes(64.0 * 1024 * 1024) == "64.0 MiB");
}

TEST_CASE("long logs keep their head and tail") {
  std::string log;
  for (int i = 0; i < 100; ++i) log += "line " + std::to_string(i) + "\n";
  const auto cut = cut_lines(log, 2, 3);
  CHECK(cut == "line 0\nline 1\n... (95 lines left out)\nline 97\nline 98\nline 99");
  CHECK(cut_lines("a\nb\n", 2, 3) == "a\nb");
}

TEST_CASE("hostile text becomes valid UTF-8 without control characters") {
  CHECK(printable("ok\x1b[31m\xff\xc3\xa9\n") == "ok?[31m?\xc3\xa9\n");
  CHECK(printable("\xed\xa0\x80") == "???");
  // Text all the same, but a terminal or a browser would do something.
  CHECK(printable("\u009b31m") == "?31m");
  CHECK(printable("a\u202egpj.exe\u2066") == "a?gpj.exe?");
  CHECK(printable("\u200f\u061c\ufeff\u2028\U000e0041") == "?????");
  CHECK(printable("\u00a0\u2192 \u03bcs \U0001f600") == "\u00a0\u2192 \u03bcs \U0001f600");
  CHECK_NOTHROW(json(printable(std::string("\xf0\x9f\x98", 3))).dump());
}

TEST_CASE("broken JSON is refused with the place") {
  const auto value = parse_json("{\"a\": 1,\n \"b\": }", "config.json");
  REQUIRE(!value);
  CHECK(value.error().message.find("config.json") == 0);
  CHECK(value.error().message.find("line 2") != std::string::npos);
}

TEST_CASE("JSON that is nested deeper than anything we use is refused before it is a value: copying it would end the process") {
  const auto levels = [](size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  for (const size_t n : {size_t{deepest_json} + 1, size_t{1} << 20}) {
    const auto deep = parse_json("{\"args\": " + levels(n) + "}", "an answer");
    REQUIRE_FALSE(deep);
    CHECK(deep.error().code == ec::limit_exceeded);
    CHECK(parse_if_json(levels(n)).is_discarded());
  }
  CHECK(parse_json(levels(deepest_json), "an answer").has_value());
  CHECK(parse_if_json(levels(deepest_json)).is_array());
  CHECK(parse_json(R"({"a": "[[[[\"[[[[{{{"})", "an answer").has_value()); // brackets in texts are none
  CHECK(parse_json(std::string(1 << 20, '"') + levels(100), "quotes").has_value() == false);
  CHECK(parse_if_json("no JSON").is_discarded());
}

TEST_CASE("SHA-256 of a known text") {
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("files are replaced whole and errors name the path") {
  const auto dir = temp_dir::create("pragma-test-");
  REQUIRE(dir);
  const auto path = dir->path() / "x.json";
  REQUIRE(write_file_atomic(path, "one"));
  REQUIRE(write_file_atomic(path, "two"));
  CHECK(read_file(path).value() == "two");
  CHECK(read_file(path, 2).error().code == ec::limit_exceeded);
  const auto missing = read_file(dir->path() / "nothing");
  REQUIRE(!missing);
  CHECK(missing.error().code == ec::not_found);
  CHECK(!write_file_atomic(dir->path() / "no" / "x", "one"));
  CHECK(read_file(dir->path()).error().code == ec::invalid_argument);
}

TEST_CASE("a temporary folder goes even where a program has closed a folder in it to its owner") {
  // As an ordinary user: root may remove anything.
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(0); // no such uid in this container
    std::filesystem::path path;
    {
      const auto dir = temp_dir::create("pragma-test-");
      if (!dir) ::_exit(3);
      path = dir->path();
      std::filesystem::create_directories(path / "a" / "b");
      std::filesystem::create_symlink("/", path / "a" / "b" / "root");
      if (!write_file_atomic(path / "a" / "b" / "file", "x")) ::_exit(4);
      ::chmod((path / "a" / "b").c_str(), 0);
      ::chmod((path / "a").c_str(), 0);
    }
    ::_exit(std::filesystem::exists(path) ? 1 : 0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
