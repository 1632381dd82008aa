// A cluster of real processes: mutual TLS, a run through the head, and what happens when members are killed, frozen or strangers.
#include "cluster_fixture.hpp"
#include "tests/fixtures/skip.hpp"

TEST_CASE("mutual TLS, two nodes, killed while one compiles, while it measures, and with nothing in hand: the run completes", "[alone]") {
  cluster c(true);
  c.start_head();
  c.start_node("a");
  c.start_node("b");
  REQUIRE(within(30, [&] { return c.has_joined("a") && c.has_joined("b"); }));
  auto run = c.optimize(many, "user", "out", {"--seeds", "1", "--no-profile"});
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
  for (const char* name : {"a", "b"}) c.start_away(name, 0.5);
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
    pragma::test::skip("network namespaces cannot be made here: " + std::string(why));
    return;
  }
  cluster c(true);
  c.start_head("0.0.0.0");
  for (const auto& [name, host] : hosts) c.start_away(name, 2.5, host.get()); // the run outlasts three cuts
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
  c.start_made_up("a", 0.2);
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

TEST_CASE("a user sees and ends runs of its own, an admin all; a cancelled run ends at once") {
  cluster c(true);
  c.start_head();
  c.start_away("a", 1);
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
    CHECK(said.find("torch ") != std::string::npos); // the reference was started
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
  REQUIRE(c.run({"cluster", "ca", "issue", "user", "--role", "user", "--dir", c.path("other")}).exit_code == 0);
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
  for (int i = 0; i < 200; ++i) idle.push_back(connect_to_port(c.port));
  const std::string greeting("\x10\x00\x00\x00\xff\xff\xff\xff", 8);
  for (const std::string& bytes : {std::string(4096, '\xff'), std::string("GET / HTTP/1.1\r\n\r\n"), greeting, std::string("\xff\xff\xff\xff\x00\x00\x00\x00", 8), std::string(32, '\0')}) {
    const int fd = connect_to_port(c.port);
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
  CHECK(listed->out.find("libcaf_core") != std::string::npos);
  for (const char* library : {"rocksdb", "faiss", "sqlite", "openblas", "libblas"}) {
    INFO(library);
    CHECK(listed->out.find(library) == std::string::npos);
  }
}
