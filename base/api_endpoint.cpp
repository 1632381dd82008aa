#include "base/api_endpoint.hpp"

#include "base/json.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>

namespace pragma {

api_endpoint::api_endpoint(std::string base_url, std::string_view path, std::string key_env, std::string model)
    : url_(std::move(base_url)), key_env_(std::move(key_env)), model_(std::move(model)) {
  while (url_.ends_with('/')) url_.pop_back();
  if (!url_.ends_with(path)) url_ += path;
  if (const char* key = key_env_.empty() ? nullptr : std::getenv(key_env_.c_str())) key_ = trim(key);
}

http_request api_endpoint::post(std::string body) const {
  http_request request;
  request.method = "POST";
  request.url = url_;
  request.headers = {{"Content-Type", "application/json"}};
  if (!key_.empty()) request.headers.emplace_back("Authorization", "Bearer " + key_);
  request.body = std::move(body);
  return request;
}

error api_endpoint::failed(ec code, const std::string& what, std::string hint) const {
  error e{code, "POST " + public_url(url_) + ": " + what, std::move(hint)};
  redact(e);
  return e;
}

error api_endpoint::refused(const http_response& response, const std::string& body) const {
  const int status = response.status;
  const auto said = api_error_text(body);
  std::string hint;
  if (status == 401 || status == 403) {
    if (key_env_.empty()) hint = "no key was sent: key_env names no environment variable";
    else if (key_.empty()) hint = "no key was sent: the environment variable " + key_env_ + " (key_env) is not set";
    else hint = "the key was taken from the environment variable " + key_env_ + " (key_env)";
  } else if (status == 404) {
    hint = "does the endpoint know the model '" + printable(model_) + "', and is base_url right (it mostly ends in /v1)?";
  } else if (status >= 300 && status < 400) {
    if (const auto* where = response.header("location")) hint = "it moved to " + public_url(*where) + ": set base_url to the new address";
  }
  return failed(ec::remote_failed, "status " + std::to_string(status) + (said.empty() ? "" : ": " + said), std::move(hint));
}

void api_endpoint::redact(std::string& text) const { pragma::redact(text, key_, "[" + key_env_ + "]"); }

void api_endpoint::redact(error& e) const {
  redact(e.message);
  redact(e.hint);
}

std::string api_error_text(const std::string& body) {
  const auto value = parse_if_json(printable(body));
  if (value.is_object())
    for (const char* key : {"error", "message", "detail"}) {
      const auto it = value.find(key);
      if (it == value.end() || it->is_null()) continue;
      if (it->is_object() && it->contains("message") && (*it)["message"].is_string()) return printable((*it)["message"].get<std::string>());
      return printable(it->is_string() ? it->get<std::string>() : it->dump(-1, ' ', false, json::error_handler_t::replace));
    }
  return trim(cut_lines(printable(body.substr(0, 2048)), 8, 0, 600));
}

bool worth_another_try(const error& e) { return e.code == ec::timeout || e.code == ec::remote_failed; }

bool worth_another_try(int status) { return status == 429 || status == 500 || status == 502 || status == 503 || status == 504; }

double retry_waits::after(int number) {
  const std::lock_guard lock(mutex_);
  std::uniform_real_distribution<double> jitter(0.5, 1.0);
  return std::min(most_, first_ * std::ldexp(1.0, std::min(number, 20))) * jitter(random_);
}

void retry_waits::pause(double seconds) const {
  using clock = std::chrono::steady_clock;
  const auto until = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds));
  while (!cancel_ || !cancel_->load()) {
    const auto left = until - clock::now();
    if (left <= clock::duration::zero()) return;
    std::this_thread::sleep_for(std::min<clock::duration>(left, std::chrono::milliseconds(20)));
  }
}

} // namespace pragma
