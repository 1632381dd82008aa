// Many users of one head, on real processes: who may have how much at once, who is first, on which nodes; what they see of it; nodes that leave on a signal.
#include "cluster_fixture.hpp"
#include "stub_server.hpp"
#include "tests/fixtures/skip.hpp"

namespace {

json result_of(std::future<expected<process_result>>& run) {
  const auto ended = run.get();
  REQUIRE(ended);
  INFO(ended->err);
  CHECK(ended->exit_code == 0);
  const auto document = parse_json(ended->out, "stdout");
  REQUIRE(document);
  return *document;
}

void write_quotas(const cluster& c, const std::string& text) {
  fs::create_directories(c.path("home-head"));
  std::ofstream(c.path("home-head/quotas.json")) << text;
}

} // namespace

TEST_CASE("quotas: a user's second run waits, the third is refused with a sentence, another user's begins; a restarted head keeps to them") {
  cluster c(true);
  write_quotas(c, R"({"running_per_user": 1, "queued_per_user": 1})");
  c.start_head();
  auto& node = c.start_made_up("a", 0.02, {}, false);
  auto first = c.optimize(2, "user", "out1");
  REQUIRE(within(60, [&] { return c.runs_that_are("running") == 1; }));
  auto second = c.optimize(2, "user", "out2");
  REQUIRE(within(60, [&] { return c.runs_that_are("queued") == 1; }));
  const auto third = c.optimize(2, "user", "out3").get();
  REQUIRE(third);
  CHECK(third->exit_code != 0);
  CHECK(third->err.find("the queue is full: 1 of your runs wait, 1 of all") != std::string::npos);
  auto others = c.optimize(2, "other", "out4");
  CHECK(within(60, [&] { return c.runs_that_are("running") == 2; }));
  ::kill(c.members.at("head").pid(), SIGKILL);
  c.members.at("head").kill(); // reaps
  c.start_head();
  CHECK(within(60, [&] { return c.runs_that_are("running") == 2 && c.runs_that_are("queued") == 1; }));
  node.answer();
  for (auto* run : {&first, &second, &others}) CHECK(result_of(*run)["iterations"].size() == 2);
  CHECK(c.runs_that_are("finished") == 3);
}

TEST_CASE("a head's limit for all, and of waiting runs of all") {
  cluster c(true);
  write_quotas(c, R"({"running": 1, "queued": 1})");
  c.start_head();
  auto& node = c.start_made_up("a", 0.02, {}, false);
  auto first = c.optimize(1, "user", "out1");
  REQUIRE(within(60, [&] { return c.runs_that_are("running") == 1; }));
  auto second = c.optimize(1, "other", "out2");
  REQUIRE(within(60, [&] { return c.runs_that_are("queued") == 1; }));
  const auto third = c.optimize(1, "admin", "out3").get();
  REQUIRE(third);
  CHECK(third->exit_code != 0);
  CHECK(third->err.find("the queue is full: 0 of your runs wait, 1 of all") != std::string::npos);
  // Who waits may be cancelled, and its place is free.
  std::string waiting;
  for (const auto& r : c.runs())
    if (r["state"] == "queued") waiting = r["id"];
  CHECK(c.run(c.with_tls({"cancel", waiting, "--head", c.address()}, "other")).exit_code == 0);
  CHECK(second.get()->exit_code == 130);
  auto again = c.optimize(1, "admin", "out4");
  CHECK(within(60, [&] { return c.runs_that_are("queued") == 1; }));
  node.answer();
  (void)result_of(first);
  (void)result_of(again);
}

TEST_CASE("a model's tokens: the head's quota holds, and goes on where another head takes over without the transcript") {
  const auto numbered = [](size_t i) { // each a candidate of its own, with 2,000 tokens or so in it
    return "Try " + std::to_string(i) + ".\n\nflags: -O3\n\n```cpp\n// " + std::to_string(i) + std::string(8000, 'x') + "\nextern \"C\" void pragma_kernel(const void*) {}\n```\n";
  };
  // How often the model is asked until its budget is used up: by a head that lives, and by one that is killed after the first attempt.
  size_t asked[2] = {0, 0};
  for (const bool killed : {false, true}) {
    test::stub_server model([&](const test::stub_request&, size_t i) { return test::completion_stream(numbered(i)); });
    cluster c(true);
    write_quotas(c, R"({"tokens_per_run": 20000})");
    c.start_head();
    c.start_made_up("a", 0.5);
    auto run = c.optimize(40, "user", "out", {"--model", "test", "--base-url", model.url(), "--seed", "none"});
    if (killed) {
      REQUIRE(within(60, [&] {
        const auto all = c.runs();
        return !all.empty() && all[0]["attempts"].get<int>() >= 1;
      }));
      ::kill(c.members.at("head").pid(), SIGKILL);
      c.members.at("head").kill(); // reaps
      fs::remove_all(c.path("home-head/transcripts")); // each head has its own
      c.start_head();
    }
    const auto result = result_of(run);
    INFO(result["run"].dump(1).substr(0, 2000));
    CHECK(result["run"]["stop_reason"].get<std::string>().find("token budget of 20000 used up") != std::string::npos);
    CHECK(result["iterations"].size() >= 2);
    asked[killed] = model.requests().size();
  }
  CHECK(asked[0] >= 3);
  CHECK(asked[1] <= asked[0] + 1); // what was in flight when the head was killed is in no record
}

TEST_CASE("runs --mine --watch shows a run's states and ends on Ctrl-C; attach stays to the end") {
  cluster c(true);
  c.start_head();
  auto& node = c.start_made_up("a", 0.3, {}, false);
  auto others = c.optimize(1, "other", "out1");
  auto run = c.optimize(few, "user", "out2");
  REQUIRE(within(60, [&] { return c.runs_that_are("running") == 2; }));
  const std::string id = c.runs("user")[0]["id"];
  auto watch = child_process::start(c.command(PRAGMA_EXE, c.with_tls({"runs", "--mine", "--watch", "--json", "--head", c.address()}, "user"), "user"));
  REQUIRE(watch);
  auto attach = std::async(std::launch::async, [spec = c.command(PRAGMA_EXE, c.with_tls({"attach", id, "--head", c.address()}, "user"), "user")] { return run_process(spec); });
  std::vector<std::string> states;
  for (int lines = 0; lines < 120 && (states.empty() || states.back() != "finished"); ++lines) {
    const auto line = watch->read_line(30);
    REQUIRE(line);
    const auto listed = parse_json(*line, "a line a second");
    REQUIRE(listed);
    REQUIRE(listed->size() == 1); // the other user's is not mine
    CHECK((*listed)[0]["id"] == id);
    const std::string state = (*listed)[0]["state"];
    if (states.empty() || states.back() != state) states.push_back(state);
    node.answer();
  }
  CHECK(states == std::vector<std::string>{"running", "finished"});
  watch->signal(SIGINT);
  CHECK(within(10, [&] { return !watch->alive(); }));
  CHECK(watch->kill().exit_code == 0);
  const auto stayed = attach.get();
  REQUIRE(stayed);
  INFO(stayed->out << stayed->err);
  CHECK(stayed->exit_code == 0);
  CHECK(stayed->out.find("attempt") != std::string::npos);
  (void)result_of(run);
  (void)result_of(others);
}

TEST_CASE("who is first: the higher priority, which only an admin may raise; needs choose the node") {
  cluster c(true);
  c.start_head();
  auto& node = c.start_made_up("a", 0.02, {}, false);
  auto first = c.optimize(1, "user", "out1"); // its task waits for the node's answer: all others wait behind it
  REQUIRE(within(60, [&] { return node.orders() == 1; }));
  const auto wait_for = [&](int runs) { REQUIRE(within(60, [&] { return c.runs_that_are("running") == runs; })); };
  auto low = c.optimize(1, "other", "out2", {"--priority=-5"});
  wait_for(2);
  auto wished = c.optimize(1, "user", "out3", {"--priority", "9"}); // a user's is 0 at most
  wait_for(3);
  auto high = c.optimize(1, "admin", "out4", {"--priority", "5"});
  wait_for(4);
  auto elsewhere = c.optimize(1, "admin", "out5", {"--priority", "50", "--needs", "node=b"}); // first of all, and in nobody's way
  wait_for(5);
  REQUIRE(within(30, [&] { return c.status()["queued"].get<int>() == 4; }));
  node.answer();
  std::map<std::string, std::string> ids;
  for (auto& [name, run] : {std::pair<std::string, decltype(first)*>{"first", &first}, {"low", &low}, {"wished", &wished}, {"high", &high}}) ids[name] = result_of(*run)["run"]["id"];
  std::vector<std::string> order; // of the runs' first jobs
  for (const auto& job : node.done())
    if (std::find(order.begin(), order.end(), job.run) == order.end()) order.push_back(job.run);
  CHECK(order == std::vector<std::string>{ids["first"], ids["high"], ids["wished"], ids["low"]});
  for (const auto& r : c.runs()) {
    if (r["id"] == ids["wished"]) CHECK(r["priority"] == 0);
    if (r["id"] == ids["low"]) CHECK(r["priority"] == -5);
    if (r["id"] == ids["high"]) CHECK(r["priority"] == 5);
  }
  auto& other = c.start_made_up("b", 0.02);
  const std::string id = result_of(elsewhere)["run"]["id"];
  const auto done = other.done();
  CHECK_FALSE(done.empty());
  CHECK(std::all_of(done.begin(), done.end(), [&](const auto& job) { return job.run == id; }));
  CHECK(c.run(c.with_tls({"optimize", c.path("task.py"), "--head", c.address(), "--needs", "quick"}, "user")).err.find("'quick' is no constraint") != std::string::npos);
}

TEST_CASE("a run that no node can do says what it waits for, and Ctrl-C ends it at once") {
  cluster c(true);
  c.start_head();
  c.start_made_up("a", 0.02);
  auto run = child_process::start(c.command(PRAGMA_EXE, c.with_tls({"optimize", c.path("task.py"), "--head", c.address(), "--needs", "node=z", "--out", c.path("out")}, "user"), "user"));
  REQUIRE(run);
  bool told = false;
  for (int lines = 0; lines < 10 && !told; ++lines) {
    const auto line = run->read_line(20);
    REQUIRE(line);
    told = line->find("no node that is here has what it needs (backend cpu, node=z)") != std::string::npos;
  }
  CHECK(told);
  run->signal(SIGINT);
  CHECK(within(10, [&] { return !run->alive(); }));
  CHECK(run->kill().exit_code == 130);
  CHECK(c.runs_that_are("interrupted") == 1);
}

TEST_CASE("a node that is told to go finishes what it has, takes nothing new, and leaves with 0; another goes on") {
  cluster c(true);
  c.start_head();
  c.start_away("a", 2);
  REQUIRE(within(30, [&] { return c.has_joined("a"); }));
  auto run = c.optimize(2);
  REQUIRE(within(60, [&] { return c.busy_node() == "a"; }));
  ::kill(c.members.at("a").pid(), SIGTERM);
  CHECK(within(2, [&] { return c.state_of("a") == "draining"; }));
  CHECK(within(10, [&] { return !c.members.at("a").alive(); }));
  CHECK(c.members.at("a").kill().exit_code == 0);
  CHECK(within(5, [&] { return c.state_of("a").empty(); })); // it left, and is not missed: the head may hear of it a moment after the process is gone
  c.start_away("b", 0.1);
  c.check(run, 2);
  CHECK(c.status()["requeued"] == 0); // what it had was done, not given to the other
}

TEST_CASE("in a job of Slurm: the batch script of docs/deploy has its node drain when the time is over, and ends well") {
  cluster c(true);
  c.start_head();
  // What Slurm gives: srun starts the task and hands signals on. And a pragma-node whose hardware is made up.
  const auto program = [&](const std::string& name, const std::string& text) {
    fs::create_directories(c.path("bin"));
    std::ofstream(c.path("bin/" + name)) << "#!/bin/bash\n" << text << "\n";
    fs::permissions(c.path("bin/" + name), fs::perms::owner_all);
  };
  program("srun", "while [[ $1 == --* ]]; do shift; done\nexec \"$@\"");
  program("pragma-node", "[[ $1 == --join && $3 == --tls && $5 == --name ]] && exec " MADE_UP_BENCH_EXE " \"$2\" \"$6\" 2 \"$4\"");
  process_spec spec;
  spec.argv = {"/bin/bash", std::string(TESTS_DIR) + "/../docs/deploy/node.slurm"};
  spec.env = {{"PATH", c.path("bin") + ":" + std::getenv("PATH")}, {"PRAGMA_HEAD", c.address()}, {"PRAGMA_TLS", c.path("ca/a")}, {"PRAGMA_NAME", "a"}, {"SLURM_JOB_ID", "42"}};
  auto batch = child_process::start(spec);
  REQUIRE(batch);
  auto run = c.optimize(1);
  std::string node;
  REQUIRE(within(60, [&] { return !(node = c.busy_node()).empty(); }));
  CHECK(node.starts_with("a."));
  CHECK(node.ends_with("-42"));
  ::kill(batch->pid(), SIGTERM); // to the batch script alone: --signal=B:TERM@300
  CHECK(within(2, [&] { return c.state_of(node) == "draining"; }));
  CHECK(within(10, [&] { return !batch->alive(); }));
  CHECK(batch->kill().exit_code == 0);
  CHECK(c.status()["requeued"] == 0);
  c.start_away("b", 0.1);
  c.check(run, 1);
}
