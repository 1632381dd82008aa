// The page's data: who is let in, what of a run is sent, the stream while it goes on, 10,000 attempts.
#include "made_up.hpp"

#include "base/http.hpp"

#include <catch2/catch.hpp>

#include <thread>

using namespace pragma;
using Catch::Contains;

namespace {

struct site {
  test::made_up runs;
  std::string secret = web::new_secret();
  std::atomic<bool> stop = false;
  web::listener where = open(secret);
  std::thread thread;

  static web::listener open(const std::string& secret) {
    web::listen_options options;
    options.secret = secret;
    auto opened = web::listener::open(options);
    REQUIRE(opened);
    return std::move(*opened);
  }
  site() {
    dashboard::serve(where, runs.source(), PRAGMA_PAGE);
    thread = std::thread([this] { where.run(stop); });
  }
  ~site() {
    stop = true;
    thread.join();
  }
  http_response get(const std::string& path, bool authorised = true, std::function<bool(const http_response&, std::string_view)> on_body = {}) {
    http_request r;
    r.url = where.address() + path;
    r.on_body = std::move(on_body);
    if (authorised) r.headers.emplace_back("Cookie", "other=1; pragma=" + secret);
    auto answer = http_send(r);
    if (!answer) FAIL(render(answer.error()));
    return *answer;
  }
  json data(const std::string& path) { return json::parse(get(path).body); }
};

} // namespace

TEST_CASE("dashboard: nothing without the token; the address with it sets the cookie; the page may load from itself only") {
  site s;
  CHECK(s.get("/", false).status == 401);
  CHECK(s.get("/api/runs", false).status == 401);
  const auto first = s.get("/?token=" + s.secret, false);
  CHECK(first.status == 200);
  REQUIRE(first.header("set-cookie"));
  CHECK_THAT(*first.header("set-cookie"), Contains("HttpOnly") && Contains("SameSite=Strict"));
  CHECK_THAT(*first.header("content-security-policy"), Contains("default-src 'none'") && !Contains("unsafe"));
  for (const char* file : {"/app.js", "/views.js", "/plots.js", "/style.css"}) CHECK(s.get(file).status == 200);
  CHECK(s.get("/../../../etc/passwd").status == 404);
  CHECK(s.get("/api/runs/none").status == 404);
}

TEST_CASE("dashboard: a run's overview is short, an attempt is whole and compared with the version before it") {
  site s;
  CHECK(s.data("/api/runs").size() == 4);
  const auto run = s.data("/api/runs/ordinary");
  REQUIRE(run["attempts"].size() == 8);
  CHECK(run["attempts"][3]["compared_with"] == 3);
  CHECK_FALSE(run["attempts"][3].contains("source"));
  const auto fourth = s.data("/api/runs/ordinary/attempts/4");
  CHECK(fourth["against"]["number"] == 3);
  CHECK(fourth["attempt"]["code"]["source"].get<std::string>().find("unroll = 4") != std::string::npos);
  CHECK(s.data("/api/runs/ordinary/attempts/4?against=1")["against"]["number"] == 1);
  CHECK(s.get("/api/runs/ordinary/attempts/99").status == 404);
  CHECK(s.data("/api/suites")[1]["tasks"][0]["speedup"]["value"] == 2.5);
  CHECK(s.data("/api/ask?q=branch%20misses")["entries"][0]["name"] == "branch misses");
  CHECK(s.data("/api/cluster")["members"].size() == 1);
}

TEST_CASE("dashboard: 10,000 attempts are some megabytes, not all that is known of them") {
  site s;
  const auto big = s.get("/api/runs/big");
  CHECK(big.body.size() < 6u << 20);
  CHECK(json::parse(big.body)["attempts"].size() == 10000);
}

TEST_CASE("dashboard: the stream tells of an attempt that came while one looked, and of no old one") {
  site s;
  std::string heard;
  bool went_on = false;
  const auto answer = s.get("/api/events?run=live&after=2", true, [&](const http_response&, std::string_view chunk) {
    heard += chunk;
    if (!went_on && heard.find("event: run\n") != std::string::npos) {
      went_on = true;
      s.runs.go_on();
    }
    return heard.find("about to come") == std::string::npos;
  });
  CHECK(answer.stopped);
  CHECK_THAT(heard, Contains("event: runs"));
  CHECK_THAT(heard, !Contains("plain words"));
  CHECK_THAT(heard, Contains("\"number\":3"));
  CHECK_THAT(heard, Contains("event: log") && Contains("\"stage\":\"verifying\""));
}

TEST_CASE("dashboard: a record of any shape gives an overview") {
  for (const json& d : {json(), json(1), json::array(), json{{"run", 1}, {"iterations", {1, nullptr, json::object(), {{"number", "x"}, {"code", 3}}}}}}) {
    const auto short_one = dashboard::overview(d);
    CHECK(short_one["attempts"].is_array());
    (void)short_one.dump();
  }
  const auto cut = dashboard::overview({{"iterations", {{{"reason", std::string(299, 'x') + "\xc3\xa9\xc3\xa9"}}}}});
  CHECK_NOTHROW(cut.dump()); // between characters
}
