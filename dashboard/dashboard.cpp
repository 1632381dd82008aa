#include "dashboard/dashboard.hpp"

#include "base/files.hpp"

#include <httplib.h>

#include <charconv>
#include <map>
#include <mutex>
#include <thread>

namespace pragma::dashboard {

namespace {

constexpr auto look_again = std::chrono::milliseconds(700);  ///< how late a change of the store is seen
constexpr auto heartbeat = std::chrono::seconds(10);         ///< between lines of a quiet stream: a client that left is noticed
constexpr size_t kept_runs = 4;
constexpr int most_lines = 500;                              ///< of a log at once, as many as the page keeps
constexpr const char* policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string dumped(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

void give(httplib::Response& response, const expected<json>& value) {
  if (!value) {
    response.status = value.error().code == ec::not_found ? 404 : 500;
    response.set_content(dumped({{"error", {{"message", value.error().message}, {"hint", value.error().hint}}}}), "application/json");
    return;
  }
  response.set_content(dumped(*value), "application/json");
}

int whole(const std::string& text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Whether a run of `owner` is shown to somebody. One without an owner was begun on this machine, not through a head.
bool may_see(const web::visitor& who, const json& owner) { return who.sees_all || (owner.is_string() && !who.name.empty() && owner == who.name); }

/// The store, read at most once per change: the list again and again, a run when its stamp moved.
class reader {
public:
  explicit reader(source from) : from_(std::move(from)) {}
  const source& from() const { return from_; }

  expected<json> runs(const web::visitor& who) {
    auto all = from_.runs();
    if (!all || who.sees_all) return all;
    json own = json::array();
    for (auto& r : *all)
      if (may_see(who, r.value("owner", json()))) own.push_back(std::move(r));
    return own;
  }

  /// Nodes and devices are everybody's, as in a head's own answer; runs are their owners'.
  expected<json> cluster(const web::visitor& who) {
    auto status = from_.cluster();
    if (!status || who.sees_all || !status->is_object() || !status->contains("runs")) return status;
    json own = json::array();
    for (const auto& r : (*status)["runs"])
      if (may_see(who, r.value("owner", json()))) own.push_back(r);
    (*status)["runs"] = std::move(own);
    return status;
  }

  /// The document and its overview, of the moment that `stamp` names; an empty stamp: of now.
  struct whole_run {
    std::string stamp;
    json document, overview;
  };
  expected<std::shared_ptr<const whole_run>> run(const web::visitor& who, const std::string& id, const std::string& stamp = {}) {
    auto found = whole(id, stamp);
    if (found && !may_see(who, (*found)->overview["run"].value("owner", json()))) return fail(ec::not_found, "there is no run " + id);
    return found;
  }

  static std::string stamp_of(const json& runs, const std::string& id) {
    for (const auto& r : runs)
      if (r.value("id", "") == id) return r.value("stamp", "");
    return {};
  }

private:
  expected<std::shared_ptr<const whole_run>> whole(const std::string& id, std::string stamp) {
    if (stamp.empty()) {
      auto listed = from_.runs();
      if (!listed) return fail(listed.error());
      stamp = stamp_of(*listed, id);
    }
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = kept_.find(id); it != kept_.end() && !stamp.empty() && it->second->stamp == stamp) return it->second;
    }
    auto document = from_.run(id);
    if (!document) return fail(document.error());
    auto fresh = std::make_shared<whole_run>();
    fresh->stamp = stamp;
    fresh->overview = overview(*document);
    fresh->document = std::move(*document);
    const std::lock_guard lock(mutex_);
    if (kept_.size() >= kept_runs && !kept_.contains(id)) kept_.erase(kept_.begin());
    kept_[id] = fresh;
    return std::shared_ptr<const whole_run>(fresh);
  }

  source from_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const whole_run>> kept_;
};

/// One client's stream: the list of runs when it changes; of one run, the attempts that are new, and the lines of its log, all at first.
class stream {
public:
  /// `who` is asked again and again: a certificate may be revoked while its bearer looks.
  stream(std::shared_ptr<reader> from, std::function<web::visitor()> who, std::string run, int after, const std::atomic<bool>& stopping)
      : from_(std::move(from)), who_(std::move(who)), run_(std::move(run)), after_(after), stopping_(stopping) {}

  bool next(httplib::DataSink& sink) {
    const auto start = std::chrono::steady_clock::now();
    for (bool first = true; !stopping_; first = false) {
      if (!first) std::this_thread::sleep_for(look_again);
      const auto who = who_();
      if (!who.refusal.empty()) return false;
      const auto text = changes(who);
      if (!text.empty()) return sink.write(text.data(), text.size());
      if (std::chrono::steady_clock::now() - start > heartbeat) return sink.write(":\n\n", 3);
    }
    return false;
  }

private:
  static std::string event(const char* name, const json& data) { return std::string("event: ") + name + "\ndata: " + dumped(data) + "\n\n"; }

  std::string changes(const web::visitor& who) {
    auto listed = from_->runs(who);
    if (!listed) return {};
    std::string text;
    if (auto now = dumped(*listed); now != list_) {
      list_ = std::move(now);
      text += event("runs", *listed);
    }
    if (run_.empty()) return text;
    const auto stamp = reader::stamp_of(*listed, run_);
    if (stamp == stamp_) return text + log();
    auto whole = from_->run(who, run_, stamp);
    if (!whole) return text;
    stamp_ = stamp;
    json fresh = {{"run", (*whole)->overview["run"]}, {"attempts", json::array()}};
    for (const auto& row : (*whole)->overview["attempts"])
      if (row["number"].get<int>() > after_) fresh["attempts"].push_back(row);
    if (!fresh["attempts"].empty()) after_ = fresh["attempts"].back()["number"];
    return text + event("run", fresh) + log();
  }

  /// Of a run that its visitor may see: asked for after the run itself was.
  std::string log() {
    if (stamp_.empty()) return {};
    auto lines = from_->from().log(run_, next_line_);
    if (!lines.is_array() || lines.empty()) return {};
    if (lines.size() > most_lines) lines.erase(lines.begin(), lines.end() - most_lines);
    next_line_ = lines.back().value("n", next_line_) + 1;
    return event("log", lines);
  }

  std::shared_ptr<reader> from_;
  std::function<web::visitor()> who_;
  std::string run_, list_, stamp_;
  uint64_t next_line_ = 0;
  int after_;
  const std::atomic<bool>& stopping_;
};

void serve_page(httplib::Server& server, const std::filesystem::path& page) {
  static constexpr struct {
    const char *path, *file, *type;
  } files[] = {{"/", "index.html", "text/html; charset=utf-8"}, {"/app.js", "app.js", "text/javascript; charset=utf-8"}, {"/views.js", "views.js", "text/javascript; charset=utf-8"},
               {"/plots.js", "plots.js", "text/javascript; charset=utf-8"}, {"/style.css", "style.css", "text/css; charset=utf-8"}};
  server.Get("/favicon.ico", [](const httplib::Request&, httplib::Response& response) { response.status = 204; });
  for (const auto& f : files)
    server.Get(f.path, [file = page / f.file, type = f.type](const httplib::Request&, httplib::Response& response) {
      auto text = read_file(file);
      response.set_header("Content-Security-Policy", policy);
      if (text) return response.set_content(*text, type);
      response.status = 500;
      response.set_content(render(text.error()), "text/plain");
    });
}

} // namespace

void serve(web::listener& where, source from, const std::filesystem::path& page) {
  auto& server = where.server();
  const auto state = std::make_shared<reader>(std::move(from));
  serve_page(server, page);
  const auto who = [&where](const httplib::Request& request) { return where.who(request); };
  server.Get("/api/runs", [state, who](const httplib::Request& request, httplib::Response& response) { give(response, state->runs(who(request))); });
  server.Get(R"(/api/runs/([\w.-]+))", [state, who](const httplib::Request& request, httplib::Response& response) {
    auto found = state->run(who(request), request.matches[1]);
    give(response, found ? expected<json>((*found)->overview) : fail(found.error()));
  });
  server.Get(R"(/api/runs/([\w.-]+)/attempts/(\d+))", [state, who](const httplib::Request& request, httplib::Response& response) {
    auto found = state->run(who(request), request.matches[1]);
    if (!found) return give(response, fail(found.error()));
    give(response, attempt_of((*found)->document, whole(request.matches[2]), whole(request.get_param_value("against")), state->from()));
  });
  server.Get("/api/cluster", [state, who](const httplib::Request& request, httplib::Response& response) { give(response, state->cluster(who(request))); });
  server.Get("/api/suites", [state](const httplib::Request&, httplib::Response& response) { give(response, state->from().suites()); });
  server.Get("/api/ask", [state](const httplib::Request& request, httplib::Response& response) { give(response, state->from().ask(request.get_param_value("q").substr(0, 500))); });
  server.Get("/api/events", [state, who, &stopping = where.stopping()](const httplib::Request& request, httplib::Response& response) {
    // The request lives until its answer has been written, and so does its connection.
    auto one = std::make_shared<stream>(state, [who, &request] { return who(request); }, request.get_param_value("run"), whole(request.get_param_value("after")), stopping);
    response.set_header("X-Accel-Buffering", "no");
    response.set_chunked_content_provider("text/event-stream", [one](size_t, httplib::DataSink& sink) { return one->next(sink); });
  });
}

} // namespace pragma::dashboard
