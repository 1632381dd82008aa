#include "mcp/http.hpp"

#include <httplib.h>

#include <condition_variable>
#include <deque>
#include <set>
#include <thread>

namespace pragma::mcp {

namespace {

constexpr auto heartbeat = std::chrono::seconds(2); ///< a comment this often shows whether the client is still there
constexpr size_t most_sessions = 1000;

/// What handle() sent so far, for the thread that streams it.
struct outbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<json> messages;
  bool over = false;

  void put(const json& m) {
    const std::lock_guard lock(mutex);
    messages.push_back(m);
    changed.notify_all();
  }
  void end() {
    const std::lock_guard lock(mutex);
    over = true;
    changed.notify_all();
  }
};

std::string text_of(const json& m) { return m.dump(-1, ' ', false, json::error_handler_t::replace); }

/// A call that answers by a stream. The client's leaving cancels it.
class streamed_call {
public:
  streamed_call(server& what, json message, std::string scope, const std::atomic<bool>& stopping)
      : what_(what), message_(std::move(message)), scope_(std::move(scope)), stopping_(stopping) {
    worker_ = std::thread([this] {
      what_.handle(message_, scope_, [this](const json& m) { box_.put(m); });
      box_.end();
    });
  }
  ~streamed_call() {
    what_.cancel(scope_, message_["id"]);
    worker_.join();
  }
  /// False: it is over, one way or the other.
  bool pump(httplib::DataSink& sink) {
    std::unique_lock lock(box_.mutex);
    box_.changed.wait_for(lock, heartbeat, [this] { return !box_.messages.empty() || box_.over; });
    std::string text;
    for (const auto& m : box_.messages) text += "event: message\ndata: " + text_of(m) + "\n\n";
    box_.messages.clear();
    const bool over = box_.over;
    lock.unlock();
    if (text.empty() && !over) text = ":\n\n";
    if (!text.empty() && !sink.write(text.data(), text.size())) return false;
    if (over) sink.done();
    return !stopping_;
  }

private:
  server& what_;
  json message_;
  std::string scope_;
  const std::atomic<bool>& stopping_;
  outbox box_;
  std::thread worker_;
};

/// Ids of clients that began with `initialize`.
class sessions {
public:
  std::string begin() {
    auto id = web::new_secret();
    const std::lock_guard lock(mutex_);
    if (order_.size() >= most_sessions) {
      known_.erase(order_.front());
      order_.pop_front();
    }
    known_.insert(id);
    order_.push_back(id);
    return id;
  }
  bool knows(const std::string& id) {
    const std::lock_guard lock(mutex_);
    return known_.contains(id);
  }
  void end(const std::string& id) {
    const std::lock_guard lock(mutex_);
    known_.erase(id);
    std::erase(order_, id);
  }

private:
  std::mutex mutex_;
  std::set<std::string> known_;
  std::deque<std::string> order_;
};

std::string decoded(const std::string& value) {
  constexpr std::string_view open = "=?base64?", close = "?=";
  if (!value.starts_with(open) || !value.ends_with(close) || value.size() < open.size() + close.size()) return value;
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0, count = 0;
  for (const char c : value.substr(open.size(), value.size() - open.size() - close.size())) {
    if (c == '=') break;
    const auto digit = digits.find(c);
    if (digit == std::string_view::npos) return value;
    bits = (bits << 6 | static_cast<unsigned>(digit)) & 0xffffff;
    if ((count += 6) >= 8) out += static_cast<char>(bits >> (count -= 8) & 0xff);
  }
  return out;
}

/// Of the stateless revision: what the headers say must be what the body says. Empty: it is.
std::string header_problem(const httplib::Request& request, const json& message) {
  const auto differs = [&](const char* header, const std::string& body, bool encoded) {
    if (!request.has_header(header)) return "header mismatch: " + std::string(header) + " is missing";
    const auto value = request.get_header_value(header);
    return (encoded ? decoded(value) : value) == body ? std::string() : "header mismatch: " + std::string(header) + " does not match the body";
  };
  if (auto problem = differs("MCP-Protocol-Version", server::version_of(message), false); !problem.empty()) return problem;
  const auto method = message.value("method", "");
  if (auto problem = differs("Mcp-Method", method, false); !problem.empty()) return problem;
  const char* key = method == "tools/call" || method == "prompts/get" ? "name" : method == "resources/read" ? "uri" : nullptr;
  if (!key) return {};
  const auto named = message["params"].find(key);
  return named != message["params"].end() && named->is_string() ? differs("Mcp-Name", named->get<std::string>(), true) : std::string();
}

int status_of(const json& response, bool stateless) {
  if (!response.contains("error") || !stateless) return 200;
  const int number = response["error"]["code"].get<int>();
  return number == code::no_method ? 404 : number == code::internal ? 500 : 400;
}

class endpoint {
public:
  endpoint(server& what, const std::atomic<bool>& stopping) : what_(what), stopping_(stopping) {}

  void post(const httplib::Request& request, httplib::Response& response) {
    const auto give = [&](int status, const json& m) {
      response.status = status;
      response.set_content(text_of(m), "application/json");
    };
    auto message = parse_json(request.body, "the message");
    if (!message) return give(400, error_message(nullptr, message.error().code == ec::limit_exceeded ? code::invalid_request : code::parse_error, message.error().message));
    if (!message->is_object() || !message->value("method", json()).is_string())
      return give(400, error_message(nullptr, code::invalid_request, "the body is one JSON-RPC request or notification"));
    const auto id = message->value("id", json());
    const bool stateless = !server::version_of(*message).empty();
    const auto method = message->value("method", "");
    if (stateless)
      if (const auto problem = header_problem(request, *message); !problem.empty()) return give(400, error_message(id, code::header_mismatch, problem));
    auto scope = stateless ? "http " + std::to_string(next_++) : request.get_header_value("Mcp-Session-Id");
    if (!stateless && method != "initialize") {
      if (scope.empty()) return give(400, error_message(id, code::invalid_request, "begin with initialize, or speak " + std::string(stateless_version)));
      if (!sessions_.knows(scope)) return give(404, error_message(id, code::invalid_request, "this session has ended: begin with initialize"));
    }
    if (!message->contains("id")) {
      what_.handle(*message, scope, [](const json&) {});
      response.status = 202;
      return;
    }
    if (server::is_call(*message)) return stream(std::move(*message), scope, response);
    json answer;
    what_.handle(*message, scope, [&](const json& m) { answer = m; });
    if (method == "initialize" && answer.contains("result")) response.set_header("Mcp-Session-Id", sessions_.begin());
    give(status_of(answer, stateless), answer);
  }

  void end_session(const httplib::Request& request, httplib::Response& response) {
    const auto id = request.get_header_value("Mcp-Session-Id");
    if (!sessions_.knows(id)) {
      response.status = 404;
      return;
    }
    sessions_.end(id);
    what_.cancel_all(id);
    response.status = 204;
  }

private:
  void stream(json message, const std::string& scope, httplib::Response& response) {
    auto call = std::make_shared<streamed_call>(what_, std::move(message), scope, stopping_);
    response.set_header("X-Accel-Buffering", "no");
    response.set_chunked_content_provider(
        "text/event-stream", [call](size_t, httplib::DataSink& sink) { return call->pump(sink); }, [call](bool) mutable { call.reset(); });
  }

  server& what_;
  const std::atomic<bool>& stopping_;
  sessions sessions_;
  std::atomic<uint64_t> next_ = 0; ///< each request of the stateless revision is its own client
};

} // namespace

void serve_http(server& what, web::listener& where) {
  auto here = std::make_shared<endpoint>(what, where.stopping());
  where.server().Post("/mcp", [here](const httplib::Request& request, httplib::Response& response) { here->post(request, response); });
  where.server().Delete("/mcp", [here](const httplib::Request& request, httplib::Response& response) { here->end_session(request, response); });
  where.server().Get("/mcp", [](const httplib::Request&, httplib::Response& response) {
    response.status = 405; // we say nothing that was not asked
    response.set_header("Allow", "POST, DELETE");
  });
}

} // namespace pragma::mcp
