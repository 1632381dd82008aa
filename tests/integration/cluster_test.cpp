// A cluster of real processes: mutual TLS, a run through the head, and what happens when members are killed, frozen or strangers.
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/subprocess.hpp"
#include "small_task.hpp"

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <netinet/in.h>
#include <sys/socket.h>
#include <set>
#include <thread>
#include <unistd.h>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

constexpr int few = 4, many = 8; ///< attempts

template <class Condition> bool within(double seconds, const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return condition();
}

int connect_to(int port) {
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
  explicit far_host(int number)
      : address("198.18.13." + std::to_string(4 * number + 1)), own_("198.18.13." + std::to_string(4 * number + 2)), // RFC 2544: for such tests
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
  int port = 0;
  bool tls;

  explicit cluster(bool with_tls) : tls(with_tls) {
    std::ofstream(dir.path() / "task.py") << small_task;
    if (!tls) return;
    REQUIRE(run({"cluster", "ca", "init", path("ca")}).exit_code == 0);
    for (const char* name : {"head", "a", "b", "user"}) REQUIRE(run({"cluster", "ca", "issue", name, "--dir", path("ca")}).exit_code == 0);
  }
  ~cluster() {
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

  void start_head(const std::string& interface = "127.0.0.1") {
    const auto ready = path("ready");
    fs::remove(ready);
    fs::create_directories(path("head-tmp"));
    auto spec = command(PRAGMA_EXE, with_tls({"head", "--listen", interface + ":" + std::to_string(port), "--ready-file", ready, "--grace", "5"}, "head"), "head");
    spec.env.emplace_back("TMPDIR", path("head-tmp"));
    auto child = child_process::start(spec);
    REQUIRE(child);
    members.insert_or_assign("head", std::move(*child));
    REQUIRE(within(20, [&] { return fs::exists(ready) && fs::file_size(ready) > 1; }));
    std::ifstream(ready) >> port;
    REQUIRE(port > 0);
  }
  void start_node(const std::string& name, const far_host* host = nullptr, const std::vector<std::pair<std::string, std::string>>& environment = {}) {
    auto spec = command(PRAGMA_NODE_EXE, with_tls({"--join", (host ? host->address : "127.0.0.1") + ":" + std::to_string(port), "--name", name}, name), name);
    spec.env.insert(spec.env.end(), environment.begin(), environment.end());
    if (host) spec.argv = host->inside(spec.argv);
    auto child = child_process::start(spec);
    REQUIRE(child);
    members.insert_or_assign(name, std::move(*child));
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
  std::future<expected<process_result>> optimize(int attempts = few) const {
    return std::async(std::launch::async, [spec = command(PRAGMA_EXE, with_tls({"optimize", path("task.py"), "--head", address(), "--attempts", std::to_string(attempts), "--profile-seconds", "1",
                                                                   "--no-check", "--out", path("out"), "--json"}, "user"), "user")] { return run_process(spec); });
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
    CHECK(result->exit_code == 0);
    const auto document = parse_json(result->out, "stdout");
    REQUIRE(document);
    std::set<std::string> seen;
    for (const auto& it : (*document)["iterations"]) seen.insert(it["candidate"].get<std::string>());
    CHECK(static_cast<int>((*document)["iterations"].size()) == attempts);
    CHECK(static_cast<int>(seen.size()) == attempts); // none counted twice
    CHECK((*document)["run"]["final"]["timing"]["speedup"]["low"].get<double>() > 0);
    CHECK(fs::exists(path("out") + "/kernel.cpp"));
  }
};

} // namespace

TEST_CASE("mutual TLS, two nodes, killed while one compiles, while it measures, and with nothing in hand: the run completes") {
  cluster c(true);
  c.start_head();
  c.start_node("a");
  c.start_node("b");
  REQUIRE(within(30, [&] { return c.has_joined("a") && c.has_joined("b"); }));
  auto run = c.optimize(many);
  for (const std::string kind : {"verify", "measure", ""}) {
    INFO("killed with: " << kind);
    std::string victim;
    REQUIRE(within(90, [&] { return !(victim = c.node_with(kind)).empty(); }));
    ::kill(c.members.at(victim).pid(), SIGKILL); // it alone: its compilers and kernels have to notice by themselves
    c.members.at(victim).kill();                 // reaps
    CHECK(within(10, [&] { return !c.has_joined(victim); }));
    c.start_node(victim);
    CHECK(within(30, [&] { return c.has_joined(victim); }));
  }
  c.check(run, many);
  const auto status = c.status();
  CHECK(status["requeued"].get<int>() >= 2);
  const auto listed = c.run(c.with_tls({"runs", "--head", c.address(), "--json"}, "user"));
  CHECK(parse_json(listed.out, "runs").value()[0]["state"] == "finished");
  const auto answer = c.run(c.with_tls({"ask", "which counter shows branch mispredictions", "--head", c.address()}, "user"));
  CHECK(answer.exit_code == 0);
  // Asked to leave, they leave.
  for (const char* member : {"a", "b", "head"}) {
    INFO(member);
    ::kill(c.members.at(member).pid(), SIGINT);
    CHECK(within(10, [&] { return !c.members.at(member).alive(); }));
    CHECK(c.members.at(member).kill().exit_code == 0);
  }
}

TEST_CASE("a frozen node loses its work to another, and comes back when it thaws") {
  cluster c(false);
  c.start_head();
  c.start_node("a");
  c.start_node("b");
  REQUIRE(within(30, [&] { return c.has_joined("a") && c.has_joined("b"); }));
  auto run = c.optimize();
  std::string victim;
  REQUIRE(within(60, [&] { return !(victim = c.busy_node()).empty(); }));
  ::kill(c.members.at(victim).pid(), SIGSTOP);
  CHECK(within(15, [&] { return c.status()["requeued"].get<int>() >= 1; }));
  c.check(run);
  ::kill(c.members.at(victim).pid(), SIGCONT);
  CHECK(within(60, [&] { return c.has_joined(victim); }));
}

TEST_CASE("hosts of their own, each node process 1 there: a cable pulled, or dead in one direction; the work moves on and the node rejoins") {
  std::string why;
  std::map<std::string, std::unique_ptr<far_host>> hosts;
  hosts["a"] = far_host::create(0, why);
  if (hosts["a"]) hosts["b"] = far_host::create(1, why);
  if (!hosts["a"] || !hosts["b"]) {
    WARN("skipped: network namespaces cannot be made here: " << why);
    return;
  }
  cluster c(true);
  c.start_head("0.0.0.0");
  for (const auto& [name, host] : hosts) c.start_node(name, host.get());
  REQUIRE(within(30, [&] { return c.has_joined("a") && c.has_joined("b"); }));
  auto run = c.optimize(many);
  for (const auto& [to_head, to_node] : {std::pair{false, false}, {false, true}, {true, false}}) {
    INFO((to_head ? "" : "nothing reaches the head; ") << (to_node ? "" : "nothing reaches the node"));
    std::string victim;
    REQUIRE(within(90, [&] { return !(victim = c.busy_node()).empty(); }));
    hosts[victim]->connect(to_head, to_node);
    CHECK(within(20, [&] { return !c.has_joined(victim); }));
    REQUIRE(within(90, [&] { return !c.busy_node().empty(); })); // the other one
    hosts[victim]->connect(true, true);
    CHECK(within(60, [&] { return c.has_joined(victim); }));
  }
  c.check(run, many);
  CHECK(c.status()["requeued"].get<int>() >= 3);
}

TEST_CASE("the head is killed in the middle of a run and started again: nodes rejoin, the run goes on, the user sees its end") {
  cluster c(false);
  c.start_head();
  c.start_node("a");
  REQUIRE(within(30, [&] { return c.has_joined("a"); }));
  auto run = c.optimize();
  REQUIRE(within(60, [&] {
    const auto now = c.status();
    for (const auto& r : now["runs"])
      if (r["attempts"].get<int>() >= 1) return true;
    return false;
  }));
  ::kill(c.members.at("head").pid(), SIGKILL);
  c.members.at("head").kill(); // reaps
  c.start_head();
  c.check(run);
}

TEST_CASE("a node offers its accelerators, and work for them goes there on the device that is leased") {
  cluster c(false);
  // A backend of which Torch calls the device cpu, with a driver that is always loaded, and a Python that tells of two such devices.
  fs::copy(fs::path(PRAGMA_EXE).parent_path().parent_path() / "share/pragma", c.path("share"), fs::copy_options::recursive);
  std::ofstream(c.path("share/backends/standin.json"))
    << R"({"name": "standin", "title": "Stand-in", "language": "triton", "torch_device": "cpu", "present": ["/dev/null"], "device_files": ["/dev/null"], "profilers": []})";
  std::ofstream(c.path("python")) << R"(#!/bin/sh
case "$*" in *describe_devices*) cat <<'END'
{"python": "3", "torch": "1", "built_for": "", "problem": "", "triton": "3"}
{"index": 0, "cpu": "Stand-in device", "arch": "s1", "compute_units": 4, "memory_bytes": 1073741824, "cache_bytes": [1048576]}
{"index": 1, "cpu": "Stand-in device", "arch": "s1", "compute_units": 4, "memory_bytes": 1073741824, "cache_bytes": [1048576]}
END
exit;; esac
exec /usr/bin/python3 "$@"
)";
  fs::permissions(c.path("python"), fs::perms(0755));
  const std::vector<std::pair<std::string, std::string>> standin{{"PRAGMA_SHARE", c.path("share")}, {"PRAGMA_PYTHON", c.path("python")}};
  c.start_head();
  c.start_node("a");
  c.start_node("b", nullptr, standin);
  REQUIRE(within(30, [&] { return c.has_joined("a") && c.has_joined("b"); }));
  std::map<std::string, std::set<std::string>> devices;
  const auto now = c.status();
  for (const auto& m : now["members"])
    for (const auto& d : m["node"]["facts"]["devices"]) devices[m["node"]["facts"]["name"]].insert(d["id"].get<std::string>());
  CHECK(devices["a"] == std::set<std::string>{"cpu"});
  CHECK(devices["b"] == std::set<std::string>{"cpu", "standin:0", "standin:1"});
  // Two runs at once. Without Triton no candidate passes; where their tasks were loaded is what matters here.
  std::vector<std::future<expected<process_result>>> runs;
  for (const char* out : {"out1", "out2"}) {
    auto spec = c.command(PRAGMA_EXE, {"optimize", c.path("task.py"), "--backend", "standin", "--device", "7", "--head", c.address(), "--attempts", "1", "--out", c.path(out)}, "user");
    spec.env.insert(spec.env.end(), standin.begin(), standin.end());
    runs.push_back(std::async(std::launch::async, [spec] { return run_process(spec); }));
  }
  for (auto& run : runs) {
    const auto ended = run.get();
    REQUIRE(ended);
    INFO(ended->out << ended->err);
    const auto said = ended->out + ended->err;
    CHECK(said.find("--device 7 is ignored") != std::string::npos);
    CHECK(said.find("torch 1.") != std::string::npos); // the reference was started
    CHECK(said.find("measured on b/standin:") != std::string::npos);
  }
}

TEST_CASE("the head that configs/cluster.json.example names is the one that commands use") {
  cluster c(false);
  fs::create_directories(c.path("home-user"));
  fs::copy_file(fs::path(TESTS_DIR) / ".." / "configs" / "cluster.json.example", c.path("home-user") + "/cluster.json");
  const auto refused = c.run({"runs"});
  CHECK(refused.exit_code == 3); // it names a folder of certificates that is not here
  CHECK(refused.err.find(c.path("home-user") + "/pragma-tls") != std::string::npos);
  CHECK(c.run({"runs", "--local"}).exit_code == 0);
}

TEST_CASE("strangers get nothing, and the head goes on") {
  cluster c(true);
  c.start_head();
  CHECK(fs::is_empty(c.path("head-tmp"))); // no copy of its key lies on a disk
  // Another authority's certificate, a key that is not the certificate's, none at all.
  REQUIRE(c.run({"cluster", "ca", "init", c.path("other")}).exit_code == 0);
  REQUIRE(c.run({"cluster", "ca", "issue", "user", "--dir", c.path("other")}).exit_code == 0);
  auto stranger = c.run({"cluster", "status", "--head", c.address(), "--tls", c.path("other/user")});
  CHECK(stranger.exit_code == 6);
  CHECK(stranger.err.find("CA") != std::string::npos);
  fs::copy_file(c.path("ca/a/key.pem"), c.path("ca/b/key.pem"), fs::copy_options::overwrite_existing);
  CHECK(c.run({"cluster", "status", "--head", c.address(), "--tls", c.path("ca/b")}).exit_code == 2);
  auto plain = c.run({"cluster", "status", "--head", c.address()});
  CHECK(plain.exit_code == 6);
  CHECK(plain.err.find("--tls") != std::string::npos);
  // Our own certificate authority's, but the other side is not: the user notices.
  CHECK(c.run({"head", "--listen", "0.0.0.0:0"}).exit_code == 2); // plaintext for everybody

  std::vector<int> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(connect_to(c.port));
  const std::string greeting("\x10\x00\x00\x00\xff\xff\xff\xff", 8);
  for (const std::string& bytes : {std::string(4096, '\xff'), std::string("GET / HTTP/1.1\r\n\r\n"), greeting, std::string("\xff\xff\xff\xff\x00\x00\x00\x00", 8), std::string(32, '\0')}) {
    const int fd = connect_to(c.port);
    REQUIRE(fd >= 0);
    CHECK(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0);
    idle.push_back(fd);
  }
  const auto status = c.status();
  CHECK(status["certificate_days"].get<int>() > 700);
  for (const int fd : idle)
    if (fd >= 0) ::close(fd);
  CHECK(c.status()["members"].empty());
}

TEST_CASE("the light node links neither RocksDB nor FAISS") {
  process_spec spec;
  spec.argv = {"/usr/bin/ldd", PRAGMA_NODE_EXE};
  const auto listed = run_process(spec);
  REQUIRE(listed);
  REQUIRE(listed->exit_code == 0);
  CHECK(listed->out.find("libcaf_io") != std::string::npos);
  for (const char* library : {"rocksdb", "faiss", "sqlite", "openblas", "libblas"}) {
    INFO(library);
    CHECK(listed->out.find(library) == std::string::npos);
  }
}
