// Two heads, real processes, and nodes whose work is made up: whichever is killed, stopped or frozen, at whatever moment, what a user was told stays true, every
// run ends confirmed, and no attempt is there twice. PRAGMA_CHAOS_MOMENTS says how many times (default 4), PRAGMA_CHAOS_SEED which.
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "cluster/client.hpp"
#include "cluster/standby.hpp"
#include "tests/fixtures/free_port.hpp"
#include "tests/fixtures/made_up_node.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

using clock_type = std::chrono::steady_clock;
constexpr int attempts = 6, users = 3;
constexpr double job_seconds = 0.05;

double since(clock_type::time_point start) { return std::chrono::duration<double>(clock_type::now() - start).count(); }
template <class Condition> bool within(double seconds, const Condition& condition) {
  for (const auto start = clock_type::now(); since(start) < seconds; std::this_thread::sleep_for(std::chrono::milliseconds(20)))
    if (condition()) return true;
  return condition();
}
uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct two_heads {
  temp_dir dir = std::move(*temp_dir::create("pragma-pair-"));
  std::vector<address> where{{"127.0.0.1", test::free_port()}, {"127.0.0.1", test::free_port()}};
  std::optional<child_process> heads[2];
  std::vector<std::unique_ptr<test::made_up_node>> nodes;

  two_heads() {
    REQUIRE(create_ca(dir.path() / "ca", "pair"));
    for (const auto& [name, what] : {std::pair{"head", role::head}, {"rack", role::node}, {"user", role::user}}) REQUIRE(issue_certificate(dir.path() / "ca", name, what));
  }
  ~two_heads() {
    nodes.clear();
    for (auto& h : heads)
      if (h) h->kill();
  }
  fs::path tls(const std::string& who) const { return dir.path() / "ca" / who; }
  std::string home(int i) const { return (dir.path() / ("home" + std::to_string(i))).string(); }
  std::string log(int i) const { return (dir.path() / ("log" + std::to_string(i))).string(); }
  /// What both said but of runs, for a test that fails.
  std::string logs() const {
    std::string all;
    for (int i = 0; i < 2; ++i) {
      all += "head " + std::to_string(i) + ":\n";
      std::ifstream file(log(i));
      for (std::string line; std::getline(file, line);)
        if (line.find("head: run ") == std::string::npos) all += line + "\n";
    }
    return all;
  }

  void start(int i, const std::vector<std::string>& more = {}, bool one_of_two = true) {
    const auto ready = dir.path() / ("ready" + std::to_string(i));
    fs::remove(ready);
    process_spec spec;
    // Its log goes to a file: nobody reads a pipe here.
    spec.argv = {"sh", "-c", "exec \"$0\" \"$@\" >>'" + log(i) + "' 2>&1", PRAGMA_EXE, "head", "--listen", where[static_cast<size_t>(i)].text(), "--tls", tls("head").string(), "--ready-file", ready.string(), "--grace", "1"};
    if (one_of_two) spec.argv.insert(spec.argv.end(), {"--peer", where[static_cast<size_t>(1 - i)].text()});
    spec.argv.insert(spec.argv.end(), more.begin(), more.end());
    spec.env = {{"PRAGMA_HOME", home(i)}};
    spec.limits.wall_seconds = 1200;
    auto child = child_process::start(spec);
    REQUIRE(child);
    heads[i].emplace(std::move(*child));
    REQUIRE(within(60, [&] { return fs::exists(ready) && fs::file_size(ready) > 1; }));
  }
  void kill(int i) {
    ::kill(heads[i]->pid(), SIGKILL); // the parent alone: its child has to notice by itself
    heads[i]->kill();                 // reaps
  }
  std::optional<pair_state> ask(int i) const {
    auto state = ask_other_head(where[static_cast<size_t>(i)], tls("head"), 1);
    return state ? std::optional<pair_state>(*state) : std::nullopt;
  }
  /// -1: none. Two would be the end of everything that this is for.
  int serving() const {
    int found = -1;
    for (int i = 0; i < 2; ++i)
      if (const auto state = heads[i] ? ask(i) : std::nullopt; state && state->serves) found = i;
    return found;
  }
  int wait_for_service(double seconds) const {
    int found = -1;
    within(seconds, [&] { return (found = serving()) >= 0; });
    return found;
  }
  std::unique_ptr<head_client> client() const {
    auto made = head_client::connect(where, tls("user"));
    INFO((made ? "" : render(made.error())));
    REQUIRE(made);
    return std::move(*made);
  }
  bool in_step() const {
    auto made = head_client::connect(where, tls("user"));
    if (!made) return false;
    const auto status = (*made)->status();
    return status && status->standby == "in step";
  }
  void start_nodes(int count) {
    for (int i = 0; i < count; ++i) {
      test::made_up_node::options o;
      o.heads = where;
      o.tls = tls("rack");
      o.name = "rack.n" + std::to_string(i);
      o.job_seconds = job_seconds;
      nodes.push_back(std::make_unique<test::made_up_node>(o));
    }
    for (const auto& n : nodes) REQUIRE(within(60, [&] { return n->joined(); }));
  }
  run_order order(int number) const {
    run_order o;
    o.task = {"task" + std::to_string(number) + ".py", "# made up " + std::to_string(number), ""};
    o.request.stop.attempts = attempts;
    o.request.stop.roofline_share = 0;
    o.request.profile = false;
    return o;
  }
};

/// A user who begins one run after the other and remembers all that it was told.
struct user {
  const two_heads& cluster;
  int number;
  std::atomic<bool>& over;
  std::vector<std::string> wrong;
  size_t told = 0, ended = 0, not_begun = 0;
  std::thread thread;

  user(const two_heads& c, int n, std::atomic<bool>& stop) : cluster(c), number(n), over(stop), thread([this] { live(); }) {}
  void live() {
    const std::atomic<bool> never = false;
    for (int i = 0; !over; ++i) {
      auto made = head_client::connect(cluster.where, cluster.tls("user"));
      if (!made) {
        ++not_begun;
        continue;
      }
      std::map<int, std::string> heard;
      auto result = (*made)->run(cluster.order(100 * number + i), [&](const run_event& event) {
        if (event.what != "iteration") return;
        ++told;
        const auto& before = heard.emplace(event.iteration.number, event.iteration.code.id()).first->second;
        if (before != event.iteration.code.id()) wrong.push_back("attempt " + std::to_string(event.iteration.number) + " was told twice, as two");
      }, never);
      if (!result && heard.empty()) { // its beginning was cut off: it may be there or not, and is looked at with all others
        if (result.error().code == ec::not_found) wrong.push_back("begun, and not there: " + result.error().message);
        ++not_begun;
        continue;
      }
      if (!result) {
        wrong.push_back(render(result.error()));
        continue;
      }
      ++ended;
      std::map<int, std::string> recorded;
      for (const auto& it : result->iterations) recorded[it.number] = it.code.id();
      for (const auto& [n, candidate] : heard)
        if (recorded[n] != candidate) wrong.push_back("attempt " + std::to_string(n) + " of " + result->header.id + " was told and is not in the record");
    }
  }
};

/// A search from a schedule that won may have tried all its neighbours after five: so ended 10 of 2,400 such runs without any head. A search that a takeover
/// set back wrongly ends so far more often.
bool ended_early(const run_result& r) { return r.header.stop_reason == "nothing is left to try"; }

/// What is wrong with a run that has ended.
std::string fault_of(const run_result& r) {
  std::set<std::string> candidates;
  for (size_t i = 0; i < r.iterations.size(); ++i) {
    if (r.iterations[i].number != static_cast<int>(i) + 1) return "attempts are not numbered from 1 without gaps";
    if (!candidates.insert(r.iterations[i].code.id()).second) return "a candidate is there twice";
  }
  if (r.header.state != "finished" || !r.header.confirmed) return r.header.state + ", confirmed: " + std::to_string(r.header.confirmed) + " " + r.header.failure + r.header.stop_reason;
  if (r.iterations.size() == attempts || ended_early(r)) return "";
  auto text = std::to_string(r.iterations.size()) + " attempts: " + r.header.stop_reason;
  for (const auto& it : r.iterations) text += "\n  " + std::to_string(it.number) + " " + it.stage() + ": " + it.code.rationale + (it.new_best ? " (new best)" : "");
  return text + "\n  known from: " + r.header.request.coder.known_from;
}

void check_records(head_client& client, const std::vector<cluster_run>& runs) {
  size_t early = 0;
  for (const auto& r : runs) {
    const auto record = client.record(r.id);
    INFO(r.id);
    REQUIRE(record);
    CHECK(fault_of(*record) == "");
    early += ended_early(*record);
  }
  CHECK(20 * early <= runs.size() + 20);
}

} // namespace

TEST_CASE("two heads at random moments killed, stopped, both at once: nothing that was told is lost, nothing is doubled, every run ends confirmed") {
  const auto moments = number_from("PRAGMA_CHAOS_MOMENTS", 4);
  const auto seed = number_from("PRAGMA_CHAOS_SEED", std::random_device()());
  INFO("PRAGMA_CHAOS_SEED=" << seed);
  std::mt19937_64 random(seed);
  two_heads c;
  c.start(0, {"--serve"});
  c.start(1);
  REQUIRE(c.wait_for_service(60) == 0);
  c.start_nodes(3);
  REQUIRE(within(60, [&] { return c.in_step(); }));
  std::atomic<bool> over = false;
  std::vector<std::unique_ptr<user>> all;
  for (int i = 0; i < users; ++i) all.push_back(std::make_unique<user>(c, i + 1, over));
  std::vector<double> takeovers, restarts;
  for (uint64_t i = 0; i < moments; ++i) {
    // Kinds in turn: the serving head killed, stopped as a service is, both killed; then the one that follows.
    const int kind = static_cast<int>(i % 4);
    std::this_thread::sleep_for(std::chrono::milliseconds(300 + random() % 2000));
    const int first = c.wait_for_service(60);
    if (first < 0) break;
    const auto start = clock_type::now();
    if (kind == 0) c.kill(first);
    if (kind == 1) {
      ::kill(c.heads[first]->pid(), SIGTERM);
      CHECK(within(30, [&] { return !c.heads[first]->alive(); }));
      CHECK(c.heads[first]->kill().exit_code == 0);
    }
    if (kind == 2) {
      c.kill(first);
      c.kill(1 - first);
    }
    if (kind == 3) c.kill(1 - first);
    if (kind < 2) {
      c.heads[first].reset();
      if (c.wait_for_service(60) != 1 - first) FAIL_CHECK("no takeover\n" << c.logs());
      takeovers.push_back(since(start));
      c.start(first);
    } else if (kind == 2) {
      c.start(first);
      c.start(1 - first);
      CHECK(c.wait_for_service(60) >= 0);
      restarts.push_back(since(start));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(500 + random() % 1000));
      CHECK(c.serving() == first); // it goes on
      c.start(1 - first);
    }
    CHECK(within(60, [&] { return c.in_step(); }));
  }
  over = true;
  size_t told = 0, ended = 0, cut = 0;
  for (auto& u : all) {
    u->thread.join();
    for (const auto& w : u->wrong) FAIL_CHECK(w);
    told += u->told;
    ended += u->ended;
    cut += u->not_begun;
  }
  const auto client = c.client();
  expected<std::vector<cluster_run>> runs = client->runs();
  CHECK(within(120, [&] { // those whose beginning was cut off
    runs = client->runs();
    return runs && std::none_of(runs->begin(), runs->end(), [](const auto& r) { return r.state == "running" || r.state == "queued"; });
  }));
  REQUIRE(runs);
  CHECK(runs->size() >= ended);
  check_records(*client, *runs);
  std::string times;
  for (const double t : takeovers) times += " " + std::to_string(t).substr(0, 4);
  WARN("seed " << seed << ": " << moments << " moments, " << runs->size() << " runs, " << told << " attempts told, " << cut << " beginnings cut off; seconds until the other head served:" << times);
  if (std::getenv("PRAGMA_CHAOS_MOMENTS")) // asked for by somebody whose machine is quiet
    for (const double t : takeovers) CHECK(t < 10);
}

TEST_CASE("a serving head that freezes: the other takes over; thawed, it finds out, and follows") {
  two_heads c;
  c.start(0, {"--serve"});
  c.start(1);
  REQUIRE(c.wait_for_service(60) == 0);
  c.start_nodes(2);
  REQUIRE(within(60, [&] { return c.in_step(); }));
  std::atomic<bool> over = false;
  user someone(c, 1, over);
  pid_t child = 0;
  std::ifstream("/proc/" + std::to_string(c.heads[0]->pid()) + "/task/" + std::to_string(c.heads[0]->pid()) + "/children") >> child;
  REQUIRE(child > 0);
  ::kill(child, SIGSTOP);
  const auto start = clock_type::now();
  CHECK(within(60, [&] {
    const auto state = c.ask(1);
    return state && state->serves;
  }));
  WARN("the other head served " << since(start) << " s after the freeze");
  ::kill(child, SIGCONT);
  const bool follows = within(60, [&] {
    const auto one = c.ask(0), other = c.ask(1);
    return one && other && !one->serves && other->serves && one->epoch == other->epoch;
  });
  INFO(c.logs());
  CHECK(follows);
  CHECK(within(60, [&] { return c.in_step(); }));
  over = true;
  someone.thread.join();
  for (const auto& w : someone.wrong) FAIL_CHECK(w);
  CHECK(someone.ended > 0);
  CHECK(fs::exists(c.home(0) + "/runs/CURRENT"));
}

TEST_CASE("a head that is to be one of two: what it recorded alone is not lost to an empty one") {
  two_heads c;
  c.start(0, {}, false);
  c.start_nodes(1);
  const std::atomic<bool> never = false;
  const auto result = c.client()->run(c.order(1), [](const run_event&) {}, never);
  INFO((result ? "" : render(result.error())));
  REQUIRE(result);
  c.kill(0);
  c.heads[0].reset();
  c.start(1); // new, and with nothing
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(c.serving() == -1);
  c.start(0);
  CHECK(c.wait_for_service(60) == 0);
  CHECK(within(60, [&] { return c.in_step(); }));
  c.kill(0);
  c.heads[0].reset();
  const int after = c.wait_for_service(60);
  INFO(c.logs());
  REQUIRE(after == 1);
  const auto kept = c.client()->record(result->header.id);
  REQUIRE(kept);
  CHECK(fault_of(*kept) == "");
}
