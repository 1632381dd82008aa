// What the clients of a model's HTTP API share (chat completions, embeddings): the address, the key, what a refusal means for people, and how
// long to wait before the next try. Used by llm and embeddings.
#pragma once

#include "base/http.hpp"

#include <mutex>
#include <random>

namespace pragma {

class api_endpoint {
public:
  /// `path`: "/chat/completions"; it is added to `base_url` where that does not end in it. `key_env`: the environment variable that holds the key, or empty.
  api_endpoint(std::string base_url, std::string_view path, std::string key_env, std::string model);

  const std::string& url() const { return url_; }
  /// POST of a JSON body, with the key.
  http_request post(std::string body) const;
  /// An error about this address: "POST http://...: what".
  error failed(ec code, const std::string& what, std::string hint = {}) const;
  /// The error of a response whose status is no success; `body`: what it said.
  error refused(const http_response& response, const std::string& body) const;
  /// Endpoints quote the key in their messages, and a model may repeat whatever it was sent: it ends here.
  void redact(std::string& text) const;
  void redact(error& e) const;

private:
  std::string url_, key_env_, key_, model_;
};

/// What an endpoint says of a failure: {"error": {"message"}}, {"error": "text"}, {"message"}, {"detail"}, or its first lines.
std::string api_error_text(const std::string& body);
/// Whether another try may help: no connection, a timeout, too many requests, a fault of the server.
bool worth_another_try(const error& e);
bool worth_another_try(int status);

/// Doubling waits with jitter, so that the jobs of a cluster don't come back together. Safe to use from several threads.
class retry_waits {
public:
  /// `first`: seconds before the second try; `most`: the longest wait. `cancel`: ends a wait within 20 ms.
  retry_waits(double first, double most, const std::atomic<bool>* cancel) : first_(first), most_(most), cancel_(cancel) {}
  /// Seconds to wait after try `number` (from 0).
  double after(int number);
  void pause(double seconds) const;

private:
  double first_, most_;
  const std::atomic<bool>* cancel_;
  std::mutex mutex_;
  std::mt19937 random_{std::random_device{}()};
};

} // namespace pragma
