// Embeddings of an OpenAI-compatible endpoint: OpenAI, vLLM, llama.cpp, Ollama, text-embeddings-inference and the like.
#include "base/api_endpoint.hpp"

#include "base/defaults.hpp"
#include "base/text.hpp"
#include "embeddings/embedder.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace pragma {

namespace {

constexpr size_t max_text_bytes = 8 << 10;      // some 2,000 tokens: below every model's limit; the rest of a text adds little
constexpr size_t max_number_bytes = 32;         // of one component in JSON, generously
constexpr size_t max_answer_dimension = 65536;  // before the dimension is known
constexpr size_t answer_overhead = 1 << 20;

/// At most `most` bytes, not cut inside a character.
std::string cut(const std::string& text, size_t most) {
  if (text.size() <= most) return printable(text);
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return printable(std::string_view(text).substr(0, end));
}

/// One try at one batch.
struct attempt {
  std::optional<error> failure;
  bool retry = false;
  std::optional<double> wait; ///< seconds that the server asked for
  std::vector<float> rows;
};

class endpoint : public embedder {
public:
  endpoint(const embedding_config& config, const std::atomic<bool>* cancel)
      : config_(config), cancel_(cancel), api_(config.base_url, "/embeddings", config.key_env, config.model),
        waits_(config.retry_seconds, defaults::llm_max_wait_seconds, cancel), dimension_(config.dimension) {}

  expected<void> probe() {
    const std::string text = "cache misses";
    auto rows = batch(std::span(&text, 1));
    if (!rows) return fail(rows.error());
    dimension_ = static_cast<int>(rows->size());
    return {};
  }

  int dimension() const override { return dimension_; }
  std::string name() const override { return "http " + config_.model + " " + std::to_string(dimension_); }

  expected<std::vector<float>> embed(std::span<const std::string> texts) const override {
    const auto d = static_cast<size_t>(dimension_);
    std::vector<float> all(texts.size() * d, 0.f);
    std::vector<size_t> places; // of texts that have words at all: endpoints refuse empty ones
    for (size_t i = 0; i < texts.size(); ++i)
      if (!trim(texts[i]).empty()) places.push_back(i);
    const auto most = static_cast<size_t>(config_.batch);
    std::vector<std::string> some;
    for (size_t first = 0; first < places.size(); first += most) {
      const size_t count = std::min(most, places.size() - first);
      some.clear();
      for (size_t i = 0; i < count; ++i) some.push_back(texts[places[first + i]]);
      auto rows = batch(some);
      if (!rows) return fail(rows.error());
      for (size_t i = 0; i < count; ++i)
        std::copy_n(rows->begin() + static_cast<long>(i * d), d, all.begin() + static_cast<long>(places[first + i] * d));
    }
    return all;
  }

private:
  bool cancelled() const { return cancel_ && cancel_->load(); }

  expected<std::vector<float>> batch(std::span<const std::string> texts) const {
    for (int number = 0;; ++number) {
      if (cancelled()) return fail(ec::interrupted, "POST " + public_url(api_.url()) + " was cancelled");
      auto a = try_once(texts);
      if (!a.failure) return std::move(a.rows);
      auto& e = *a.failure;
      const double wait = a.wait ? *a.wait : waits_.after(number);
      if (a.retry && number < config_.retries && wait <= defaults::llm_max_wait_seconds) {
        waits_.pause(wait);
        continue;
      }
      if (a.retry && wait > defaults::llm_max_wait_seconds)
        e.hint = "the endpoint asks to wait " + format_seconds(wait) + ": try again later; nothing that was built before is lost";
      if (number > 0) e.message += " (after " + std::to_string(number + 1) + " tries)";
      return fail(std::move(e));
    }
  }

  attempt try_once(std::span<const std::string> texts) const {
    json input = json::array();
    for (const auto& text : texts) input.push_back(cut(text, max_text_bytes));
    auto request = api_.post(json{{"model", config_.model}, {"input", std::move(input)}, {"encoding_format", "float"}}.dump(
        -1, ' ', false, json::error_handler_t::replace));
    request.headers.emplace_back("Accept", "application/json");
    request.timeout_seconds = config_.timeout_seconds;
    request.connect_timeout_seconds = std::min(request.connect_timeout_seconds, config_.timeout_seconds);
    const size_t d = dimension_ > 0 ? static_cast<size_t>(dimension_) : max_answer_dimension;
    request.max_body_bytes = texts.size() * d * max_number_bytes + answer_overhead;
    request.proxy_from_environment = config_.use_proxy;
    request.cancel = cancel_;
    auto response = http_send(request);
    attempt a;
    if (!response) {
      a.retry = worth_another_try(response.error());
      a.failure = response.error();
      api_.redact(*a.failure);
      return a;
    }
    if (!response->ok()) return refused(*response);
    return read(*response, texts.size());
  }

  attempt failed(const std::string& what, std::string hint, bool retry) const {
    attempt a;
    a.failure = api_.failed(ec::remote_failed, what, std::move(hint));
    a.retry = retry;
    return a;
  }

  attempt refused(const http_response& response) const {
    attempt a;
    a.failure = api_.refused(response, response.body);
    if (response.status == 413) a.failure->hint = "set a smaller batch";
    a.retry = worth_another_try(response.status);
    a.wait = a.retry ? retry_after_seconds(response) : std::nullopt;
    return a;
  }

  /// {"data": [{"index": 1, "embedding": [...]}, ...]}, in any order; without any "index" in the order of the texts.
  attempt read(const http_response& response, size_t texts) const {
    static const std::string where = "is base_url the API's address (it mostly ends in /v1)?";
    const auto value = parse_if_json(response.body);
    if (!value.is_object())
      return failed("the answer is not a JSON object: '" + cut_lines(printable(std::string_view(response.body).substr(0, 200)), 3, 0) + "'", where, true);
    const auto data = value.find("data");
    if (data == value.end() || !data->is_array()) return failed("the answer has no list \"data\"", where, false);
    if (data->size() != texts)
      return failed(std::to_string(texts) + " texts were sent, " + std::to_string(data->size()) + " vectors came back", "", false);
    auto d = static_cast<size_t>(dimension_);
    attempt a;
    std::vector<bool> seen(texts, false);
    for (size_t i = 0; i < texts; ++i) {
      const auto& item = (*data)[i];
      if (!item.is_object() || !item.contains("embedding") || !item["embedding"].is_array())
        return failed("element " + std::to_string(i) + " of \"data\" has no list \"embedding\"", where, false);
      size_t place = i;
      if (item.contains("index")) {
        if (!item["index"].is_number_unsigned() || item["index"].get<uint64_t>() >= texts)
          return failed("element " + std::to_string(i) + " of \"data\" has the index " + item["index"].dump(), "", false);
        place = item["index"].get<size_t>();
      }
      if (seen[place]) return failed("two vectors have the index " + std::to_string(place), "", false);
      seen[place] = true;
      const auto& numbers = item["embedding"];
      if (d == 0) d = numbers.size();
      if (numbers.empty() || numbers.size() != d || d > max_answer_dimension)
        return failed("a vector has " + std::to_string(numbers.size()) + " dimensions, " + std::to_string(d) + " were expected",
                      "is the model of this endpoint another one than that of the index? Changing it rebuilds the vectors: `pragma kb build`", false);
      if (a.rows.empty()) a.rows.assign(texts * d, 0.f);
      double squares = 0;
      for (size_t k = 0; k < d; ++k) {
        const double x = numbers[k].is_number() ? numbers[k].get<double>() : std::nan("");
        if (!std::isfinite(x) || std::abs(x) > 1e18) return failed("a vector holds something that is no finite number", "", false);
        a.rows[place * d + k] = static_cast<float>(x);
        squares += x * x;
      }
      const double norm = squares > 0 ? 1 / std::sqrt(squares) : 0;
      for (size_t k = 0; k < d; ++k) a.rows[place * d + k] = static_cast<float>(static_cast<double>(a.rows[place * d + k]) * norm);
    }
    return a;
  }

  embedding_config config_;
  const std::atomic<bool>* cancel_;
  api_endpoint api_;
  mutable retry_waits waits_;
  int dimension_;
};

} // namespace

expected<std::unique_ptr<embedder>> http_embedder(const embedding_config& config, const std::atomic<bool>* cancel) {
  if (config.kind != "http") return fail(ec::invalid_argument, "embeddings of kind '" + printable(config.kind) + "' are not asked over HTTP");
  if (auto good = check_embedding_config(config); !good) return fail(good.error());
  auto e = std::make_unique<endpoint>(config, cancel);
  if (config.dimension == 0)
    if (auto probed = e->probe(); !probed) return fail(probed.error());
  return e;
}

} // namespace pragma
