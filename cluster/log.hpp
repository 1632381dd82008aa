// The log of heads and nodes: one line an event, with a time, a level, words for people and named fields for machines. Text, or JSON lines.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"

#include <string>

namespace pragma {

enum class log_level { debug, info, warn, error };

struct log_options {
  std::string format = "text";            ///< "text", "json"
  std::string level = "info";
  std::string who;                        ///< "head", "node"
};
/// Once, before the first line; without it, lines of level info and above go to stdout as text. invalid_argument.
expected<void> begin_log(const log_options& options);
/// `fields`: an object ("node", "run", "job", "reason", ...). Text from outside is made printable. Any thread.
void log_event(log_level level, const std::string& what, const json& fields = json::object());
void flush_log();

} // namespace pragma
