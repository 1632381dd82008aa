// Lines of C++ at their depth, and what they need from outside: a helper is recorded when a line uses it, so that nobody has to
// look for it in the text. What all writers of this room write into.
#pragma once

#include "synthesis/cpp/helpers/helpers.hpp"

#include <fmt/format.h>

#include <string_view>

namespace pragma::synthesis {

class code {
public:
  template <class... T> void line(fmt::format_string<T...> text, T&&... values) { add(fmt::format(text, std::forward<T>(values)...)); }
  /// "// TEXT": for readers, not part of the program.
  template <class... T> void comment(fmt::format_string<T...> text, T&&... values) { lines_.push_back({depth_, "// " + fmt::format(text, std::forward<T>(values)...), true}); }
  /// "TEXT {": what follows lies inside, until close().
  template <class... T> void block(fmt::format_string<T...> text, T&&... values) {
    add(fmt::format(text, std::forward<T>(values)...) + " {");
    ++depth_;
  }
  /// An inner scope.
  void block() {
    add("{");
    ++depth_;
  }
  void close(std::string_view after = "") {
    --depth_;
    add("}" + std::string(after));
  }
  /// A statement whose body is the next one, without braces, until end().
  template <class... T> void head(fmt::format_string<T...> text, T&&... values) {
    add(fmt::format(text, std::forward<T>(values)...));
    ++depth_;
  }
  void end() { --depth_; }
  /// "#TEXT", at the left margin.
  template <class... T> void directive(fmt::format_string<T...> text, T&&... values) { lines_.push_back({-1, "#" + fmt::format(text, std::forward<T>(values)...), false}); }
  bool empty() const { return lines_.empty(); }
  /// Other lines at this depth.
  void append(const code& other);

  /// The name of a helper, which is copied into the source from now on.
  std::string use(std::string_view helper);
  const std::set<std::string>& helpers() const { return helpers_; }
  bool uses(const std::string& helper) const { return helpers_.count(helper) != 0; }

  /// Two spaces for each level, of which `depth` lie around all lines.
  std::string text(int depth) const { return written(depth, true); }
  /// The same without comments.
  std::string program(int depth) const { return written(depth, false); }

private:
  struct source_line {
    int depth; ///< -1: at the left margin
    std::string text;
    bool comment = false;
  };
  std::string written(int depth, bool comments) const;
  void add(std::string text) { lines_.push_back({depth_, std::move(text), false}); }

  std::vector<source_line> lines_;
  std::set<std::string> helpers_;
  int depth_ = 0;
};

} // namespace pragma::synthesis
