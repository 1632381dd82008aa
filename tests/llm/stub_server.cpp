#include "stub_server.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pragma::test {

namespace {

using json = nlohmann::json;

constexpr double client_patience_seconds = 30; // a client that stops in the middle of a request is dropped after this
constexpr size_t max_request_bytes = 64u << 20;

std::string lower(std::string text) {
  for (auto& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool send_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

json usage_of(std::string_view text) {
  const auto count = static_cast<int64_t>(text.size() / 4 + 1);
  return {{"prompt_tokens", 100}, {"completion_tokens", count}, {"total_tokens", 100 + count}};
}

std::string event(const json& object) {
  return "data: " + object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n\n";
}

} // namespace

std::string stub_request::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return {};
}

stub_server::stub_server(std::vector<stub_reply> script) {
  auto replies = std::make_shared<std::vector<stub_reply>>(std::move(script));
  respond_ = [this, replies](const stub_request& request, size_t number) {
    if (number < replies->size()) return (*replies)[number];
    ++unexpected_;
    return failure(500, "the script has no answer to request " + std::to_string(number + 1) + " (" + request.path + ")");
  };
  start();
}

stub_server::stub_server(responder respond) : respond_(std::move(respond)) { start(); }

void stub_server::start() {
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) throw std::runtime_error("stub_server: pipe failed");
  wake_read_ = pipe_ends[0];
  wake_write_ = pipe_ends[1];
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || ::bind(listener_, generic, size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, generic, &size) != 0)
    throw std::runtime_error(std::string("stub_server: no loopback socket: ") + std::strerror(errno));
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

stub_server::~stub_server() {
  ::close(wake_write_); // makes wake_read_ readable for good
  thread_.join();
  ::close(wake_read_);
  ::close(listener_);
}

std::string stub_server::url(std::string_view path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
}

std::vector<stub_request> stub_server::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

bool stub_server::wait_for_requests(size_t count, double seconds) const {
  std::unique_lock lock(mutex_);
  return arrived_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return requests_.size() >= count; });
}

bool stub_server::wait(int connection, double seconds) const {
  pollfd fds[2] = {{wake_read_, POLLIN, 0}, {connection, POLLIN, 0}};
  const int n = ::poll(fds, connection >= 0 ? 2 : 1, seconds < 0 ? -1 : static_cast<int>(seconds * 1e3));
  return n > 0 && fds[0].revents == 0 && fds[1].revents != 0;
}

void stub_server::serve() {
  for (;;) {
    pollfd fds[2] = {{wake_read_, POLLIN, 0}, {listener_, POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) return;
    if (fds[1].revents == 0) continue;
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    handle(connection);
    ::close(connection);
  }
}

void stub_server::handle(int connection) {
  stub_request request;
  if (!read_request(connection, request)) return;
  size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = requests_.size();
    requests_.push_back(request);
  }
  arrived_.notify_all();
  send_reply(connection, respond_(request, number));
}

bool stub_server::read_request(int connection, stub_request& request) {
  std::string data;
  size_t head_end = std::string::npos, length = 0;
  char buffer[16384];
  while (head_end == std::string::npos || data.size() < head_end + 4 + length) {
    if (!wait(connection, client_patience_seconds)) return false;
    const ssize_t n = ::recv(connection, buffer, sizeof buffer, 0);
    if (n <= 0 || data.size() > max_request_bytes) return false;
    data.append(buffer, static_cast<size_t>(n));
    if (head_end != std::string::npos) continue;
    head_end = data.find("\r\n\r\n");
    if (head_end == std::string::npos) continue;
    size_t at = data.find("\r\n");
    const auto line = data.substr(0, at);
    const auto first = line.find(' '), second = line.rfind(' ');
    if (first == std::string::npos || second <= first) return false;
    request.method = line.substr(0, first);
    request.path = line.substr(first + 1, second - first - 1);
    while (at < head_end) {
      const auto start = at + 2;
      at = data.find("\r\n", start);
      const auto header = data.substr(start, at - start);
      const auto colon = header.find(':');
      if (colon == std::string::npos) continue;
      const auto value = header.find_first_not_of(' ', colon + 1);
      request.headers.emplace_back(lower(header.substr(0, colon)), value == std::string::npos ? "" : header.substr(value));
    }
    length = static_cast<size_t>(std::strtoull(request.header("content-length").c_str(), nullptr, 10));
  }
  request.body = data.substr(head_end + 4, length);
  request.at = std::chrono::steady_clock::now();
  return true;
}

void stub_server::send_reply(int connection, const stub_reply& reply) {
  if (reply.hang) {
    wait(connection, -1);
    return;
  }
  if (reply.reset) {
    const linger hard{1, 0};
    ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    return;
  }
  if (reply.delay_seconds > 0) wait(connection, reply.delay_seconds);
  std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " Scripted\r\nConnection: close\r\n";
  for (const auto& [key, value] : reply.headers) head += key + ": " + value + "\r\n";
  if (reply.chunks.empty()) {
    head += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n\r\n";
    if (send_all(connection, head))
      send_all(connection, std::string_view(reply.body).substr(0, reply.truncate ? reply.body.size() / 2 : reply.body.size()));
  } else {
    if (!send_all(connection, head + "Transfer-Encoding: chunked\r\n\r\n")) return;
    for (const auto& chunk : reply.chunks) {
      char size[32];
      std::snprintf(size, sizeof size, "%zx\r\n", chunk.size());
      if (!send_all(connection, size + chunk + "\r\n")) return;
      if (reply.chunk_delay_seconds > 0 && wait(connection, reply.chunk_delay_seconds)) return; // readable: it hung up
    }
    if (!reply.truncate) send_all(connection, "0\r\n\r\n");
  }
  ::shutdown(connection, SHUT_WR);
}

stub_reply completion(std::string_view text, bool tokens, std::string_view finish_reason) {
  json body = {{"id", "stub"},
               {"object", "chat.completion"},
               {"model", "stub-model"},
               {"choices", {{{"index", 0}, {"finish_reason", finish_reason}, {"message", {{"role", "assistant"}, {"content", text}}}}}}};
  if (tokens) body["usage"] = usage_of(text);
  stub_reply reply;
  reply.headers = {{"Content-Type", "application/json"}};
  reply.body = body.dump();
  return reply;
}

stub_reply completion_stream(std::string_view text, bool tokens, bool done, size_t piece) {
  const json base = {{"id", "stub"}, {"object", "chat.completion.chunk"}, {"model", "stub-model"}};
  auto with = [&](json choice) {
    json object = base;
    object["choices"] = json::array({std::move(choice)});
    return event(object);
  };
  stub_reply reply;
  reply.headers = {{"Content-Type", "text/event-stream"}};
  reply.chunks.push_back(with({{"index", 0}, {"delta", {{"role", "assistant"}, {"content", ""}}}, {"finish_reason", nullptr}}));
  for (size_t i = 0; i < text.size(); i += piece)
    reply.chunks.push_back(with({{"index", 0}, {"delta", {{"content", text.substr(i, piece)}}}, {"finish_reason", nullptr}}));
  if (!done) return reply;
  reply.chunks.push_back(with({{"index", 0}, {"delta", json::object()}, {"finish_reason", "stop"}}));
  if (tokens) {
    json last = base;
    last["choices"] = json::array();
    last["usage"] = usage_of(text);
    reply.chunks.push_back(event(last));
  }
  reply.chunks.push_back("data: [DONE]\n\n");
  return reply;
}

stub_reply failure(int status, std::string_view message, std::vector<std::pair<std::string, std::string>> headers) {
  stub_reply reply;
  reply.status = status;
  reply.headers = std::move(headers);
  reply.headers.emplace_back("Content-Type", "application/json");
  reply.body = json{{"error", {{"message", message}, {"type", "stub"}}}}.dump();
  return reply;
}

} // namespace pragma::test
