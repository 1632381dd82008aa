// What a run does, line by line, for whoever looks at it later or from elsewhere: PRAGMA_HOME/logs/RUN.jsonl. The newest lines are kept.
#pragma once

#include "actors/messages.hpp"

#include <filesystem>

namespace pragma {

struct log_line {
  uint64_t n = 0;                         ///< counts up over a run, also when it is resumed
  std::string time;                       ///< ISO, UTC
  int attempt = 0;                        ///< 0: of none
  std::string stage;                      ///< "coding", "verifying", "measuring", ...; of an attempt that is over "passed", "failed at STAGE", "not established"
  std::string text;
};
PRAGMA_JSON(log_line, n, time, attempt, stage, text)

/// `text` is cut to some 400 bytes, between characters; `n` is left 0.
log_line line_of(const run_event& event);

/// Not for several threads or processes at once: who runs a run writes its log.
class run_log {
public:
  run_log(const std::filesystem::path& folder, const std::string& run);
  /// A log that cannot be written is no reason to end a run: the failure is left out.
  void add(log_line line);

private:
  std::filesystem::path file_;
  uint64_t next_ = 1;
  bool broken_ = false; ///< the latest line may stand there in part: the disk was full
};

/// The lines from number `from` on, oldest first; none where there is no log.
std::vector<log_line> read_run_log(const std::filesystem::path& folder, const std::string& run, uint64_t from);
std::filesystem::path run_log_file(const std::filesystem::path& folder, const std::string& run);

} // namespace pragma
