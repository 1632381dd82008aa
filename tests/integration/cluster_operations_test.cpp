// What operators of a cluster rely on, on real processes: a stop is a checkpoint, a crash is contained, roles hold, stuck nodes are left, backups move.
#include "base/text.hpp"
#include "cluster_fixture.hpp"

namespace {

int attempts_of(const cluster& c) {
  int most = 0;
  const auto now = c.status();
  for (const auto& r : now["runs"]) most = std::max(most, r["attempts"].get<int>());
  return most;
}

pid_t child_of(pid_t parent) {
  pid_t child = 0;
  std::ifstream("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children") >> child;
  return child;
}

std::string http_get(int port, const std::string& path) {
  const int fd = connect_to_port(port);
  if (fd < 0) return {};
  const auto request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  (void)::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::recv(fd, buffer, sizeof buffer, 0)) > 0;) text.append(buffer, static_cast<size_t>(n));
  ::close(fd);
  return text;
}

} // namespace

TEST_CASE("SIGTERM is a checkpoint: exit 0 within 10 s, the run goes on with the next head, the user waits") {
  cluster c(true);
  c.start_head();
  c.start_made_up("a", 0.2);
  auto run = c.optimize(many);
  REQUIRE(within(120, [&] { return attempts_of(c) >= 1; }));
  const auto start = std::chrono::steady_clock::now();
  ::kill(c.members.at("head").pid(), SIGTERM);
  CHECK(within(10, [&] { return !c.members.at("head").alive(); }));
  WARN("the head took " << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << " s to stop");
  CHECK(c.members.at("head").kill().exit_code == 0);
  CHECK(run.wait_for(std::chrono::seconds(2)) == std::future_status::timeout); // the user's command waits
  c.start_head();
  c.check(run, many);
}

TEST_CASE("a crash of the head's process is contained: it starts itself again, on the same port, and the run goes on") {
  cluster c(true);
  c.start_head();
  c.start_made_up("a", 0.2);
  auto run = c.optimize();
  REQUIRE(within(120, [&] { return attempts_of(c) >= 1; }));
  const auto child = child_of(c.members.at("head").pid());
  REQUIRE(child > 0);
  ::kill(child, SIGSEGV);
  c.check(run);
  CHECK(c.members.at("head").alive());
  // What it told before and after is one log, whose lines are counted on.
  const auto logs = fs::directory_iterator(c.path("home-head") + "/logs");
  const auto text = read_file(logs->path());
  REQUIRE(text);
  uint64_t last = 0;
  for (const auto& line : split(*text, '\n'))
    if (const auto parsed = json::parse(line, nullptr, false); parsed.is_object()) {
      CHECK(parsed["n"] == last + 1);
      last = parsed["n"].get<uint64_t>();
    }
  CHECK(last > 4);
}

TEST_CASE("twenty commands at once on an idle head all succeed") {
  cluster c(true);
  c.start_head();
  std::vector<std::future<expected<process_result>>> all;
  for (int i = 0; i < 20; ++i)
    all.push_back(std::async(std::launch::async, [spec = c.command(PRAGMA_EXE, c.with_tls({"cluster", "status", "--head", c.address()}, "user"), "user")] { return run_process(spec); }));
  int good = 0;
  for (auto& one : all) {
    const auto result = one.get();
    REQUIRE(result);
    INFO(result->err);
    CHECK(result->exit_code == 0);
    good += result->exit_code == 0;
  }
  CHECK(good == 20);
}

TEST_CASE("a head that may open 200 files bears 400 connections that never greet: it lives, its node stays, others are served") {
  cluster c(true);
  c.head_files = 200;
  c.start_head();
  auto& node = c.start_made_up("a", 0.02);
  std::atomic<int> opened = 0;
  std::jthread strangers([&](const std::stop_token& over) {
    std::deque<int> open;
    while (!over.stop_requested()) {
      if (const int fd = connect_to_port(c.port); fd >= 0) {
        if (opened % 2 == 0) (void)::send(fd, "\x16\x03\x01\x02\x00\x01", 6, MSG_NOSIGNAL); // the beginning of a greeting in TLS
        open.push_back(fd);
        ++opened;
      }
      while (open.size() > 400) { // 400 at any time, new ones all the while
        ::close(open.front());
        open.pop_front();
      }
      if (open.size() == 400) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    for (const int fd : open) ::close(fd);
  });
  CHECK(within(60, [&] { return opened > 400; }));
  auto run = c.optimize(1);
  c.check(run, 1);
  CHECK(c.status()["members"].size() == 1);
  CHECK(node.joined());
  CHECK(c.members.at("head").alive());
}

TEST_CASE("a node that beats and never answers is left, and another does its work") {
  cluster c(true);
  c.start_head("127.0.0.1", {"--job-minutes", "0.05"});
  auto& stuck = c.start_made_up("a", 0, {}, false);
  auto run = c.optimize(1);
  REQUIRE(within(60, [&] { return stuck.orders() > 0; }));
  c.start_made_up("b", 0.02);
  CHECK(within(60, [&] { return c.status()["requeued"].get<int>() >= 1; }));
  c.check(run, 1);
  CHECK(stuck.joined()); // it beats all the while
  CHECK(stuck.done().empty());
}

TEST_CASE("a backup that is taken beside a working head goes on in another folder") {
  cluster c(true);
  c.start_head();
  c.start_made_up("a", 0.2);
  auto run = c.optimize(few);
  REQUIRE(within(120, [&] { return attempts_of(c) >= 1; }));
  const auto kept = c.run({"head", "backup", c.path("backup"), "--data", c.path("home-head"), "--json"});
  INFO(kept.err);
  REQUIRE(kept.exit_code == 0);
  ::kill(c.members.at("head").pid(), SIGKILL);
  c.members.at("head").kill();
  REQUIRE(c.run({"head", "restore", c.path("backup"), "--data", c.path("elsewhere/home")}).exit_code == 0);
  CHECK(c.run({"head", "restore", c.path("backup"), "--data", c.path("elsewhere/home")}).exit_code == 2); // never over runs that are there
  fs::rename(c.path("home-head"), c.path("home-gone"));
  fs::rename(c.path("elsewhere/home"), c.path("home-head"));
  c.start_head();
  c.check(run, few);
}

TEST_CASE("two nodes of one machine never measure at the same time, those of two do") {
  for (const bool one_machine : {true, false}) {
    INFO("one machine: " << one_machine);
    cluster c(true);
    c.start_head();
    auto& a = c.start_made_up("a", 0.02, "host1", false);
    auto& b = c.start_made_up("b", 0.02, one_machine ? "host1" : "host2", false);
    auto one = c.optimize();
    auto two = c.optimize(few, "other", "out2");
    json now;
    REQUIRE(within(60, [&] { return (now = c.status())["in_flight"].get<int>() + now["queued"].get<int>() == 2; })); // each wants its task loaded
    CHECK(now["in_flight"].get<int>() == (one_machine ? 1 : 2));
    a.answer();
    b.answer();
    c.check(one);
    const auto ended = two.get();
    REQUIRE(ended);
    CHECK(ended->exit_code == 0);
    // As the nodes saw it: a measurement on one of them and anything on the other.
    const auto measured = [](const auto& job) { return job.kind != "verify"; };
    int together = 0;
    for (const auto& here : a.done())
      for (const auto& there : b.done()) together += (measured(here) || measured(there)) && here.begun < there.ended && there.begun < here.ended;
    CHECK((together > 0) == !one_machine);
  }
}

TEST_CASE("metrics, health, readiness and JSON logs") {
  cluster c(true);
  const int port = 20000 + ::getpid() % 20000;
  c.start_head("127.0.0.1", {"--metrics", "127.0.0.1:" + std::to_string(port), "--log-format", "json"});
  CHECK(within(10, [&] { return http_get(port, "/readyz").find("200 OK") != std::string::npos; }));
  CHECK(http_get(port, "/healthz").find("200 OK") != std::string::npos);
  c.start_made_up("a", 0.02);
  CHECK(within(10, [&] { return http_get(port, "/metrics").find("pragma_nodes{state=\"ready\"} 1") != std::string::npos; }));
  const auto figures = http_get(port, "/metrics");
  for (const char* name : {"pragma_certificate_seconds", "pragma_jobs_in_flight", "pragma_door_events_total{what=\"accepted\"}", "pragma_node_round_trip_seconds{node=\"a\"}"}) {
    INFO(name);
    CHECK(figures.find(name) != std::string::npos);
  }
  CHECK(http_get(port, "/etc/passwd").find("root:") == std::string::npos);
  bool joined = false;
  for (int i = 0; i < 50 && !joined; ++i) {
    const auto line = c.members.at("head").read_line(5);
    REQUIRE(line);
    const auto parsed = parse_json(*line, "log");
    REQUIRE(parsed);
    CHECK(parsed->contains("time"));
    joined = (*parsed)["event"] == "node joined" && (*parsed)["node"] == "a";
  }
  CHECK(joined);
}
