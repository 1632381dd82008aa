// What the kinds of model share: one try at one exchange. The kinds (openai.cpp, command.cpp, transcript.cpp) only make a
// try; retries, budgets and the transcript are done once for all of them in chat.cpp. Private to llm/.
#pragma once

#include "llm/chat.hpp"

#include <optional>
#include <utility>

namespace pragma::llm {

/// What came of one try. A failed one may still have cost tokens.
struct attempt {
  std::optional<error> failure;
  bool retry = false;               ///< worth another try
  std::optional<double> wait;       ///< seconds that the server asked for
  std::string text, reasoning, model, finish_reason;
  int64_t prompt_tokens = 0, completion_tokens = 0;
  bool usage_known = false;         ///< the endpoint counted; else chat.cpp estimates from what was sent and received
  bool reached = false;             ///< the model may have worked on it, so that it counts against the budgets
};

class backend {
public:
  virtual ~backend() = default;
  virtual attempt try_once(const std::vector<chat_message>& messages, const std::function<void(size_t)>& on_progress) = 0;
  virtual std::string name() const = 0;
};

expected<std::unique_ptr<backend>> make_openai(const llm_config& config, const std::atomic<bool>* cancel);
expected<std::unique_ptr<backend>> make_command(const llm_config& config, const std::atomic<bool>* cancel);
/// `already_given`: answers to skip, because an earlier part of this run got them.
expected<std::unique_ptr<backend>> make_replay(const llm_config& config, size_t already_given);

/// A transcript: JSON lines, one per exchange (docs/llm.md has the fields).
class transcript_writer {
public:
  /// Opens for appending, mode 0600. An empty path gives a writer that drops everything.
  static expected<transcript_writer> open(const std::filesystem::path& path);
  transcript_writer(transcript_writer&& other) noexcept : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}
  transcript_writer& operator=(transcript_writer&&) = delete;
  ~transcript_writer();
  /// Writes one line and syncs it.
  expected<void> append(const json& entry);

private:
  transcript_writer(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::filesystem::path path_;
};

/// The entries of the last run in a transcript, in order. A line torn by kill -9 is left out; any other bad line is a parse_error.
expected<std::vector<json>> read_transcript(const std::filesystem::path& path);

} // namespace pragma::llm
