// A small web site over a real loopback socket, for tests and benchmarks of the crawler: pages with statuses, headers, validators and
// misbehaviour, connections kept alive and served side by side, every request recorded. Ends with the object.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace pragma::test {

struct site_request {
  std::string method, target;
  std::vector<std::pair<std::string, std::string>> headers; ///< names in lower case
  std::chrono::steady_clock::time_point at;

  std::string header(std::string_view name) const;
};

struct site_answer {
  int status = 200;
  std::string body;
  std::string type = "text/html; charset=utf-8"; ///< empty: no Content-Type
  std::string etag, modified;       ///< sent, and answered with 304 when the request brings the same
  std::vector<std::pair<std::string, std::string>> headers;
  bool hang = false;                ///< say nothing until the client goes away or release() is called
  bool reset = false;               ///< a TCP reset instead of an answer
  bool truncate = false;            ///< close in the middle of the body
  uint64_t endless = 0;             ///< send the body again and again without a length, until so many bytes are sent
};

site_answer html(std::string body);
site_answer redirect(std::string to, int status = 302);
site_answer with_status(int status, std::vector<std::pair<std::string, std::string>> headers = {});

class site_server {
public:
  site_server();
  ~site_server();
  site_server(const site_server&) = delete;
  site_server& operator=(const site_server&) = delete;

  void set(const std::string& target, site_answer answer);
  /// Given first, one by one, before what set() says.
  void script(const std::string& target, std::vector<site_answer> answers);
  void remove(const std::string& target);
  /// For what is not set; nullopt is a 404.
  void otherwise(std::function<std::optional<site_answer>(const site_request&)> answer);
  /// Lets answers that hang go away without a word.
  void release();

  std::string url(std::string_view path = "/") const;
  uint16_t port() const { return port_; }
  std::vector<site_request> requests() const;
  size_t hits(const std::string& target) const;
  size_t hits() const;
  size_t not_modified() const;
  /// Requests being answered at the same time, at most.
  int most_at_once() const;
  bool wait_for_hits(const std::string& target, size_t count, double seconds = 10) const;
  void forget();                    ///< the requests so far
  bool recording = true;            ///< false for benchmarks

private:
  void accept_all();
  void serve(int connection);
  bool answer(int connection, const site_request& request);
  bool wait(int connection, double seconds) const;

  int listener_ = -1, wake_read_ = -1, wake_write_ = -1;
  uint16_t port_ = 0;
  mutable std::mutex mutex_;
  mutable std::condition_variable arrived_, released_;
  std::map<std::string, site_answer, std::less<>> answers_;
  std::map<std::string, std::vector<site_answer>> scripts_;
  std::function<std::optional<site_answer>(const site_request&)> otherwise_;
  std::vector<site_request> requests_;
  std::map<std::string, size_t> hits_;
  size_t not_modified_ = 0;
  int now_ = 0, most_ = 0;
  bool stopping_ = false, release_ = false;
  std::thread acceptor_;
  std::vector<std::thread> connections_;
};

} // namespace pragma::test
