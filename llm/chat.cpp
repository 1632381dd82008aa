#include "llm/chat.hpp"

#include "base/api_endpoint.hpp"
#include "base/seconds.hpp"
#include "base/text.hpp"
#include "base/utc.hpp"
#include "llm/attempt.hpp"

#include <algorithm>
#include <chrono>

namespace pragma {

namespace {

using clock_type = std::chrono::steady_clock;

int64_t estimate_tokens(size_t chars) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(chars) / defaults::llm_chars_per_token));
}

size_t length_of(const std::vector<chat_message>& messages) {
  size_t all = 0;
  for (const auto& m : messages) all += m.content.size();
  return all;
}

/// An earlier answer that is sent back is context: a runaway one must not become a prompt of megabytes, and an empty one
/// is refused by some endpoints.
std::vector<chat_message> with_bounded_answers(std::vector<chat_message> messages) {
  for (auto& m : messages) {
    if (m.role != "assistant") continue;
    if (trim(m.content).empty()) m.content = "(no text)";
    if (m.content.size() > defaults::llm_max_quoted_answer_bytes) {
      m.content.resize(defaults::llm_max_quoted_answer_bytes);
      m.content = printable(m.content) + "\n(the rest is left out)";
    }
  }
  return messages;
}

/// A chat_model made of a backend: budgets, retries and the transcript, alike for every kind.
class metered_model : public chat_model {
public:
  metered_model(llm_config config, std::unique_ptr<llm::backend> backend, llm::transcript_writer transcript,
                chat_usage before, const std::atomic<bool>* cancel)
      : config_(std::move(config)), backend_(std::move(backend)), transcript_(std::move(transcript)), before_(before),
        cancel_(cancel), waits_(config_.retry_seconds, config_.max_wait_seconds, cancel) {}

  expected<chat_answer> ask(const std::vector<chat_message>& asked, const std::function<void(size_t)>& on_progress) override {
    const auto start = clock_type::now();
    const auto messages = with_bounded_answers(asked);
    chat_answer answer;
    json tries = json::array();
    error last;
    for (int number = 0;; ++number) {
      if (cancelled()) return give_up(messages, tries, answer, start, error{ec::interrupted, name() + " was cancelled", ""});
      if (auto good = check_budget(messages, answer.usage); !good)
        return give_up(messages, tries, answer, start, good.error());
      auto a = backend_->try_once(messages, on_progress);
      account(messages, a, answer.usage);
      if (!a.failure) {
        answer.text = strip_thinking(a.text, &answer.reasoning);
        if (!a.reasoning.empty()) answer.reasoning = a.reasoning + (answer.reasoning.empty() ? "" : "\n") + answer.reasoning;
        answer.model = a.model.empty() ? config_.model : a.model;
        answer.finish_reason = a.finish_reason;
        return record(messages, tries, std::move(answer), start);
      }
      json tried = {{"error", name_of(*a.failure)}, {"message", a.failure->message}};
      if (!a.text.empty()) tried["partial"] = a.text;
      const bool again = a.retry && number < config_.retries;
      double wait = 0;
      if (again) {
        wait = a.wait ? *a.wait : waits_.after(number);
        if (wait > config_.max_wait_seconds) {
          tries.push_back(std::move(tried));
          a.failure->hint = "the endpoint asks to wait " + format_seconds(wait) + ", longer than max_wait_seconds (" +
                            format_seconds(config_.max_wait_seconds) + "): continue later with `pragma resume`";
          return give_up(messages, tries, answer, start, std::move(*a.failure));
        }
        tried["wait_seconds"] = wait;
      }
      tries.push_back(std::move(tried));
      if (!again) {
        if (number > 0) a.failure->message += " (after " + std::to_string(number + 1) + " tries)";
        return give_up(messages, tries, answer, start, std::move(*a.failure));
      }
      ++answer.usage.retries;
      waits_.pause(wait);
    }
  }

  std::string name() const override { return backend_->name(); }
  chat_usage total() const override { return total_; }

private:
  static const char* name_of(const error& e) { return pragma::name(e.code); }
  bool cancelled() const { return cancel_ && cancel_->load(); }

  expected<void> check_budget(const std::vector<chat_message>& messages, const chat_usage& now) const {
    const int64_t used = before_.prompt_tokens + before_.completion_tokens + total_.prompt_tokens +
                         total_.completion_tokens + now.prompt_tokens + now.completion_tokens;
    const int64_t prompt = estimate_tokens(length_of(messages));
    if (config_.budget_tokens > 0 && used + prompt > config_.budget_tokens)
      return fail(ec::limit_exceeded,
                  "token budget of " + std::to_string(config_.budget_tokens) + " used up: " + std::to_string(used) +
                      " were used, and the next prompt needs about " + std::to_string(prompt),
                  "raise budget_tokens and continue with `pragma resume`");
    const double spent = before_.cost + total_.cost + now.cost;
    const double next = static_cast<double>(prompt) * config_.price_prompt / 1e6;
    if (config_.budget_cost > 0 && spent + next > config_.budget_cost)
      return fail(ec::limit_exceeded,
                  "money budget of " + format_number(config_.budget_cost, 4) + " used up: " + format_number(spent, 4) +
                      " were spent, and the next prompt costs about " + format_number(next, 4),
                  "raise budget_cost and continue with `pragma resume`");
    return {};
  }

  void account(const std::vector<chat_message>& messages, llm::attempt& a, chat_usage& usage) const {
    if (!a.reached) return;
    if (!a.usage_known) {
      a.prompt_tokens = estimate_tokens(length_of(messages));
      a.completion_tokens = estimate_tokens(a.text.size() + a.reasoning.size());
      usage.estimated = true;
    }
    usage.prompt_tokens += a.prompt_tokens;
    usage.completion_tokens += a.completion_tokens;
    if (config_.kind != "replay") // a replay spends nothing
      usage.cost += (static_cast<double>(a.prompt_tokens) * config_.price_prompt +
                     static_cast<double>(a.completion_tokens) * config_.price_completion) / 1e6;
  }

  void add_to_total(const chat_usage& usage) {
    total_.prompt_tokens += usage.prompt_tokens;
    total_.completion_tokens += usage.completion_tokens;
    total_.cost += usage.cost;
    total_.seconds += usage.seconds;
    total_.retries += usage.retries;
    total_.estimated = total_.estimated || usage.estimated;
  }

  json entry_for(const std::vector<chat_message>& messages, const json& tries, const chat_answer& answer) const {
    json entry = {{"time", utc_now()}, {"kind", config_.kind}, {"name", name()}, {"messages", messages}, {"usage", answer.usage}};
    if (!tries.empty()) entry["failed_tries"] = tries;
    return entry;
  }

  expected<chat_answer> record(const std::vector<chat_message>& messages, const json& tries, chat_answer answer,
                               clock_type::time_point start) {
    answer.usage.seconds = seconds_since(start);
    add_to_total(answer.usage);
    json entry = entry_for(messages, tries, answer);
    entry["answer"] = answer.text;
    entry["reasoning"] = answer.reasoning;
    entry["model"] = answer.model;
    entry["finish_reason"] = answer.finish_reason;
    if (auto written = transcript_.append(entry); !written) return fail(written.error());
    return answer;
  }

  /// The first error stays the one that the user sees, even where the transcript cannot be written either.
  expected<chat_answer> give_up(const std::vector<chat_message>& messages, const json& tries, chat_answer& answer,
                                clock_type::time_point start, error why) {
    answer.usage.seconds = seconds_since(start);
    add_to_total(answer.usage);
    json entry = entry_for(messages, tries, answer);
    entry["error"] = {{"code", name_of(why)}, {"message", why.message}};
    if (auto written = transcript_.append(entry); !written) why.hint += (why.hint.empty() ? "" : "; ") + written.error().message;
    return fail(std::move(why));
  }

  llm_config config_;
  std::unique_ptr<llm::backend> backend_;
  llm::transcript_writer transcript_;
  chat_usage before_, total_;
  const std::atomic<bool>* cancel_;
  retry_waits waits_;
};

} // namespace

std::string strip_thinking(std::string_view text, std::string* thinking) {
  static constexpr std::string_view open = "<think>", close = "</think>";
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return std::string(text);
  const bool opened = text.substr(first).starts_with(open);
  const auto end = text.find(close, first);
  // Without an opening tag, a closing one counts only before any code: a template may have opened it in the prompt.
  const bool closes = end != std::string_view::npos && (opened || text.substr(0, end).find("```") == std::string_view::npos);
  if (!opened && !closes) return std::string(text);
  const auto begin = opened ? first + open.size() : first;
  if (thinking) *thinking += trim(text.substr(begin, closes ? end - begin : std::string_view::npos));
  return closes ? std::string(text.substr(end + close.size())) : std::string();
}

expected<void> check_llm_config(const llm_config& c) {
  const std::vector<std::string> kinds = {"openai", "command", "replay"};
  if (std::find(kinds.begin(), kinds.end(), c.kind) == kinds.end()) {
    const auto near = nearest_names(c.kind, kinds, 1);
    return fail(ec::invalid_argument, "LLM kind '" + printable(c.kind) + "' is not one of " + join(kinds, ", "),
                near.empty() ? "" : "did you mean '" + near[0] + "'?");
  }
  if (c.kind == "openai") {
    if (c.base_url.empty())
      return fail(ec::invalid_argument, "an LLM of kind openai needs base_url",
                  "for example https://api.openai.com/v1, https://api.deepseek.com/v1, http://127.0.0.1:11434/v1 (Ollama)");
    if (!c.base_url.starts_with("http://") && !c.base_url.starts_with("https://"))
      return fail(ec::invalid_argument, "base_url must start with http:// or https://");
    if (c.base_url.find_first_of("@?#") != std::string::npos)
      return fail(ec::invalid_argument, "base_url must not hold a user, password, query or fragment",
                  "put the key into an environment variable and its name into key_env");
    if (c.model.empty()) return fail(ec::invalid_argument, "an LLM of kind openai needs model", "the name that the endpoint knows");
  }
  if (c.kind == "command" && (c.command.empty() || c.command[0].empty()))
    return fail(ec::invalid_argument, "an LLM of kind command needs command: the program and its arguments",
                "the prompt comes on stdin, the answer is read from stdout");
  if (c.kind == "replay" && c.replay_file.empty())
    return fail(ec::invalid_argument, "an LLM of kind replay needs replay_file: a transcript of an earlier run");
  struct range {
    const char* key;
    double value, least, most;
  };
  const range ranges[] = {{"timeout_seconds", c.timeout_seconds, 1e-3, 86400}, {"retries", static_cast<double>(c.retries), 0, 20},
                          {"retry_seconds", c.retry_seconds, 0, 3600}, {"max_wait_seconds", c.max_wait_seconds, 0, 86400},
                          {"max_tokens", static_cast<double>(c.max_tokens), 0, 1e9},
                          {"price_prompt", c.price_prompt, 0, 1e9}, {"price_completion", c.price_completion, 0, 1e9},
                          {"budget_tokens", static_cast<double>(c.budget_tokens), 0, 1e15}, {"budget_cost", c.budget_cost, 0, 1e12}};
  for (const auto& r : ranges)
    if (!(r.value >= r.least && r.value <= r.most))
      return fail(ec::invalid_argument, std::string(r.key) + " is " + json(r.value).dump() + "; it must lie between " +
                                            json(r.least).dump() + " and " + json(r.most).dump());
  if (c.temperature != -1 && !(c.temperature >= 0 && c.temperature <= 10))
    return fail(ec::invalid_argument, "temperature is " + json(c.temperature).dump() + "; it must lie between 0 and 10, or be -1 (not sent)");
  if (!c.extra_body.is_object()) return fail(ec::invalid_argument, "extra_body must be a JSON object");
  if (c.budget_cost > 0 && c.price_prompt <= 0 && c.price_completion <= 0)
    return fail(ec::invalid_argument, "budget_cost needs price_prompt and price_completion (money per million tokens)");
  return {};
}

expected<llm_config> parse_llm_config(std::string_view text, std::string_view what) {
  const std::string where(what);
  const auto kept = parse_settings(text, what, llm_config{});
  if (!kept) return fail(kept.error());
  auto config = from_json_value<llm_config>(*kept, what);
  if (!config) return config;
  if (auto good = check_llm_config(*config); !good)
    return fail(good.error().code, where + ": " + good.error().message, good.error().hint);
  return config;
}

expected<std::unique_ptr<chat_model>> make_chat_model(const llm_config& config, const std::filesystem::path& transcript,
                                                      const std::atomic<bool>* cancel, const std::optional<chat_usage>& used) {
  if (auto good = check_llm_config(config); !good) return fail(good.error());
  chat_usage before;
  size_t given = 0;
  std::error_code ignored;
  if (!transcript.empty() && std::filesystem::is_regular_file(transcript, ignored)) {
    if (config.kind == "replay" && std::filesystem::equivalent(transcript, config.replay_file, ignored))
      return fail(ec::invalid_argument, "the transcript " + transcript.string() + " cannot be replayed and written at once",
                  "copy it first");
    auto entries = used ? llm::read_transcript(transcript) : expected<std::vector<json>>{};
    if (!entries) return fail(entries.error());
    for (const auto& entry : *entries) {
      if (entry.contains("answer")) ++given;
      const auto usage = from_json_value<chat_usage>(entry.value("usage", json::object()), transcript.string());
      if (!usage) continue;
      before.prompt_tokens += usage->prompt_tokens;
      before.completion_tokens += usage->completion_tokens;
      before.cost += usage->cost;
    }
  }
  if (used) { // the transcript knows of an attempt that was cut off; the record goes to other machines
    before.prompt_tokens = std::max(before.prompt_tokens, used->prompt_tokens);
    before.completion_tokens = std::max(before.completion_tokens, used->completion_tokens);
    before.cost = std::max(before.cost, used->cost);
  }
  auto backend = config.kind == "openai"    ? llm::make_openai(config, cancel)
                 : config.kind == "command" ? llm::make_command(config, cancel)
                                            : llm::make_replay(config, given);
  if (!backend) return fail(backend.error());
  auto writer = llm::transcript_writer::open(transcript);
  if (!writer) return fail(writer.error());
  if (!used)
    if (auto begun = writer->append({{"begin", (*backend)->name()}, {"time", utc_now()}}); !begun) return fail(begun.error());
  return std::make_unique<metered_model>(config, std::move(*backend), std::move(*writer), before, cancel);
}

} // namespace pragma
