// Server-sent events, as far as chat endpoints use them: "data:" lines, joined until an empty line. Private to llm/.
// https://html.spec.whatwg.org/multipage/server-sent-events.html
#pragma once

#include "base/defaults.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace pragma::llm {

class sse_parser {
public:
  /// `on_event` gets the data of each event, without the field name.
  explicit sse_parser(std::function<void(std::string_view)> on_event) : on_event_(std::move(on_event)) {}

  /// Takes bytes as they arrive, cut anywhere. False when one event is longer than any answer may be.
  bool feed(std::string_view bytes) {
    for (const char c : bytes) {
      if (c == '\n' && after_cr_) {
        after_cr_ = false;
        continue;
      }
      after_cr_ = c == '\r';
      if (c == '\n' || c == '\r') end_line();
      else line_ += c;
    }
    return line_.size() + data_.size() <= 2 * defaults::llm_max_answer_bytes;
  }
  /// At the end of the stream: some servers forget the last empty line.
  void finish() {
    if (!line_.empty()) end_line();
    end_event();
  }

private:
  void end_line() {
    if (line_.empty()) {
      end_event();
    } else if (line_.starts_with("data:")) {
      std::string_view value = std::string_view(line_).substr(5);
      if (value.starts_with(' ')) value.remove_prefix(1);
      if (has_data_) data_ += '\n';
      data_ += value;
      has_data_ = true;
    }
    line_.clear();
  }
  void end_event() {
    if (has_data_) on_event_(data_);
    data_.clear();
    has_data_ = false;
  }

  std::function<void(std::string_view)> on_event_;
  std::string line_, data_;
  bool has_data_ = false, after_cr_ = false;
};

} // namespace pragma::llm
