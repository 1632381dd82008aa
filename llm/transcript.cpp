#include "llm/attempt.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace pragma::llm {

namespace {

constexpr uint64_t max_transcript_bytes = 1ull << 30;

/// A transcript may be edited by hand: a key of another type is as good as absent.
std::string string_of(const json& entry, const char* key) {
  const auto it = entry.find(key);
  return it != entry.end() && it->is_string() ? it->get<std::string>() : std::string();
}

class replay_backend : public backend {
public:
  replay_backend(std::filesystem::path file, std::vector<json> entries, size_t next)
      : file_(std::move(file)), entries_(std::move(entries)), next_(next) {}

  attempt try_once(const std::vector<chat_message>&, const std::function<void(size_t)>& on_progress) override {
    attempt a;
    if (next_ >= entries_.size()) {
      a.failure = error{ec::not_found,
                        "the transcript " + file_.string() + " has no more answers: all " + std::to_string(entries_.size()) +
                            " were replayed",
                        "record a longer run, or allow fewer attempts"};
      return a;
    }
    const auto& entry = entries_[next_++];
    a.text = string_of(entry, "answer");
    a.reasoning = string_of(entry, "reasoning");
    a.model = string_of(entry, "model");
    a.finish_reason = string_of(entry, "finish_reason");
    if (const auto usage = from_json_value<chat_usage>(entry.value("usage", json::object()), "usage")) {
      a.prompt_tokens = usage->prompt_tokens;
      a.completion_tokens = usage->completion_tokens;
      a.usage_known = entry.contains("usage") && !usage->estimated;
    }
    a.reached = true;
    if (on_progress) on_progress(a.text.size());
    return a;
  }
  std::string name() const override { return "replay:" + file_.filename().string(); }

private:
  std::filesystem::path file_;
  std::vector<json> entries_;
  size_t next_;
};

} // namespace

expected<transcript_writer> transcript_writer::open(const std::filesystem::path& path) {
  if (path.empty()) return transcript_writer(-1, path);
  std::error_code ignored;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return fail(ec::io_error, "cannot open the transcript " + path.string() + ": " + std::strerror(errno));
  // A line torn by kill -9 must not swallow the next one.
  const off_t size = ::lseek(fd, 0, SEEK_END);
  char last = '\n';
  if (size > 0 && ::pread(fd, &last, 1, size - 1) == 1 && last != '\n' && ::write(fd, "\n", 1) != 1) {
    const int problem = errno;
    ::close(fd);
    return fail(ec::io_error, "cannot write to the transcript " + path.string() + ": " + std::strerror(problem));
  }
  return transcript_writer(fd, path);
}

transcript_writer::~transcript_writer() {
  if (fd_ >= 0) ::close(fd_);
}

expected<void> transcript_writer::append(const json& entry) {
  if (fd_ < 0) return {};
  const auto line = entry.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(fd_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return fail(ec::io_error, "cannot write to the transcript " + path_.string() + ": " + std::strerror(errno),
                  "is the disk full?");
    done += static_cast<size_t>(n);
  }
  // EINVAL, EROFS: a pipe or /dev/null, which cannot be synced and need not be.
  if (::fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS)
    return fail(ec::io_error, "cannot sync the transcript " + path_.string() + ": " + std::strerror(errno));
  return {};
}

expected<std::vector<json>> read_transcript(const std::filesystem::path& path) {
  auto text = read_file(path, max_transcript_bytes);
  if (!text) return fail(text.error());
  std::vector<json> entries;
  const auto lines = split(*text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto line = trim(lines[i]);
    if (line.empty()) continue;
    auto entry = parse_json(line, path.string() + " line " + std::to_string(i + 1));
    // A run killed in the middle of a write leaves the head of a line, which stays alone on its line after a resume.
    if (!entry && line.front() == '{' && line.back() != '}') continue;
    if (!entry) return fail(entry.error());
    if (!entry->is_object())
      return fail(ec::parse_error, path.string() + " line " + std::to_string(i + 1) + " is not a JSON object",
                  "a transcript has one JSON object a line (docs/llm.md)");
    if (entry->contains("begin")) entries.clear(); // another run in the same file
    else entries.push_back(std::move(*entry));
  }
  return entries;
}

expected<std::unique_ptr<backend>> make_replay(const llm_config& config, size_t already_given) {
  auto entries = read_transcript(config.replay_file);
  if (!entries) return fail(entries.error());
  std::vector<json> answers;
  for (auto& entry : *entries)
    if (entry.contains("answer") && entry["answer"].is_string()) answers.push_back(std::move(entry));
  if (answers.empty())
    return fail(ec::not_found, "the transcript " + config.replay_file + " has no answers",
                "a transcript has one JSON object a line, with the key \"answer\" (docs/llm.md)");
  return std::make_unique<replay_backend>(config.replay_file, std::move(answers), already_given);
}

} // namespace pragma::llm
