// What happens when a rack comes back at once: N simulated nodes (real TLS, real frames, no work) and some dozens of real commands dial one real head; the
// head is killed and started again, and all rejoin as nodes do, with growing, jittered pauses. Then: do users with very different numbers of runs get equal
// shares (Jain's index; 1 is equal), through a real head with 200 runs, and in the dispatcher alone? Everything on loopback.
//
//   cluster_storm build/bin/pragma [NODES]      default 1000
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "cluster/link.hpp"
#include "cluster/messages.hpp"
#include "tests/fixtures/made_up_node.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <queue>
#include <random>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

using clock_type = std::chrono::steady_clock;
constexpr double simulated_seconds = 900;
constexpr int commands = 50;              ///< real processes that dial at once
double since(clock_type::time_point start) { return std::chrono::duration<double>(clock_type::now() - start).count(); }

double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(p * static_cast<double>(values.size() - 1))];
}

struct cost {
  double cpu_seconds = 0;
  long peak_mib = 0;
};
/// Of the process that serves: the child of the one that was started.
cost cost_of(pid_t parent) {
  pid_t child = parent;
  std::ifstream("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children") >> child;
  cost c;
  std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
  std::string word;
  for (int i = 1; stat >> word; ++i)
    if (i == 14 || i == 15) c.cpu_seconds += std::atof(word.c_str()) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::ifstream status("/proc/" + std::to_string(child) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) c.peak_mib = std::atol(line.c_str() + 6) / 1024;
  return c;
}

using node = test::made_up_node;

struct head {
  std::string exe;
  fs::path folder;
  int port = 0;
  std::optional<child_process> process;
  bool start() {
    fs::remove(folder / "ready");
    process_spec spec;
    spec.argv = {exe, "head", "--listen", "127.0.0.1:" + std::to_string(port), "--tls", (folder / "ca/head").string(), "--ready-file", (folder / "ready").string(), "--log-level", "error"};
    spec.env = {{"PRAGMA_HOME", (folder / "home").string()}};
    spec.limits.wall_seconds = 600;
    auto made = child_process::start(spec);
    if (!made) return false;
    process.emplace(std::move(*made));
    for (int i = 0; i < 600; ++i, std::this_thread::sleep_for(std::chrono::milliseconds(50)))
      if (std::ifstream(folder / "ready") >> port) return true;
    return false;
  }
};

/// Seconds until all have joined, or a negative number when they have not within `most`.
double wait_for(const std::vector<std::unique_ptr<node>>& all, double most) {
  const auto start = clock_type::now();
  for (; since(start) < most; std::this_thread::sleep_for(std::chrono::milliseconds(50)))
    if (std::all_of(all.begin(), all.end(), [](const auto& one) { return one->joined(); })) return since(start);
  return -1;
}

void commands_at_once(const head& h) {
  std::vector<std::thread> all;
  std::mutex mutex;
  std::vector<double> took;
  int failed = 0;
  for (int i = 0; i < commands; ++i)
    all.emplace_back([&] {
      process_spec spec;
      spec.argv = {h.exe, "cluster", "status", "--head", "127.0.0.1:" + std::to_string(h.port), "--tls", (h.folder / "ca/user").string(), "--json"};
      spec.env = {{"PRAGMA_HOME", (h.folder / "user").string()}};
      spec.limits.wall_seconds = 120;
      spec.max_output = 64u << 20;
      const auto start = clock_type::now();
      const auto result = run_process(spec);
      const std::lock_guard lock(mutex);
      took.push_back(since(start));
      failed += !result || result->exit_code != 0;
    });
  for (auto& t : all) t.join();
  std::printf("%d real commands at once: %d failed, p50 %.2f s, p99 %.2f s each\n", commands, failed, percentile(took, 0.5), percentile(took, 0.99));
}

node::options node_options(const head& h, const std::string& name, double job_seconds) {
  node::options o;
  o.heads = {{"127.0.0.1", static_cast<uint16_t>(h.port)}};
  o.tls = h.folder / "ca" / "rack";
  o.name = name;
  o.job_seconds = job_seconds;
  return o;
}

double jain(const std::vector<double>& got) {
  double sum = 0, squares = 0;
  for (const double g : got) {
    sum += g;
    squares += g * g;
  }
  return sum * sum / (static_cast<double>(got.size()) * squares);
}

/// 20 users begin 200 runs, 1 to 19 each, on a real head with ten nodes whose work is made up: what each gets of the nodes' time until the first of them has
/// all that it wanted, and what the head costs.
void users_of_a_head(head& h) {
  constexpr int users = 20, nodes = 10, attempts = 4;
  constexpr double job_seconds = 0.2;
  std::vector<std::unique_ptr<node>> all;
  for (int i = 0; i < nodes; ++i) all.push_back(std::make_unique<node>(node_options(h, "rack.w" + std::to_string(i), job_seconds)));
  if (wait_for(all, 60) < 0) return (void)std::printf("the ten nodes did not join\n");
  std::map<std::string, int> owner;
  const auto before = cost_of(h.process->pid());
  const auto start = clock_type::now();
  const auto dial = [&](const std::string& who) {
    link::options how;
    how.heads = {{"127.0.0.1", static_cast<uint16_t>(h.port)}};
    how.tls = h.folder / "ca" / who;
    how.want = "user";
    return link::dial(how);
  };
  for (int u = 0; u < users; ++u) {
    auto to = dial("user" + std::to_string(u));
    const int count = u < users - 1 ? 1 + u : 10; // 1 to 19, and one with 10: 200
    for (int r = 0; to && r < count; ++r) {
      run_order order;
      order.task = {"t" + std::to_string(u) + "_" + std::to_string(r) + ".py", "# made up", ""};
      order.request.stop.attempts = attempts;
      order.request.stop.roofline_share = 0;
      order.request.profile = false;
      if (const auto id = (*to)->ask_for<std::string>("start", order, 60)) owner[*id] = u;
    }
  }
  const auto accepted = clock_type::now();
  auto admin = dial("admin");
  std::map<int, int> open;
  auto first_done = clock_type::time_point::max();
  std::map<std::string, int> states;
  while (since(start) < 900) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (!admin || !(*admin)->alive()) admin = dial("admin");
    const auto runs = admin ? (*admin)->ask_for<std::vector<cluster_run>>("list", nullptr, 60) : expected<std::vector<cluster_run>>(fail(ec::remote_failed, ""));
    if (!runs) continue;
    open.clear();
    states.clear();
    for (const auto& r : *runs) {
      ++states[r.state];
      if (r.state == "running" || r.state == "queued") ++open[owner[r.id]];
    }
    if (static_cast<int>(open.size()) < users) first_done = std::min(first_done, clock_type::now());
    if (open.empty()) break;
  }
  const double took = since(start);
  std::vector<double> got(users, 0), waits;
  size_t jobs = 0;
  for (const auto& n : all)
    for (const auto& job : n->done()) {
      ++jobs;
      if (job.begun >= accepted && job.ended <= first_done) got[static_cast<size_t>(owner[job.run])] += std::chrono::duration<double>(job.ended - job.begun).count();
    }
  const auto now = cost_of(h.process->pid());
  std::printf("%zu runs of %d users on a real head, %d nodes: %d finished, %zu jobs in %.1f s; Jain's index of the first %.1f s %.4f; head: %.1f s of CPU, peak %ld MiB\n", owner.size(), users, nodes, states["finished"], jobs, took,
              std::chrono::duration<double>(first_done - accepted).count(), jain(got), now.cpu_seconds - before.cpu_seconds, now.peak_mib);
}

/// 20 users, of whom number u has u runs or so (200 in all), on 100 nodes: what each gets of the nodes' time while all want more.
void shares() {
  constexpr int users = 20, nodes = 100;
  dispatcher d;
  for (int i = 0; i < nodes; ++i) d.joined({"n" + std::to_string(i), "0", 1, {{"cpu", "cpu", "x", "x", 0, {}, {}, {}}}, 0, {}}, 0);
  std::mt19937 random(1);
  int jobs = 0, runs = 0;
  const auto submit = [&](int user, const std::string& run, double now) {
    job j;
    j.owner = "user" + std::to_string(user);
    j.run = run;
    j.id = j.owner + "/" + run + "/" + std::to_string(++jobs);
    d.submit(j, now);
  };
  for (int u = 0; u < users; ++u)
    for (int r = 0; r < 1 + u; ++r, ++runs)
      for (int k = 0; k < 4; ++k) submit(u, "r" + std::to_string(u) + "-" + std::to_string(r), 0);
  using ending = std::tuple<double, std::string, uint64_t, double>;
  std::priority_queue<ending, std::vector<ending>, std::greater<>> endings;
  std::vector<double> got(users, 0);
  double now = 0;
  const auto carry_out = [&] {
    for (const auto& a : d.take_orders(now).assign) {
      const double seconds = std::lognormal_distribution<double>(std::log(4.0), 0.6)(random);
      endings.emplace(now + seconds, a.job, a.ticket, seconds);
    }
  };
  carry_out();
  while (!endings.empty() && now < simulated_seconds) {
    const auto [at, id, ticket, seconds] = endings.top();
    endings.pop();
    now = at;
    const int user = std::atoi(id.c_str() + 4);
    got[static_cast<size_t>(user)] += seconds;
    d.answered(id, ticket, now);
    submit(user, id.substr(id.find('/') + 1, id.rfind('/') - id.find('/') - 1), now); // each run asks for the next
    carry_out();
  }
  std::printf("shares of %d users with 1 to %d runs each (%d runs, %d nodes, %.0f s of their time): Jain's index %.4f\n", users, users, runs, nodes, simulated_seconds, jain(got));
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: cluster_storm build/bin/pragma [NODES]\n");
    return 2;
  }
  const int count = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1000;
  ::signal(SIGPIPE, SIG_IGN);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  auto folder = temp_dir::create("pragma-storm-");
  if (!folder || !create_ca(folder->path() / "ca", "storm")) return 1;
  for (const auto& [name, what] : {std::pair{"head", role::head}, {"rack", role::node}, {"user", role::user}, {"admin", role::admin}})
    if (!issue_certificate(folder->path() / "ca", name, what)) return 1;
  for (int u = 0; u < 20; ++u)
    if (!issue_certificate(folder->path() / "ca", "user" + std::to_string(u), role::user)) return 1;
  head h{argv[1], folder->path(), 0, {}};
  if (!h.start()) {
    std::fprintf(stderr, "the head did not start\n");
    return 1;
  }
  commands_at_once(h);
  std::vector<std::unique_ptr<node>> all;
  const auto before = cost_of(h.process->pid());
  for (int i = 0; i < count; ++i) all.push_back(std::make_unique<node>(node_options(h, "rack.n" + std::to_string(i), 0)));
  const double first = wait_for(all, 300);
  std::vector<double> dials;
  for (const auto& one : all) dials.push_back(one->dial_seconds());
  auto now = cost_of(h.process->pid());
  std::printf("%d nodes join at once: all in %.1f s; a dial that succeeded p50 %.2f s, p99 %.2f s; head: %.1f s of CPU, peak %ld MiB\n", count, first, percentile(dials, 0.5), percentile(dials, 0.99), now.cpu_seconds - before.cpu_seconds,
              now.peak_mib);
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::seconds(10));
  const auto later = cost_of(h.process->pid());
  std::printf("they beat: %.1f%% of a CPU\n", 10 * (later.cpu_seconds - now.cpu_seconds));
  commands_at_once(h);
  h.process->kill();
  const auto killed = clock_type::now();
  if (!h.start()) return 1;
  const double back = wait_for(all, 300);
  now = cost_of(h.process->pid());
  std::printf("head killed and started again: listening after %.1f s, all %d back %.1f s later; %.1f s of CPU, peak %ld MiB\n", since(killed) - back, count, back, now.cpu_seconds, now.peak_mib);
  std::fflush(stdout);
  all.clear();
  users_of_a_head(h);
  h.process->kill();
  shares();
  return first >= 0 && back >= 0 ? 0 : 1;
}
