// What operators of a cluster rely on, on real processes: a stop is a checkpoint, a crash is contained, roles hold, stuck nodes are left, backups move.
#include "base/text.hpp"
#include "actors/store.hpp"
#include "cluster/certificates.hpp"
#include "cluster_fixture.hpp"
#include "tests/fixtures/skip.hpp"

#include <poll.h>
#include <sys/un.h>

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

/// What systemd hears, in a folder of this test.
class service_manager {
public:
  explicit service_manager(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un own{};
    own.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof own.sun_path);
    path.copy(own.sun_path, path.size());
    REQUIRE(::bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0);
  }
  ~service_manager() { ::close(fd_); }
  /// Empty: nothing within that time.
  std::string hear(double seconds) const {
    pollfd p{fd_, POLLIN, 0};
    char text[256];
    const auto size = ::poll(&p, 1, static_cast<int>(1e3 * seconds)) > 0 ? ::recv(fd_, text, sizeof text, 0) : 0;
    return {text, size > 0 ? static_cast<size_t>(size) : 0};
  }

private:
  int fd_;
};

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
  const int port = test::free_port();
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

TEST_CASE("systemd hears when a head is ready, and then that its agents live, until they do not") {
  cluster c(false);
  const service_manager systemd(c.path("notify"));
  c.head_environment = {{"NOTIFY_SOCKET", c.path("notify")}};
  c.start_head();
  std::string said;
  CHECK(within(10, [&] { return (said = systemd.hear(5)) == "READY=1"; }));
  CHECK(within(10, [&] { return systemd.hear(5) == "WATCHDOG=1"; }));
  const auto child = child_of(c.members.at("head").pid());
  ::kill(child, SIGSTOP);
  CHECK(within(20, [&] { return systemd.hear(3).empty(); }));
  ::kill(child, SIGCONT);
  CHECK(within(10, [&] { return systemd.hear(5) == "WATCHDOG=1"; }));
}

TEST_CASE("a member that is revoked is put out of a working head, its work goes to another, and it is told why it does not come back") {
  cluster c(true);
  c.start_head();
  c.start_away("a", 30);
  auto run = c.optimize(1);
  REQUIRE(within(60, [&] { return c.busy_node() == "a"; }));
  REQUIRE(c.run({"cluster", "ca", "revoke", "a", "--dir", c.path("ca")}).exit_code == 0);
  fs::copy_file(c.path("ca/crl.pem"), c.path("ca/head/crl.pem"));
  CHECK(within(15, [&] { return !c.has_joined("a"); }));
  c.start_away("b", 0.05);
  c.check(run, 1);
  const auto refused = run_process(c.command(PRAGMA_NODE_EXE, {"--join", c.address(), "--tls", c.path("ca/a")}, "a"));
  REQUIRE(refused);
  CHECK((refused->err + refused->out).find("is revoked") != std::string::npos);
}

TEST_CASE("a certificate with less than 30 days left is warned of in the log, the status and the metrics; a new one is taken without a restart") {
  cluster c(true);
  const int port = 20000 + (::getpid() + 7) % 20000;
  fs::remove_all(c.path("ca/head"));
  REQUIRE(c.run({"cluster", "ca", "issue", "head", "--role", "head", "--days", "20", "--dir", c.path("ca")}).exit_code == 0);
  c.start_head("127.0.0.1", {"--metrics", "127.0.0.1:" + std::to_string(port)});
  bool warned = false;
  for (int i = 0; i < 20 && !warned; ++i) {
    const auto line = c.members.at("head").read_line(10);
    REQUIRE(line);
    warned = line->find("the head's certificate expires in 20 days") != std::string::npos || line->find("the head's certificate expires in 19 days") != std::string::npos;
  }
  CHECK(warned);
  const auto shown = c.run(c.with_tls({"cluster", "status", "--head", c.address()}, "user"));
  CHECK(shown.out.find("EXPIRES IN") != std::string::npos);
  CHECK(within(10, [&] { return http_get(port, "/metrics").find("pragma_certificate_seconds 1") != std::string::npos; })); // 1.64e6 or 1.73e6
  fs::rename(c.path("ca/head"), c.path("ca/old"));
  REQUIRE(issue_certificate(c.path("ca"), "head", role::head));
  CHECK(within(15, [&] { return c.status()["certificate_days"].get<int>() > 700; }));
}

TEST_CASE("what says that it runs and is nobody's any more is interrupted, and does not hold up the head's end") {
  cluster c(false);
  {
    auto store = open_runs(c.path("home-head") + "/runs", run_store::mode::read_write);
    REQUIRE(store);
    run_header left; // by a process of this machine that was killed
    left.id = "20260101-000000-abcdef";
    left.request.load.path = c.path("task.py");
    left.started = "2026-01-01T00:00:00Z";
    REQUIRE(store->put_run(left.id, json(left)));
  }
  c.start_head();
  const auto listed = c.run({"runs", "--head", c.address(), "--json"});
  const auto runs = parse_json(listed.out, "runs");
  REQUIRE(runs);
  REQUIRE(runs->size() == 1);
  CHECK((*runs)[0]["state"] == "interrupted");
  ::kill(c.members.at("head").pid(), SIGTERM);
  CHECK(within(5, [&] { return !c.members.at("head").alive(); }));
  CHECK(c.members.at("head").kill().exit_code == 0);
}

TEST_CASE("nodes in containers of one host tell the machine below them, which is the same") {
  const std::vector<std::string> apart{"unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"};
  process_spec tried;
  tried.argv = apart;
  tried.argv.push_back("true");
  if (const auto can = run_process(tried); !can || can->exit_code != 0) return pragma::test::skip("namespaces cannot be made here");
  cluster c(true);
  c.start_head();
  for (const char* name : {"a", "b"}) {
    auto spec = c.command(PRAGMA_NODE_EXE, c.with_tls({"--join", c.address(), "--name", name}, name), name);
    if (name == std::string("b")) spec.argv.insert(spec.argv.begin(), apart.begin(), apart.end());
    auto child = child_process::start(spec);
    REQUIRE(child);
    c.members.insert_or_assign(name, std::move(*child));
  }
  REQUIRE(within(60, [&] { return c.has_joined("a") && c.has_joined("b"); }));
  const auto now = c.status();
  REQUIRE(now["members"].size() == 2);
  const std::string one = now["members"][0]["node"]["facts"]["machine"], other = now["members"][1]["node"]["facts"]["machine"];
  CHECK_FALSE(one.empty());
  CHECK(one == other);
}
