// An OpenAI-compatible chat endpoint: OpenAI, DeepSeek, vLLM, llama.cpp, Ollama, LM Studio and the like, which differ in
// what they leave out. Streaming where they can, so that people see progress and a silent death is noticed.
#include "llm/attempt.hpp"

#include "base/api_endpoint.hpp"
#include "base/text.hpp"
#include "llm/sse.hpp"

#include <algorithm>

namespace pragma::llm {

namespace {

// One token of a stream arrives in some 200 bytes of JSON; an answer in one piece is at most escaped.
constexpr size_t stream_overhead = 64, json_overhead = 8;

/// JSON of strangers: invalid UTF-8 and control characters replaced, and halves of a surrogate pair (an emoji split over
/// two tokens) turned into U+FFFD where nothing else is wrong.
std::optional<json> parse_leniently(std::string_view text) {
  auto clean = printable(text);
  auto value = parse_if_json(clean);
  if (!value.is_discarded()) return value;
  auto digit_of = [&](size_t i) { return i < clean.size() ? static_cast<char>(std::tolower(static_cast<unsigned char>(clean[i]))) : '\0'; };
  auto high = [&](size_t i) { return digit_of(i + 2) == 'd' && (digit_of(i + 3) == '8' || digit_of(i + 3) == '9' || digit_of(i + 3) == 'a' || digit_of(i + 3) == 'b'); };
  auto low = [&](size_t i) { return digit_of(i) == '\\' && digit_of(i + 1) == 'u' && digit_of(i + 2) == 'd' && digit_of(i + 3) >= 'c'; };
  for (size_t i = 0; i + 5 < clean.size(); ++i) {
    if (clean[i] != '\\') continue;
    if (clean[i + 1] != 'u') {
      ++i;
      continue;
    }
    if (high(i) && low(i + 6)) {
      i += 11;
      continue;
    }
    if (high(i) || low(i)) clean.replace(i + 2, 4, "fffd");
    i += 5;
  }
  value = parse_if_json(clean);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

/// Text, or the text parts of an array of parts, which some servers send.
std::string text_of(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return {};
  if (it->is_string()) return it->get<std::string>();
  std::string all;
  if (it->is_array())
    for (const auto& part : *it)
      if (part.is_object() && part.contains("text") && part["text"].is_string()) all += part["text"].get<std::string>();
  return all;
}

/// Gathers an answer from a stream's events, or from the one object of an answer in one piece.
struct gathered {
  attempt a;
  bool done = false, too_long = false, malformed = false;
  std::string problem; ///< an error object in the middle of the stream

  void take(const json& object) {
    if (!object.is_object()) {
      malformed = true;
      return;
    }
    if (const auto it = object.find("error"); it != object.end() && !it->is_null()) {
      problem = it->is_object() ? text_of(*it, "message") : it->dump(-1, ' ', false, json::error_handler_t::replace);
      if (problem.empty()) problem = "an error without words";
      return;
    }
    if (const auto model = text_of(object, "model"); !model.empty()) a.model = model;
    if (const auto it = object.find("usage"); it != object.end() && it->is_object()) {
      a.prompt_tokens = number(*it, "prompt_tokens");
      a.completion_tokens = number(*it, "completion_tokens");
      a.usage_known = a.prompt_tokens > 0 || a.completion_tokens > 0;
    }
    const auto choices = object.find("choices");
    if (choices == object.end() || !choices->is_array() || choices->empty() || !(*choices)[0].is_object()) return;
    const auto& choice = (*choices)[0];
    if (const auto reason = text_of(choice, "finish_reason"); !reason.empty()) {
      a.finish_reason = reason;
      done = true;
    }
    for (const char* place : {"delta", "message"}) {
      const auto it = choice.find(place);
      if (it == choice.end() || !it->is_object()) continue;
      a.text += text_of(*it, "content");
      a.text += text_of(*it, "refusal");
      a.reasoning += text_of(*it, "reasoning_content");
      if (!it->contains("reasoning_content")) a.reasoning += text_of(*it, "reasoning");
    }
    too_long = a.text.size() > defaults::llm_max_answer_bytes || a.reasoning.size() > defaults::llm_max_answer_bytes;
  }
  static int64_t number(const json& object, const char* key) {
    const auto it = object.find(key);
    return it != object.end() && it->is_number() ? std::max<int64_t>(0, it->get<int64_t>()) : 0;
  }
};

class openai_backend : public backend {
public:
  openai_backend(llm_config config, const std::atomic<bool>* cancel)
      : config_(std::move(config)), cancel_(cancel), endpoint_(config_.base_url, "/chat/completions", config_.key_env, config_.model),
        stream_(config_.stream) {}

  attempt try_once(const std::vector<chat_message>& messages, const std::function<void(size_t)>& on_progress) override {
    // Servers that don't know usage in a stream, or streaming at all, say so in a 400: ask in plainer words, for good.
    for (;;) {
      bool plainer = false;
      auto a = exchange(messages, on_progress, plainer);
      if (!plainer) return a;
    }
  }
  std::string name() const override { return "openai:" + config_.model; }

private:
  std::string request_body(const std::vector<chat_message>& messages) const {
    json body = {{"model", config_.model}, {"messages", messages}, {"stream", stream_}};
    if (stream_ && ask_usage_) body["stream_options"] = {{"include_usage", true}};
    if (config_.temperature >= 0) body["temperature"] = config_.temperature;
    if (config_.max_tokens > 0) body["max_tokens"] = config_.max_tokens;
    body.update(config_.extra_body);
    return body.dump(-1, ' ', false, json::error_handler_t::replace);
  }

  attempt exchange(const std::vector<chat_message>& messages, const std::function<void(size_t)>& on_progress, bool& plainer) {
    gathered g;
    std::string whole; // an error, or an answer in one piece
    sse_parser events([&](std::string_view data) {
      if (data == "[DONE]") {
        g.done = true;
        return;
      }
      if (auto value = parse_leniently(data)) g.take(*value);
      else g.malformed = true;
    });
    bool is_stream = false;

    auto request = endpoint_.post(request_body(messages));
    request.headers.emplace_back("Accept", stream_ ? "text/event-stream" : "application/json");
    request.timeout_seconds = config_.timeout_seconds;
    request.connect_timeout_seconds = std::min(request.connect_timeout_seconds, config_.timeout_seconds);
    request.max_body_bytes = defaults::llm_max_answer_bytes * (stream_ ? stream_overhead : json_overhead);
    request.proxy_from_environment = config_.use_proxy;
    request.cancel = cancel_;
    request.on_body = [&](const http_response& so_far, std::string_view chunk) {
      if (whole.empty() && !is_stream && so_far.status == 200) {
        const auto* type = so_far.header("content-type");
        is_stream = type && type->find("text/event-stream") != std::string::npos;
        if (!is_stream && !type) is_stream = trim(chunk).starts_with("data:");
      }
      if (!is_stream) {
        whole += chunk;
        if (on_progress && so_far.status == 200) on_progress(whole.size());
        return whole.size() <= defaults::llm_max_answer_bytes * json_overhead;
      }
      if (!events.feed(chunk)) g.too_long = true;
      if (on_progress) on_progress(g.a.text.size() + g.a.reasoning.size());
      return !g.too_long && g.problem.empty();
    };
    auto response = http_send(request);
    if (is_stream) events.finish();
    return judge(std::move(g), response, whole, is_stream, plainer);
  }

  attempt judge(gathered g, const expected<http_response>& response, const std::string& whole, bool is_stream, bool& plainer) {
    auto& a = g.a;
    if (!response) {
      // A refused connection never reached the model; anything after that may have cost tokens.
      a.reached = response.error().code == ec::timeout || !a.text.empty() || !a.reasoning.empty();
      a.retry = worth_another_try(response.error());
      a.failure = response.error();
      if (g.too_long) return too_long(std::move(a));
      return redacted(std::move(a));
    }
    if (response->status != 200) return refused(std::move(a), *response, whole, plainer);
    a.reached = true;
    if (!is_stream && !g.too_long) {
      if (whole.size() > defaults::llm_max_answer_bytes * json_overhead) return too_long(std::move(a));
      const auto value = parse_leniently(whole);
      if (!value || !value->is_object())
        return failed(std::move(a), ec::remote_failed,
                      "the answer is not a JSON object: '" + cut_lines(printable(std::string_view(whole).substr(0, 200)), 3, 0) + "'",
                      "is base_url the API's address (it mostly ends in /v1)?");
      g.take(*value);
      if (g.problem.empty() && (!value->contains("choices") || !(*value)["choices"].is_array() || (*value)["choices"].empty()))
        return failed(std::move(a), ec::remote_failed, "the answer has no \"choices\"", "is base_url the API's address (it mostly ends in /v1)?");
      g.done = true;
    }
    if (g.too_long) return too_long(std::move(a));
    if (!g.problem.empty()) return failed(std::move(a), ec::remote_failed, g.problem, "");
    if (!g.done)
      return failed(std::move(a), ec::remote_failed,
                    g.malformed ? "the stream has events that are not JSON, and no end" : "the stream broke off before its end", "");
    return redacted(std::move(a));
  }

  /// A status other than 200.
  attempt refused(attempt a, const http_response& response, const std::string& whole, bool& plainer) {
    const auto said = api_error_text(whole);
    const int status = response.status;
    if ((status == 400 || status == 422 || status == 501) && stream_) {
      if (ask_usage_ && (whole.find("stream_options") != std::string::npos || whole.find("include_usage") != std::string::npos)) {
        ask_usage_ = false;
        plainer = true;
        return a;
      }
      if (said.find("stream") != std::string::npos) {
        stream_ = false;
        plainer = true;
        return a;
      }
    }
    a.failure = endpoint_.refused(response, whole);
    a.retry = worth_another_try(status);
    a.wait = a.retry ? retry_after_seconds(response) : std::nullopt;
    return redacted(std::move(a));
  }

  attempt too_long(attempt a) const {
    a = failed(std::move(a), ec::limit_exceeded,
               "the answer is longer than " + format_bytes(defaults::llm_max_answer_bytes) + " and was cut off",
               "set max_tokens");
    a.retry = false;
    a.text.clear();
    a.reached = true;
    return a;
  }
  attempt failed(attempt a, ec code, const std::string& what, std::string hint) const {
    a.failure = endpoint_.failed(code, what, std::move(hint));
    a.retry = true;
    return redacted(std::move(a));
  }

  /// A model may repeat the key as well.
  attempt redacted(attempt a) const {
    endpoint_.redact(a.text);
    endpoint_.redact(a.reasoning);
    endpoint_.redact(a.model);
    if (a.failure) endpoint_.redact(*a.failure);
    return a;
  }

  llm_config config_;
  const std::atomic<bool>* cancel_;
  api_endpoint endpoint_;
  bool stream_, ask_usage_ = true;
};

} // namespace

expected<std::unique_ptr<backend>> make_openai(const llm_config& config, const std::atomic<bool>* cancel) {
  return std::make_unique<openai_backend>(config, cancel);
}

} // namespace pragma::llm
