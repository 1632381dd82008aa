#include "cli/terminal.hpp"

#include "base/text.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

namespace pragma::cli {

std::atomic<bool>& cancelled() {
  static std::atomic<bool> flag = false;
  return flag;
}

void catch_interrupts() {
  (void)cancelled();
  struct sigaction action {};
  action.sa_handler = [](int) {
    if (cancelled().exchange(true)) ::_exit(130);
    constexpr char text[] = "\npragma: stopping after the current step; what is recorded stays (again: leave at once)\n";
    const ssize_t ignored = ::write(2, text, sizeof text - 1);
    (void)ignored;
  };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

terminal::terminal(bool json_output, std::string prefix)
    : prefix_(std::move(prefix)), json_(json_output), tty_(::isatty(json_output ? 2 : 1) == 1) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if ((no_colour && *no_colour) || (term && std::string(term) == "dumb")) tty_ = false;
  unsigned char secret[8];
  if (!tty_ || ::getrandom(secret, sizeof secret, 0) != static_cast<ssize_t>(sizeof secret)) {
    tty_ = false;
    return;
  }
  mark_ = "colour";
  for (const auto byte : secret) mark_ += "0123456789abcdef"[byte >> 4], mark_ += "0123456789abcdef"[byte & 15];
}

std::string terminal::colour(const char* code, const std::string& text) const {
  return tty_ ? mark_ + "[" + code + "m" + text + mark_ + "[0m" : text;
}

std::string terminal::shown(const std::string& text) const {
  auto safe = printable(text);
  for (size_t at = 0; !mark_.empty() && (at = safe.find(mark_, at)) != std::string::npos;) safe.replace(at, mark_.size(), "\x1b");
  return safe;
}
std::string terminal::bold(const std::string& text) const { return colour("1", text); }
std::string terminal::green(const std::string& text) const { return colour("32", text); }
std::string terminal::red(const std::string& text) const { return colour("31", text); }
std::string terminal::dim(const std::string& text) const { return colour("2", text); }

void terminal::clear_status() {
  if (status_shown_) std::fputs("\r\x1b[K", json_ ? stderr : stdout);
  status_shown_ = false;
}

void terminal::line(const std::string& text) {
  clear_status();
  std::FILE* to = json_ ? stderr : stdout;
  std::fputs((shown(prefix_ + text) + "\n").c_str(), to);
  std::fflush(to);
}

void terminal::status(const std::string& text) {
  if (!tty_ || !prefix_.empty()) return;
  clear_status();
  winsize size{};
  size_t width = 100;
  if (::ioctl(json_ ? 2 : 1, TIOCGWINSZ, &size) == 0 && size.ws_col > 10) width = size.ws_col - 1;
  std::FILE* to = json_ ? stderr : stdout;
  std::fputs(shown(text.substr(0, width)).c_str(), to);
  std::fflush(to);
  status_shown_ = true;
}

void terminal::clear_screen() {
  if (tty_ && !json_) std::fputs("\x1b[H\x1b[2J", stdout);
}

void terminal::result(const pragma::json& value, bool one_line) {
  if (!json_) return;
  std::fputs((value.dump(one_line ? -1 : 2, ' ', true, pragma::json::error_handler_t::replace) + "\n").c_str(), stdout);
  std::fflush(stdout);
}

int report(terminal& out, const error& e) {
  out.result({{"error", {{"code", name(e.code)}, {"message", e.message}, {"hint", e.hint}}}});
  std::fputs((printable(render(e)) + "\n").c_str(), stderr);
  return exit_code(e.code);
}

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

} // namespace pragma::cli
