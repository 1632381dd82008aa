// What the commands share when they talk to a person: colours only on a terminal, a status line that overwrites itself,
// errors and exit codes, Ctrl-C.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"

#include <atomic>
#include <string>

namespace pragma::cli {

/// Set by the first Ctrl-C; long calls look at it. The second Ctrl-C ends the process at once.
std::atomic<bool>& cancelled();
void catch_interrupts();

/// Messages for people go to stderr when stdout carries JSON.
class terminal {
public:
  /// json: results go to stdout as JSON, everything else to stderr.
  /// `prefix`: before each line, for several that talk at once; those show no status line.
  explicit terminal(bool json_output, std::string prefix = {});
  void line(const std::string& text);          ///< a line that stays
  void status(const std::string& text);        ///< overwrites itself on a terminal; left out elsewhere
  void result(const pragma::json& value, bool one_line = false); ///< JSON to stdout (only with --json)
  void clear_screen();                         ///< on a terminal, for what is shown again and again
  bool json_output() const { return json_; }
  std::string bold(const std::string& text) const;
  std::string green(const std::string& text) const;
  std::string red(const std::string& text) const;
  std::string dim(const std::string& text) const;

private:
  std::string colour(const char* code, const std::string& text) const;
  void clear_status();
  std::string shown(const std::string& text) const; ///< printable, but for the colours that this object made
  std::string prefix_;
  std::string mark_;           ///< stands for the escape character in a colour of ours; nobody outside knows it
  bool json_ = false, tty_ = false, status_shown_ = false;
};

/// Filled up with spaces to a column of that width.
std::string padded(std::string text, size_t width);

/// Prints the error (as JSON {"error": {...}} with --json) and returns the exit code.
int report(terminal& out, const error& e);

} // namespace pragma::cli
