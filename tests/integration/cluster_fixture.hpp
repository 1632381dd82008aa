// A cluster of real processes on this machine, for the tests of it: a head and nodes with homes of their own, and hosts in network namespaces.
#pragma once

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/subprocess.hpp"
#include "small_task.hpp"
#include "tests/fixtures/free_port.hpp"
#include "tests/fixtures/made_up_node.hpp"
#include "tests/fixtures/shared_cache.hpp"
#include "tests/fixtures/skip.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <deque>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <netinet/in.h>
#include <sys/socket.h>
#include <set>
#include <thread>
#include <unistd.h>

using namespace pragma; // of tests only
namespace fs = std::filesystem;

inline constexpr int few = 4, many = 8; ///< attempts

template <class Condition> bool within(double seconds, const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return condition();
}

inline int connect_to_port(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

/// A machine of its own, as far as the network and process ids go: a network namespace at the end of a virtual cable, and a PID namespace
/// in which the node is process 1, as in a container.
class far_host {
public:
  /// Null where this machine does not allow it (no root, no iproute2); `why` says so.
  static std::unique_ptr<far_host> create(int number, std::string& why) {
    auto host = std::unique_ptr<far_host>(new far_host(number));
    for (const auto& command : std::vector<std::vector<std::string>>{{"ip", "netns", "add", host->space_},
                                                                     {"ip", "link", "add", host->near_, "type", "veth", "peer", "name", "far", "netns", host->space_},
                                                                     {"ip", "addr", "add", host->address + "/30", "dev", host->near_},
                                                                     {"ip", "link", "set", host->near_, "up"},
                                                                     {"ip", "-n", host->space_, "addr", "add", host->own_ + "/30", "dev", "far"},
                                                                     {"ip", "-n", host->space_, "link", "set", "far", "up"},
                                                                     {"ip", "-n", host->space_, "link", "set", "lo", "up"}})
      if (!host->ran(command, why)) return nullptr;
    return host;
  }
  ~far_host() {
    std::string ignored;
    ran({"ip", "netns", "del", space_}, ignored);
    ran({"ip", "link", "del", near_}, ignored);
  }
  std::vector<std::string> inside(std::vector<std::string> command) const {
    std::vector<std::string> all{"ip", "netns", "exec", space_, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
  /// Packets are dropped without a word. Mends what was cut before.
  void connect(bool to_head, bool to_node) {
    std::string why;
    if (!cut_.empty()) REQUIRE(ran(cut_, why));
    cut_.clear();
    if (to_head && to_node) return;
    if (!to_head && !to_node) { // the plug is pulled
      REQUIRE(ran({"ip", "link", "set", near_, "down"}, why));
      cut_ = {"ip", "link", "set", near_, "up"};
    } else if (to_node) {
      REQUIRE(ran({"ip", "-n", space_, "route", "add", "blackhole", address + "/32"}, why));
      cut_ = {"ip", "-n", space_, "route", "del", "blackhole", address + "/32"};
    } else {
      REQUIRE(ran({"ip", "route", "add", "blackhole", own_ + "/32"}, why));
      cut_ = {"ip", "route", "del", "blackhole", own_ + "/32"};
    }
  }
  std::string address; ///< of the head as seen from there

private:
  /// Of RFC 2544's addresses for such tests; another one for each process, since one that was killed leaves its links behind.
  static std::string network() { return "198.18." + std::to_string(::getpid() % 250) + "."; }
  explicit far_host(int number)
      : address(network() + std::to_string(4 * number + 1)), own_(network() + std::to_string(4 * number + 2)),
        space_("pragma-" + std::to_string(::getpid()) + "-" + std::to_string(number)), near_("pr" + std::to_string(::getpid()) + "n" + std::to_string(number)) {}
  static bool ran(const std::vector<std::string>& command, std::string& why) {
    process_spec spec;
    spec.argv = command;
    const auto result = run_process(spec);
    why = result ? result->err : result.error().message;
    return result && result->exit_code == 0;
  }
  std::string own_, space_, near_;
  std::vector<std::string> cut_; ///< the command that mends it
};

/// A head and nodes on this machine, each with a home of its own.
struct cluster {
  temp_dir dir = std::move(*temp_dir::create("pragma-cluster-"));
  std::map<std::string, child_process> members;
  std::map<std::string, std::unique_ptr<test::made_up_node>> made_up;
  int port = 0;
  uint64_t head_files = 0; ///< that the head may open; 0: as many as this process
  std::vector<std::pair<std::string, std::string>> head_environment;
  bool tls;

  explicit cluster(bool with_tls) : tls(with_tls) {
    std::ofstream(dir.path() / "task.py") << small_task;
    if (!tls) return;
    REQUIRE(run({"cluster", "ca", "init", path("ca")}).exit_code == 0);
    for (const auto& [name, role] : {std::pair{"head", "head"}, {"a", "node"}, {"b", "node"}, {"user", "user"}, {"other", "user"}, {"admin", "admin"}})
      REQUIRE(run({"cluster", "ca", "issue", name, "--role", role, "--dir", path("ca")}).exit_code == 0);
  }
  ~cluster() {
    made_up.clear();
    for (auto& [name, child] : members) child.kill();
  }
  std::string path(const std::string& name) const { return (dir.path() / name).string(); }
  process_spec command(const std::string& exe, std::vector<std::string> arguments, const std::string& home) const {
    process_spec spec;
    spec.argv = {exe};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    spec.env = {{"PRAGMA_HOME", path("home-" + home)}, {"NO_COLOR", "1"}};
    spec.limits.wall_seconds = 280;
    spec.max_output = 32 << 20;
    return spec;
  }
  process_result run(std::vector<std::string> arguments, const std::string& home = "user") const {
    auto result = run_process(command(PRAGMA_EXE, std::move(arguments), home));
    REQUIRE(result);
    return *result;
  }
  std::vector<std::string> with_tls(std::vector<std::string> arguments, const std::string& who) const {
    if (tls) {
      arguments.push_back("--tls");
      arguments.push_back(path("ca/" + who));
    }
    return arguments;
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port); }

  void start_head(const std::string& interface = "127.0.0.1", const std::vector<std::string>& more = {}) {
    const auto ready = path("ready");
    fs::remove(ready);
    if (port == 0) port = test::free_port();
    fs::create_directories(path("head-tmp"));
    auto spec = command(PRAGMA_EXE, with_tls({"head", "--listen", interface + ":" + std::to_string(port), "--ready-file", ready}, "head"), "head");
    spec.argv.insert(spec.argv.end(), more.begin(), more.end());
    spec.env.emplace_back("TMPDIR", path("head-tmp"));
    spec.env.insert(spec.env.end(), head_environment.begin(), head_environment.end());
    spec.limits.open_files = head_files;
    auto child = child_process::start(spec);
    REQUIRE(child);
    members.insert_or_assign("head", std::move(*child));
    if (!within(60, [&] { return fs::exists(ready) && fs::file_size(ready) > 1; })) FAIL("no head: " << members.at("head").kill().err);
  }
  void start_node(const std::string& name, const far_host* host = nullptr, const std::vector<std::pair<std::string, std::string>>& environment = {}) {
    auto spec = command(PRAGMA_NODE_EXE, with_tls({"--join", (host ? host->address : "127.0.0.1") + ":" + std::to_string(port), "--name", name}, name), name);
    spec.env.insert(spec.env.end(), environment.begin(), environment.end());
    test::home_with_limits(path("home-" + name));
    if (host) spec.argv = host->inside(spec.argv);
    auto child = child_process::start(spec);
    REQUIRE(child);
    members.insert_or_assign(name, std::move(*child));
  }
  /// A node in a process of its own whose hardware is made up, each of its jobs taking so long.
  void start_away(const std::string& name, double job_seconds, const far_host* host = nullptr) {
    auto spec = command(MADE_UP_BENCH_EXE, {(host ? host->address : "127.0.0.1") + ":" + std::to_string(port), name, std::to_string(job_seconds)}, name);
    if (tls) spec.argv.push_back(path("ca/" + name));
    if (host) spec.argv = host->inside(spec.argv);
    auto child = child_process::start(spec);
    REQUIRE(child);
    members.insert_or_assign(name, std::move(*child));
  }
  /// A node in this process that makes its results up: for tests of what is not the node's.
  test::made_up_node& start_made_up(const std::string& name, double job_seconds, const std::string& machine = {}, bool answers = true) {
    test::made_up_node::options o;
    o.heads = {{"127.0.0.1", static_cast<uint16_t>(port)}};
    if (tls) o.tls = path("ca/" + name);
    o.name = name;
    o.job_seconds = job_seconds;
    o.machine = machine;
    o.answers = answers;
    auto& node = made_up[name] = std::make_unique<test::made_up_node>(o);
    REQUIRE(within(30, [&] { return node->joined(); }));
    return *node;
  }
  json status() const {
    const auto result = run(with_tls({"cluster", "status", "--head", address(), "--json"}, "user"));
    INFO(result.out << result.err);
    REQUIRE(result.exit_code == 0);
    return parse_json(result.out, "status").value();
  }
  bool has_joined(const std::string& name) const {
    const auto now = status();
    for (const auto& m : now["members"])
      if (m["node"]["facts"]["name"] == name && !m["node"]["facts"]["devices"].empty()) return true;
    return false;
  }
  /// Of a node; empty: the head does not know it.
  std::string state_of(const std::string& name) const {
    const auto now = status();
    for (const auto& m : now["members"])
      if (m["node"]["facts"]["name"] == name) return m["node"]["state"];
    return {};
  }
  std::future<expected<process_result>> optimize(int attempts = few, const std::string& who = "user", const std::string& out = "out", const std::vector<std::string>& more = {}) const {
    auto spec = command(PRAGMA_EXE, with_tls({"optimize", path("task.py"), "--head", address(), "--attempts", std::to_string(attempts), "--profile-seconds", "1", "--no-check", "--out", path(out), "--json"}, who), who);
    spec.argv.insert(spec.argv.end(), more.begin(), more.end());
    return std::async(std::launch::async, [spec] { return run_process(spec); });
  }
  /// As `pragma runs` gives them, newest first: an admin's are everybody's.
  json runs(const std::string& who = "admin") const {
    const auto listed = run(with_tls({"runs", "--head", address(), "--json"}, who));
    INFO(listed.out << listed.err);
    REQUIRE(listed.exit_code == 0);
    return parse_json(listed.out, "runs").value();
  }
  int runs_that_are(const std::string& state) const {
    const auto all = runs();
    return static_cast<int>(std::count_if(all.begin(), all.end(), [&](const auto& r) { return r["state"] == state; }));
  }
  /// Where the run's measurements are; empty before its task was loaded.
  std::string busy_node() const {
    const auto now = status();
    for (const auto& m : now["members"])
      for (const auto& lease : m["node"]["leases"])
        if (!lease["job"].get<std::string>().empty()) return m["node"]["facts"]["name"];
    return {};
  }
  /// A node with a job of this kind in hand, once the run has begun; kind empty: one without any while another works.
  std::string node_with(const std::string& kind) const {
    const auto now = status();
    for (const auto& m : now["members"]) {
      const auto& jobs = m["node"]["jobs"];
      if (kind.empty() && jobs.empty() && now["in_flight"].get<int>() > 0 && !m["node"]["facts"]["devices"].empty()) return m["node"]["facts"]["name"];
      for (const auto& job : jobs)
        if (!kind.empty() && job.get<std::string>().ends_with(" " + kind)) return m["node"]["facts"]["name"];
    }
    return {};
  }
  void check(std::future<expected<process_result>>& run, int attempts = few) const {
    const auto result = run.get();
    REQUIRE(result);
    INFO(result->err);
    const bool busy = result->exit_code == 6 && result->err.find("not established") != std::string::npos; // then there is no figure, and all else holds
    CHECK((busy || result->exit_code == 0));
    const auto document = parse_json(result->out, "stdout");
    REQUIRE(document);
    std::set<std::string> seen;
    for (const auto& it : (*document)["iterations"]) seen.insert(it["candidate"].get<std::string>());
    CHECK(static_cast<int>((*document)["iterations"].size()) == attempts);
    CHECK(static_cast<int>(seen.size()) == attempts); // none counted twice
    if (busy) return test::skip("other work kept the machine busy: the run has no figure");
    CHECK((*document)["run"]["final"]["timing"]["speedup"]["low"].get<double>() > 0);
    CHECK(fs::exists(path("out") + "/kernel.cpp"));
  }
};

