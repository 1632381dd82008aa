// Chat with a model behind one interface: an OpenAI-compatible HTTP endpoint, a user's command, or a recorded transcript.
// Used by the Coder. Budgets stop a run cleanly; every exchange goes to the transcript before the answer is used.
#pragma once

#include "base/defaults.hpp"
#include "base/error.hpp"
#include "base/json.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pragma {

struct chat_message {
  std::string role;      ///< "system", "user", "assistant"
  std::string content;
};
PRAGMA_JSON(chat_message, role, content)

struct chat_usage {
  int64_t prompt_tokens = 0, completion_tokens = 0;
  double cost = 0;        ///< money, by the prices in the configuration; 0 when unknown
  double seconds = 0;     ///< with the waits between retries
  int retries = 0;
  bool estimated = false; ///< at least one exchange came without usage: 4 characters were taken for one token
};
PRAGMA_JSON(chat_usage, prompt_tokens, completion_tokens, cost, seconds, retries, estimated)

struct chat_answer {
  std::string text;
  std::string model;      ///< as the endpoint named it
  chat_usage usage;       ///< of this exchange, failed tries included
  std::string reasoning;  ///< what the model thought aloud (reasoning_content, <think>); never part of `text`
  std::string finish_reason; ///< "stop"; "length": the endpoint's or max_tokens' limit cut the answer off; empty when not said
};
PRAGMA_JSON(chat_answer, text, model, usage, reasoning, finish_reason)

struct llm_config {
  std::string kind = "openai";       ///< "openai", "command", "replay"
  std::string base_url;              ///< "https://api.openai.com/v1", "http://127.0.0.1:11434/v1"
  std::string model;
  std::string key_env = "OPENAI_API_KEY"; ///< name of the environment variable; the key itself is never written anywhere
  std::vector<std::string> command;  ///< kind "command": argv; prompt on stdin, answer on stdout
  std::string replay_file;           ///< kind "replay": a transcript (JSON lines)
  double temperature = -1;           ///< -1: not sent
  int64_t max_tokens = 0;            ///< 0: not sent
  double timeout_seconds = defaults::llm_timeout_seconds; ///< one try, from the request to the end of the answer
  int retries = defaults::llm_retries;       ///< after 429, 500, 502, 503, 504, timeouts, resets and cut-off streams
  double retry_seconds = defaults::llm_retry_seconds;       ///< first wait; doubles, with jitter; Retry-After goes before
  double max_wait_seconds = defaults::llm_max_wait_seconds; ///< longest wait; a server that asks for more fails the call
  bool stream = true;
  bool use_proxy = false;                    ///< honour http_proxy, https_proxy, no_proxy of the environment
  json extra_body = json::object();          ///< merged into each request: {"reasoning_effort": "low"}
  double price_prompt = 0, price_completion = 0; ///< per million tokens
  int64_t budget_tokens = 0;         ///< per run, 0 = none
  double budget_cost = 0;            ///< per run, 0 = none
};
PRAGMA_JSON(llm_config, kind, base_url, model, key_env, command, replay_file, temperature, max_tokens, timeout_seconds, retries,
            retry_seconds, max_wait_seconds, stream, use_proxy, extra_body, price_prompt, price_completion, budget_tokens,
            budget_cost)

class chat_model {
public:
  virtual ~chat_model() = default;
  /// One exchange. `on_progress` gets the number of characters received so far while streaming.
  /// remote_failed (status and the endpoint's message), timeout, limit_exceeded (budget or answer too long), interrupted.
  virtual expected<chat_answer> ask(const std::vector<chat_message>& messages,
                                    const std::function<void(size_t)>& on_progress = {}) = 0;
  virtual std::string name() const = 0;  ///< "openai:deepseek-chat", "command:claude"
  virtual chat_usage total() const = 0;  ///< of this object's life
};

/// `transcript`: JSON lines file that each exchange is appended to (may be empty); a new run in it begins with a line of its
/// own. `cancel` stops a call in flight. `used`: the run goes on, and its record says that it had used so much. That, or what the
/// transcript says of its last run where it is more, counts against the budgets; a replay goes on after the answers that it
/// gave there. invalid_argument when the configuration is not complete.
expected<std::unique_ptr<chat_model>> make_chat_model(const llm_config& config, const std::filesystem::path& transcript,
                                                      const std::atomic<bool>* cancel = nullptr, const std::optional<chat_usage>& used = {});

/// Checks what parse_llm_config() checks, for a configuration made of flags.
expected<void> check_llm_config(const llm_config& config);

/// Reads configs/llm.json-like text; an unknown key is an error that names the nearest known one. Keys that start with
/// "_" are comments.
expected<llm_config> parse_llm_config(std::string_view text, std::string_view what);

/// Takes a leading <think>...</think> away (also one that was opened by the model's template, or never closed), which
/// goes to `thinking` where that is given.
std::string strip_thinking(std::string_view text, std::string* thinking = nullptr);

} // namespace pragma
