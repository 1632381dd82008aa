#include "cli/terminal.hpp"

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <unistd.h>

using namespace pragma;

namespace {

/// What `body` writes to a standard stream; a terminal there when `tty`.
template <class F> std::string written(int stream, bool tty, F body) {
  int read_end = -1, write_end = -1;
  if (tty) {
    read_end = ::posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE((read_end >= 0 && ::grantpt(read_end) == 0 && ::unlockpt(read_end) == 0));
    write_end = ::open(::ptsname(read_end), O_RDWR | O_NOCTTY);
  } else {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    read_end = ends[0], write_end = ends[1];
  }
  std::fflush(nullptr);
  const int kept = ::dup(stream);
  ::dup2(write_end, stream);
  body();
  std::fflush(nullptr);
  ::dup2(kept, stream);
  ::close(kept);
  ::fcntl(read_end, F_SETFL, O_NONBLOCK);
  char buffer[4096];
  const auto n = ::read(read_end, buffer, sizeof buffer);
  ::close(write_end);
  ::close(read_end);
  return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : "";
}

const std::string hostile = "start \x1b]0;title\x07 \x1b[31mred \u009b2J \u202egpj.exe end";
const std::string harmless = "start ?]0;title? ?[31mred ?2J ?gpj.exe end";

} // namespace

TEST_CASE("Text from outside reaches no terminal as more than text", "[terminal]") {
  CHECK(written(1, false, [] { cli::terminal(false).line(hostile); }) == harmless + "\n");
  CHECK(written(2, false, [] {
          cli::terminal out(false);
          CHECK(cli::report(out, {ec::remote_failed, hostile, hostile}) == 6);
        }) == "error: " + harmless + "\n  hint: " + harmless + "\n");
  const auto json = written(1, false, [] { cli::terminal(true).result({{"text", hostile}}); });
  CHECK(json.find('\x1b') == std::string::npos);
  CHECK(json.find("\u202e") == std::string::npos);
  CHECK(json::parse(json)["text"] == hostile);
}

TEST_CASE("On a terminal the colours are ours alone", "[terminal]") {
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "xterm", 1);
  const auto shown = written(1, true, [] {
    cli::terminal out(false);
    out.line(out.green("good: " + hostile));
  });
  CHECK(shown == "\x1b[32mgood: " + harmless + "\x1b[0m\r\n");
}
