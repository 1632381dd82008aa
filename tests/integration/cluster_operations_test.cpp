// What operators of a cluster rely on, on real processes: a stop is a checkpoint, a crash is contained, roles hold, stuck nodes are left, backups move.
#include "cluster_fixture.hpp"

#include "cluster/link.hpp"
#include "cluster/messages.hpp"

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
  c.start_node("a");
  REQUIRE(within(30, [&] { return c.has_joined("a"); }));
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
  c.start_node("a");
  REQUIRE(within(30, [&] { return c.has_joined("a"); }));
  auto run = c.optimize();
  REQUIRE(within(120, [&] { return attempts_of(c) >= 1; }));
  const auto child = child_of(c.members.at("head").pid());
  REQUIRE(child > 0);
  ::kill(child, SIGSEGV);
  c.check(run);
  CHECK(c.members.at("head").alive());
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

TEST_CASE("a user sees and ends runs of its own, an admin all; a cancelled run ends at once") {
  cluster c(true);
  c.start_head();
  c.start_node("a");
  REQUIRE(within(30, [&] { return c.has_joined("a"); }));
  auto run = c.optimize(many);
  std::string id;
  REQUIRE(within(60, [&] {
    const auto now = c.status();
    for (const auto& r : now["runs"]) id = r["id"];
    return !id.empty();
  }));
  const auto as = [&](const std::string& who, std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--head", c.address()});
    return c.run(c.with_tls(arguments, who));
  };
  CHECK(as("other", {"runs", "--json"}).out.find(id) == std::string::npos);
  CHECK(as("other", {"show", id}).exit_code == 3);
  CHECK(as("other", {"cancel", id}).exit_code == 3);
  CHECK(as("other", {"attach", id}).exit_code == 3);
  CHECK(as("other", {"resume", id}).exit_code == 3);
  CHECK(as("other", {"cluster", "release", "a"}).exit_code == 3);
  CHECK(as("a", {"runs"}).exit_code == 3); // a node's certificate
  CHECK(as("admin", {"runs", "--json"}).out.find(id) != std::string::npos);
  CHECK(as("admin", {"runs", "--mine", "--json"}).out.find(id) == std::string::npos);
  CHECK(as("user", {"runs", "--mine", "--json"}).out.find(id) != std::string::npos);
  // A node under another's name.
  auto spec = c.command(PRAGMA_NODE_EXE, {"--join", c.address(), "--tls", c.path("ca/b"), "--name", "a2"}, "b");
  const auto refused = run_process(spec);
  REQUIRE(refused);
  CHECK(refused->exit_code == 2);
  CHECK((refused->err + refused->out).find("certificate is of b") != std::string::npos);
  const auto start = std::chrono::steady_clock::now();
  CHECK(as("admin", {"cancel", ""}).exit_code != 0); // names no run, and ends none
  CHECK(as("admin", {"cancel", id}).exit_code == 0);
  const auto ended = run.get();
  REQUIRE(ended);
  CHECK(ended->exit_code == 130);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(15));
  CHECK(within(20, [&] { return c.busy_node().empty(); })); // and its node has nothing in hand
}

TEST_CASE("a node that beats and never answers is left, and another does its work") {
  cluster c(true);
  c.start_head("127.0.0.1", {"--job-minutes", "0.1"});
  std::mutex mutex;
  std::vector<uint64_t> tickets;
  link::options o;
  o.heads = {{"127.0.0.1", static_cast<uint16_t>(c.port)}};
  o.tls = c.path("ca/a");
  o.want = "node";
  o.on_frame = [&](frame f) {
    const std::lock_guard lock(mutex);
    if (f.kind == "do") tickets.push_back(f.body["order"]["ticket"].get<uint64_t>());
  };
  auto stuck = link::dial(o);
  REQUIRE(stuck);
  node_hello hello;
  hello.facts = {"a", "0.1.0", 1, {{"cpu", "cpu", "x", "x", 0, {}, {}, {}}}, 0, "another-host"};
  REQUIRE((*stuck)->ask_for<node_welcome>("join", hello, 10)->refused.empty());
  std::atomic<bool> over = false;
  std::thread beating([&] {
    while (!over) {
      heartbeat beat{"a", 0, {}};
      {
        const std::lock_guard lock(mutex);
        beat.tickets = tickets;
      }
      (void)(*stuck)->ask("beat", beat, 5);
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  });
  auto run = c.optimize(1);
  CHECK(within(60, [&] {
    const std::lock_guard lock(mutex);
    return !tickets.empty();
  }));
  c.start_node("b");
  CHECK(within(60, [&] { return c.status()["requeued"].get<int>() >= 1; }));
  over = true;
  beating.join();
  (*stuck)->tell("leave", nullptr);
  (*stuck)->flush(5);
  stuck->reset();
  ::kill(c.members.at("head").pid(), SIGTERM); // real work may take longer than six seconds here
  CHECK(within(10, [&] { return !c.members.at("head").alive(); }));
  c.start_head();
  c.check(run, 1);
}

TEST_CASE("a backup that is taken beside a working head goes on in another folder") {
  cluster c(true);
  c.start_head();
  c.start_node("a");
  REQUIRE(within(30, [&] { return c.has_joined("a"); }));
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

TEST_CASE("two nodes of one machine never measure at the same time") {
  cluster c(true);
  c.start_head();
  c.start_node("a");
  c.start_node("b");
  REQUIRE(within(30, [&] { return c.has_joined("a") && c.has_joined("b"); }));
  auto one = c.optimize();
  auto spec = c.command(PRAGMA_EXE, c.with_tls({"optimize", c.path("task.py"), "--head", c.address(), "--attempts", "4", "--profile-seconds", "1", "--no-check", "--out", c.path("out2")}, "other"), "user");
  auto two = std::async(std::launch::async, [spec] { return run_process(spec); });
  int measuring = 0, together = 0;
  while (one.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout || two.wait_for(std::chrono::milliseconds(0)) == std::future_status::timeout) {
    int leases = 0;
    const auto now = c.status();
    for (const auto& m : now["members"])
      for (const auto& lease : m["node"]["leases"]) leases += !lease["job"].get<std::string>().empty();
    measuring += leases > 0;
    together += leases > 1;
  }
  CHECK(measuring > 0);
  CHECK(together == 0);
  c.check(one);
  const auto ended = two.get();
  REQUIRE(ended);
  CHECK(ended->exit_code == 0);
}

TEST_CASE("metrics, health, readiness and JSON logs") {
  cluster c(true);
  const int port = 20000 + ::getpid() % 20000;
  c.start_head("127.0.0.1", {"--metrics", "127.0.0.1:" + std::to_string(port), "--log-format", "json"});
  CHECK(within(10, [&] { return http_get(port, "/readyz").find("200 OK") != std::string::npos; }));
  CHECK(http_get(port, "/healthz").find("200 OK") != std::string::npos);
  c.start_node("a");
  REQUIRE(within(30, [&] { return c.has_joined("a"); }));
  CHECK(within(10, [&] { return http_get(port, "/metrics").find("pragma_nodes{state=\"ready\"} 1") != std::string::npos; }));
  const auto figures = http_get(port, "/metrics");
  for (const char* name : {"pragma_certificate_days", "pragma_jobs_in_flight", "pragma_door_events_total{what=\"accepted\"}", "pragma_node_round_trip_seconds{node=\"a\"}"}) {
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
