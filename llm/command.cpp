#include "llm/attempt.hpp"

#include "base/subprocess.hpp"
#include "base/text.hpp"

#include <filesystem>

namespace pragma::llm {

namespace {

/// Any program as a model: an agent's command line, a script, somebody's own client. It inherits our environment, as it
/// is the user's own program and may need keys of its own.
class command_backend : public backend {
public:
  command_backend(llm_config config, const std::atomic<bool>* cancel) : config_(std::move(config)), cancel_(cancel) {}

  attempt try_once(const std::vector<chat_message>& messages, const std::function<void(size_t)>& on_progress) override {
    process_spec spec;
    spec.argv = config_.command;
    for (const auto& m : messages) {
      const char* heading = m.role == "system" ? "# Instructions" : m.role == "assistant" ? "# Your earlier answer" : "# Request";
      spec.stdin_data += std::string(heading) + "\n\n" + m.content + "\n\n";
    }
    spec.max_output = defaults::llm_max_answer_bytes;
    spec.limits.wall_seconds = config_.timeout_seconds;
    spec.cancel = cancel_;
    size_t received = 0;
    if (on_progress)
      spec.on_stdout = [&](std::string_view chunk) { on_progress(received += chunk.size()); };

    attempt a;
    auto result = run_process(spec);
    if (!result) {
      a.failure = result.error();
      return a;
    }
    a.reached = true;
    a.text = printable(result->out);
    const auto who = "the command '" + program() + "'";
    if (result->cancelled) {
      a.failure = error{ec::interrupted, who + " was cancelled", ""};
    } else if (result->timed_out) {
      a.failure = error{ec::timeout, who + " gave no answer within " + format_seconds(config_.timeout_seconds),
                        "raise timeout_seconds"};
    } else if (result->exit_code != 0) {
      auto tail = trim(cut_lines(printable(result->err), 0, 12, 4096));
      a.failure = error{ec::remote_failed, who + " failed: " + describe_end(*result) + (tail.empty() ? "" : ": " + tail), ""};
    } else if (result->output_truncated && result->out.size() >= defaults::llm_max_answer_bytes) {
      a.failure = error{ec::limit_exceeded,
                        who + " gave an answer longer than " + format_bytes(defaults::llm_max_answer_bytes), ""};
    }
    return a;
  }
  std::string name() const override {
    return "command:" + std::filesystem::path(program()).filename().string();
  }

private:
  /// What the user typed first: a line for the shell is not named after the shell. Its arguments are left out, one may be a key.
  std::string program() const {
    const auto& c = config_.command;
    if (c.size() < 3 || c[0] != "/bin/sh" || c[1] != "-c") return printable(c[0]);
    const auto line = trim(c[2]);
    return printable(line.substr(0, line.find_first_of(" \t\n")));
  }

  llm_config config_;
  const std::atomic<bool>* cancel_;
};

} // namespace

expected<std::unique_ptr<backend>> make_command(const llm_config& config, const std::atomic<bool>* cancel) {
  if (find_program(config.command[0]).empty())
    return fail(ec::not_found, "the program '" + printable(config.command[0]) + "' was not found in PATH",
                "kind command needs a program that reads the prompt from stdin");
  return std::make_unique<command_backend>(config, cancel);
}

} // namespace pragma::llm
