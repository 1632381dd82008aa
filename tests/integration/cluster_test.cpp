// A cluster of real processes: mutual TLS, a run through the head, and what happens when members are killed, frozen or strangers.
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/subprocess.hpp"

#include <arpa/inet.h>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <future>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <map>
#include <set>
#include <thread>
#include <unistd.h>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

constexpr int attempts = 4;

const char* task_source = R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0 + 1.0

def get_inputs():
    return [torch.randn(64, 4096)]

def get_init_inputs():
    return []
)";

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

/// A cable between a node and the head: relays one TCP connection after the other, and can go silent in either direction without closing anything.
class cable {
public:
  explicit cable(int to_port) : to_(to_port) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_, 64) == 0);
    socklen_t size = sizeof address;
    REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
    worker_ = std::thread([this] { relay(); });
  }
  ~cable() {
    over_ = true;
    worker_.join();
    ::close(listener_);
  }
  int port = 0;
  std::atomic<bool> to_head = true, to_node = true; ///< false: what comes is thrown away

private:
  struct link {
    int node, head;
  };
  void relay() {
    std::vector<link> links;
    std::vector<char> buffer(64 << 10);
    while (!over_) {
      std::vector<pollfd> waiting{{listener_, POLLIN, 0}};
      for (const auto& l : links) {
        waiting.push_back({l.node, POLLIN, 0});
        waiting.push_back({l.head, POLLIN, 0});
      }
      if (::poll(waiting.data(), waiting.size(), 20) <= 0) continue;
      std::vector<link> left;
      for (size_t i = 0; i < links.size(); ++i) {
        bool open = true;
        for (const bool from_node : {true, false}) {
          if ((waiting[1 + 2 * i + (from_node ? 0 : 1)].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
          const auto n = ::recv(from_node ? links[i].node : links[i].head, buffer.data(), buffer.size(), 0);
          if (n <= 0) open = false;
          else if (from_node ? to_head : to_node) open = ::send(from_node ? links[i].head : links[i].node, buffer.data(), static_cast<size_t>(n), MSG_NOSIGNAL) == n && open;
        }
        if (open) {
          left.push_back(links[i]);
        } else {
          ::close(links[i].node);
          ::close(links[i].head);
        }
      }
      links = std::move(left);
      if (waiting[0].revents & POLLIN) {
        const int node = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        const int head = node >= 0 ? connect_to(to_) : -1;
        if (head >= 0) links.push_back({node, head});
        else if (node >= 0) ::close(node);
      }
    }
    for (const auto& l : links) {
      ::close(l.node);
      ::close(l.head);
    }
  }
  int to_, listener_ = -1;
  std::atomic<bool> over_ = false;
  std::thread worker_;
};

/// A head and nodes on this machine, each with a home of its own.
struct cluster {
  temp_dir dir = std::move(*temp_dir::create("pragma-cluster-"));
  std::map<std::string, child_process> members;
  int port = 0;
  bool tls;

  explicit cluster(bool with_tls) : tls(with_tls) {
    std::ofstream(dir.path() / "task.py") << task_source;
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

  void start_head() {
    const auto ready = path("ready");
    fs::remove(ready);
    auto child = child_process::start(command(PRAGMA_EXE, with_tls({"head", "--listen", port ? address() : "127.0.0.1:0", "--ready-file", ready, "--grace", "5"}, "head"), "head"));
    REQUIRE(child);
    members.insert_or_assign("head", std::move(*child));
    REQUIRE(within(20, [&] { return fs::exists(ready) && fs::file_size(ready) > 1; }));
    std::ifstream(ready) >> port;
    REQUIRE(port > 0);
  }
  void start_node(const std::string& name, int through = 0) {
    const auto to = through ? "127.0.0.1:" + std::to_string(through) : address();
    auto child = child_process::start(command(PRAGMA_NODE_EXE, with_tls({"--join", to, "--name", name}, name), name));
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
  std::future<expected<process_result>> optimize() const {
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
  void check(std::future<expected<process_result>>& run) const {
    const auto result = run.get();
    REQUIRE(result);
    INFO(result->err);
    CHECK(result->exit_code == 0);
    const auto document = parse_json(result->out, "stdout");
    REQUIRE(document);
    std::set<std::string> seen;
    for (const auto& it : (*document)["iterations"]) seen.insert(it["candidate"].get<std::string>());
    CHECK((*document)["iterations"].size() == attempts);
    CHECK(seen.size() == attempts); // none counted twice
    CHECK((*document)["run"]["final"]["timing"]["speedup"]["low"].get<double>() > 0);
    CHECK(fs::exists(path("out") + "/kernel.cpp"));
  }
};

} // namespace

TEST_CASE("mutual TLS, two nodes, one is killed on the way: the run completes and says where it was") {
  cluster c(true);
  c.start_head();
  c.start_node("a");
  c.start_node("b");
  REQUIRE(within(30, [&] { return c.has_joined("a") && c.has_joined("b"); }));
  auto run = c.optimize();
  std::string victim;
  REQUIRE(within(60, [&] { return !(victim = c.busy_node()).empty(); }));
  ::kill(c.members.at(victim).pid(), SIGKILL); // it alone: its compilers and kernels have to notice by themselves
  c.check(run);
  const auto status = c.status();
  CHECK(status["requeued"].get<int>() >= 1);
  const auto listed = c.run(c.with_tls({"runs", "--head", c.address(), "--json"}, "user"));
  CHECK(parse_json(listed.out, "runs").value()[0]["state"] == "finished");
  const auto answer = c.run(c.with_tls({"ask", "which counter shows branch mispredictions", "--head", c.address()}, "user"));
  CHECK(answer.exit_code == 0);
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

TEST_CASE("a cable that goes dead in one direction or both: the work moves on, and the node rejoins when it is mended") {
  for (const auto& [head_deaf, node_deaf] : {std::pair{true, false}, {false, true}, {true, true}}) {
    INFO((head_deaf ? "nothing reaches the head " : "") << (node_deaf ? "nothing reaches the node" : ""));
    cluster c(true);
    c.start_head();
    cable line(c.port);
    c.start_node("a", line.port);
    REQUIRE(within(30, [&] { return c.has_joined("a"); }));
    auto run = c.optimize();
    REQUIRE(within(60, [&] { return c.busy_node() == "a"; }));
    line.to_head = !head_deaf;
    line.to_node = !node_deaf;
    CHECK(within(20, [&] { return !c.has_joined("a"); }));
    c.start_node("b");
    c.check(run);
    line.to_head = line.to_node = true;
    CHECK(within(60, [&] { return c.has_joined("a"); }));
  }
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

TEST_CASE("strangers get nothing, and the head goes on") {
  cluster c(true);
  c.start_head();
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
