#include "mcp/stdio.hpp"

#include <cerrno>
#include <future>
#include <list>
#include <poll.h>
#include <unistd.h>

namespace pragma::mcp {

namespace {

constexpr size_t longest_line = 8u << 20; ///< bytes; a candidate's source is at most 1 MiB, and JSON may escape each byte of it
const std::string client = "stdio";

class line_writer {
public:
  explicit line_writer(int fd) : fd_(fd) {}
  void write(const json& message) {
    const auto text = message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    const std::lock_guard lock(mutex_);
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(fd_, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return; // the client has left; its end of the other pipe says so, too
      done += static_cast<size_t>(n);
    }
  }

private:
  int fd_;
  std::mutex mutex_;
};

/// Lines out of chunks. A line that is too long is dropped, and said once.
class line_reader {
public:
  template <class OnLine, class OnTooLong> void feed(std::string_view chunk, const OnLine& on_line, const OnTooLong& on_too_long) {
    while (!chunk.empty()) {
      const auto end = chunk.find('\n');
      const auto part = chunk.substr(0, end);
      if (!dropping_) line_.append(part);
      if (line_.size() > longest_line) {
        dropping_ = true;
        line_.clear();
        on_too_long();
      }
      if (end == std::string_view::npos) return;
      if (!dropping_ && line_.find_first_not_of(" \t\r") != std::string::npos) on_line(line_);
      line_.clear();
      dropping_ = false;
      chunk.remove_prefix(end + 1);
    }
  }

private:
  std::string line_;
  bool dropping_ = false;
};

} // namespace

void serve_stdio(server& what, int in, int out, const std::atomic<bool>& stop) {
  line_writer writer(out);
  const auto send = [&](const json& m) { writer.write(m); };
  std::list<std::future<void>> calls;
  line_reader lines;
  const auto on_line = [&](const std::string& line) {
    auto message = parse_json(line, "the message");
    if (!message) return send(error_message(nullptr, message.error().code == ec::limit_exceeded ? code::invalid_request : code::parse_error, message.error().message));
    if (!server::is_call(*message)) return what.handle(*message, client, send);
    calls.remove_if([](const auto& f) { return f.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
    calls.push_back(std::async(std::launch::async, [&what, &send, m = std::move(*message)] { what.handle(m, client, send); }));
  };
  const auto too_long = [&] { send(error_message(nullptr, code::invalid_request, "a message is at most " + std::to_string(longest_line >> 20) + " MiB")); };
  std::string buffer(1 << 16, '\0');
  while (!stop) {
    pollfd ready{in, POLLIN, 0};
    const int n = ::poll(&ready, 1, 100);
    if (n < 0 && errno != EINTR) break;
    if (n <= 0) continue;
    const ssize_t got = ::read(in, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    lines.feed({buffer.data(), static_cast<size_t>(got)}, on_line, too_long);
  }
  what.cancel_all(client);
  calls.clear(); // waits
}

} // namespace pragma::mcp
