#include "site_server.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pragma::test {

namespace {

bool send_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

} // namespace

std::string site_request::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return {};
}

site_answer html(std::string body) {
  site_answer a;
  a.body = std::move(body);
  return a;
}

site_answer redirect(std::string to, int status) {
  site_answer a;
  a.status = status;
  a.headers = {{"Location", std::move(to)}};
  a.body = "moved";
  return a;
}

site_answer with_status(int status, std::vector<std::pair<std::string, std::string>> headers) {
  site_answer a;
  a.status = status;
  a.headers = std::move(headers);
  if (status != 204) a.body = "status " + std::to_string(status);
  return a;
}

site_server::site_server() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("site_server: pipe failed");
  wake_read_ = ends[0];
  wake_write_ = ends[1];
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || ::bind(listener_, generic, size) != 0 || ::listen(listener_, 64) != 0 || ::getsockname(listener_, generic, &size) != 0)
    throw std::runtime_error(std::string("site_server: no loopback socket: ") + std::strerror(errno));
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

site_server::~site_server() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = release_ = true;
  }
  released_.notify_all();
  ::close(wake_write_); // makes wake_read_ readable for good
  acceptor_.join();
  for (auto& thread : connections_) thread.join();
  ::close(wake_read_);
  ::close(listener_);
}

void site_server::set(const std::string& target, site_answer answer) {
  const std::lock_guard lock(mutex_);
  answers_[target] = std::move(answer);
}
void site_server::script(const std::string& target, std::vector<site_answer> answers) {
  const std::lock_guard lock(mutex_);
  scripts_[target] = std::move(answers);
}
void site_server::remove(const std::string& target) {
  const std::lock_guard lock(mutex_);
  answers_.erase(target);
}
void site_server::otherwise(std::function<std::optional<site_answer>(const site_request&)> answer) {
  const std::lock_guard lock(mutex_);
  otherwise_ = std::move(answer);
}
void site_server::release() {
  {
    const std::lock_guard lock(mutex_);
    release_ = true;
  }
  released_.notify_all();
}

std::string site_server::url(std::string_view path) const { return "http://127.0.0.1:" + std::to_string(port_) + std::string(path); }

std::vector<site_request> site_server::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}
size_t site_server::hits(const std::string& target) const {
  const std::lock_guard lock(mutex_);
  const auto found = hits_.find(target);
  return found == hits_.end() ? 0 : found->second;
}
size_t site_server::hits() const {
  const std::lock_guard lock(mutex_);
  return requests_.size();
}
size_t site_server::not_modified() const {
  const std::lock_guard lock(mutex_);
  return not_modified_;
}
int site_server::most_at_once() const {
  const std::lock_guard lock(mutex_);
  return most_;
}
void site_server::forget() {
  const std::lock_guard lock(mutex_);
  requests_.clear();
  hits_.clear();
  not_modified_ = 0;
  most_ = 0;
}
bool site_server::wait_for_hits(const std::string& target, size_t count, double seconds) const {
  std::unique_lock lock(mutex_);
  return arrived_.wait_for(lock, std::chrono::duration<double>(seconds), [&] {
    const auto found = hits_.find(target);
    return found != hits_.end() && found->second >= count;
  });
}

/// True when the connection is readable; false when the server stops or the time is over.
bool site_server::wait(int connection, double seconds) const {
  pollfd fds[2] = {{wake_read_, POLLIN, 0}, {connection, POLLIN, 0}};
  const int n = ::poll(fds, 2, seconds < 0 ? -1 : static_cast<int>(seconds * 1e3));
  return n > 0 && fds[0].revents == 0 && fds[1].revents != 0;
}

void site_server::accept_all() {
  while (wait(listener_, -1)) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    const int on = 1;
    ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connections_.emplace_back([this, connection] { serve(connection); });
  }
}

void site_server::serve(int connection) {
  std::string data;
  char buffer[16384];
  bool open = true;
  while (open) {
    size_t end = data.find("\r\n\r\n");
    if (end == std::string::npos) {
      if (data.size() > (1u << 20) || !wait(connection, 60)) break;
      const ssize_t n = ::recv(connection, buffer, sizeof buffer, 0);
      if (n <= 0) break;
      data.append(buffer, static_cast<size_t>(n));
      continue;
    }
    site_request request;
    request.at = std::chrono::steady_clock::now();
    const std::string head = data.substr(0, end);
    data.erase(0, end + 4);
    size_t at = head.find("\r\n");
    const auto line = head.substr(0, at);
    const auto first = line.find(' '), second = line.rfind(' ');
    if (first == std::string::npos || second <= first) break;
    request.method = line.substr(0, first);
    request.target = line.substr(first + 1, second - first - 1);
    while (at != std::string::npos) {
      const auto start = at + 2;
      at = head.find("\r\n", start);
      const auto header = head.substr(start, at == std::string::npos ? at : at - start);
      const auto colon = header.find(':');
      if (colon == std::string::npos) continue;
      std::string key = header.substr(0, colon);
      for (auto& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      const auto value = header.find_first_not_of(' ', colon + 1);
      request.headers.emplace_back(key, value == std::string::npos ? "" : header.substr(value));
    }
    open = answer(connection, request) && request.header("connection") != "close";
  }
  ::close(connection);
}

/// False: the connection is to be closed.
bool site_server::answer(int connection, const site_request& request) {
  site_answer a;
  std::function<std::optional<site_answer>(const site_request&)> ask;
  {
    const std::lock_guard lock(mutex_);
    if (recording) requests_.push_back(request);
    ++hits_[request.target];
    most_ = std::max(most_, ++now_);
    auto& script = scripts_[request.target];
    if (!script.empty()) {
      a = script.front();
      script.erase(script.begin());
    } else if (const auto found = answers_.find(request.target); found != answers_.end()) {
      a = found->second;
    } else {
      a = with_status(404);
      ask = otherwise_;
    }
  }
  arrived_.notify_all();
  if (ask)
    if (auto given = ask(request)) a = std::move(*given);

  struct count_down {
    site_server* server;
    ~count_down() {
      const std::lock_guard lock(server->mutex_);
      --server->now_;
    }
  };
  const count_down one_less{this};
  if (a.hang) {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [&] { return release_; });
    return false;
  }
  if (a.reset) {
    const linger hard{1, 0};
    ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    return false;
  }
  const bool same = (!a.etag.empty() && request.header("if-none-match") == a.etag) ||
                    (a.etag.empty() && !a.modified.empty() && request.header("if-modified-since") == a.modified);
  if (same && a.status == 200) {
    a.status = 304;
    a.body.clear();
    const std::lock_guard lock(mutex_);
    ++not_modified_;
  }
  std::string head = "HTTP/1.1 " + std::to_string(a.status) + " Scripted\r\n";
  if (!a.type.empty() && a.status != 304) head += "Content-Type: " + a.type + "\r\n";
  if (!a.etag.empty()) head += "ETag: " + a.etag + "\r\n";
  if (!a.modified.empty()) head += "Last-Modified: " + a.modified + "\r\n";
  for (const auto& [key, value] : a.headers) head += key + ": " + value + "\r\n";
  if (a.endless > 0) {
    if (!send_all(connection, head + "Connection: close\r\n\r\n")) return false;
    for (uint64_t sent = 0; sent < a.endless; sent += a.body.size())
      if (!send_all(connection, a.body)) return false;
    return false;
  }
  if (a.status != 304 && a.status != 204) head += "Content-Length: " + std::to_string(a.body.size()) + "\r\n";
  head += "\r\n";
  if (request.method != "HEAD" && a.status != 304) head.append(a.body, 0, a.truncate ? a.body.size() / 2 : a.body.size());
  return send_all(connection, head) && !a.truncate;
}

} // namespace pragma::test
