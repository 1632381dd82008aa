// A small HTTP/1.1 server over a real loopback socket, for tests that need an endpoint shaped like an LLM's: it answers
// from a script (or from a function that sees the request), can delay, cut off, hang or reset, and records what it was sent.
// One connection at a time, each closed after its answer; runs in a thread of its own that ends with the object.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace pragma::test {

struct stub_request {
  std::string method, path, body;
  std::vector<std::pair<std::string, std::string>> headers; ///< names in lower case
  std::chrono::steady_clock::time_point at;                 ///< when it had arrived completely

  /// Value of a header, empty when absent.
  std::string header(std::string_view name) const;
};

struct stub_reply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::vector<std::string> chunks;  ///< when not empty: sent one by one with chunked transfer encoding, instead of `body`
  double delay_seconds = 0;         ///< before the first byte
  double chunk_delay_seconds = 0;   ///< between chunks
  bool truncate = false;            ///< close before the announced end (Content-Length or the last chunk)
  bool hang = false;                ///< read the request and say nothing until the client goes away
  bool reset = false;               ///< end the connection with a TCP reset instead of answering
};

class stub_server {
public:
  /// Sees the request and its number (from 0); called in the server's thread.
  using responder = std::function<stub_reply(const stub_request&, size_t)>;

  /// Answers in order; a request after the last one gets a 500 that says so, and counts in unexpected().
  explicit stub_server(std::vector<stub_reply> script);
  explicit stub_server(responder respond);
  ~stub_server();
  stub_server(const stub_server&) = delete;
  stub_server& operator=(const stub_server&) = delete;

  /// "http://127.0.0.1:PORT" + path.
  std::string url(std::string_view path = "/v1") const;
  uint16_t port() const { return port_; }
  std::vector<stub_request> requests() const;
  size_t unexpected() const { return unexpected_.load(); }
  /// True when `count` requests have arrived before the deadline.
  bool wait_for_requests(size_t count, double seconds = 10) const;

private:
  void start();
  void serve();
  void handle(int connection);
  bool read_request(int connection, stub_request& request);
  void send_reply(int connection, const stub_reply& reply);
  /// Waits on the connection (or for nothing, with -1) until it is readable, the time is over or the server stops.
  bool wait(int connection, double seconds) const;

  responder respond_;
  int listener_ = -1, wake_read_ = -1, wake_write_ = -1;
  uint16_t port_ = 0;
  std::atomic<size_t> unexpected_{0};
  mutable std::mutex mutex_;
  mutable std::condition_variable arrived_;
  std::vector<stub_request> requests_;
  std::thread thread_;
};

/// A chat completion in one piece. With `tokens` false there is no "usage".
stub_reply completion(std::string_view text, bool tokens = true, std::string_view finish_reason = "stop");
/// The same as a stream of server-sent events, `text` cut into pieces. `done` false leaves out finish_reason and [DONE].
stub_reply completion_stream(std::string_view text, bool tokens = true, bool done = true, size_t piece = 16);
/// {"error": {"message": ...}} with this status.
stub_reply failure(int status, std::string_view message, std::vector<std::pair<std::string, std::string>> headers = {});

} // namespace pragma::test
