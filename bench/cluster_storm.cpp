// What happens when a rack comes back at once: simulated nodes (real TLS, real frames, no work), real node processes and some dozens of real commands dial one
// real head; the head is killed and started again, and all rejoin as nodes do, with growing, jittered pauses (dials). Do users with very different numbers
// of runs get equal shares (Jain's index; 1 is equal), through a real head with 200 runs (users), and in the dispatcher alone (shares)? Everything on loopback.
//
//   cluster_storm build/bin/pragma build/bin/pragma-node [dials|users|shares] [SIMULATED REAL]      default: all, 1000 and 100
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
constexpr int users = 20;
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
  pid_t child = 0;
  std::ifstream("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children") >> child;
  if (child <= 0) child = parent;
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

/// Seconds until it holds, or a negative number when it does not within `most`.
template <class Condition> double seconds_until(const Condition& condition, double most) {
  const auto start = clock_type::now();
  for (; since(start) < most; std::this_thread::sleep_for(std::chrono::milliseconds(50)))
    if (condition()) return since(start);
  return -1;
}
double wait_for(const std::vector<std::unique_ptr<node>>& all, double most) {
  return seconds_until([&] { return std::all_of(all.begin(), all.end(), [](const auto& one) { return one->joined(); }); }, most);
}

link::options user_link(const head& h, const std::string& who) {
  link::options how;
  how.heads = {{"127.0.0.1", static_cast<uint16_t>(h.port)}};
  how.tls = h.folder / "ca" / who;
  how.want = "user";
  return how;
}

/// Node processes as machines have them, but for their Python, which says that it has Torch: they get no work. 100 imports of Torch would be another bench.
class real_nodes {
public:
  real_nodes(const head& h, const std::string& exe, int count) : head_(h), count_(count) {
    const auto python = h.folder / "python";
    std::ofstream(python) << "#!/bin/sh\ncase \"$2\" in *find_spec*) exit 8 ;; esac\necho 3.11.2\necho 1.13.1\n";
    fs::permissions(python, fs::perms::owner_all);
    for (int i = 0; i < count; ++i) {
      process_spec spec;
      spec.argv = {exe, "--join", "127.0.0.1:" + std::to_string(h.port), "--tls", (h.folder / "ca/rack").string(), "--name", "rack.real" + std::to_string(i), "--log-level", "error"};
      spec.env = {{"PRAGMA_HOME", (h.folder / "node").string()}, {"PRAGMA_PYTHON", python.string()}};
      spec.limits.wall_seconds = 900;
      if (auto made = child_process::start(spec)) all_.push_back(std::move(*made));
    }
  }
  ~real_nodes() {
    for (auto& one : all_) one.kill();
  }
  /// As the head sees them.
  bool here() {
    if (static_cast<int>(all_.size()) != count_) return false;
    if (!link_ || !link_->alive()) {
      auto dialled = pragma::link::dial(user_link(head_, "admin"));
      link_ = dialled ? std::move(*dialled) : nullptr;
    }
    const auto status = link_ ? link_->ask_for<cluster_status>("status", nullptr, 30) : expected<cluster_status>(fail(ec::remote_failed, ""));
    return status && std::count_if(status->members.begin(), status->members.end(), [](const auto& m) { return m.node.state == node_state::ready && m.node.facts.name.starts_with("rack.real"); }) == count_;
  }

private:
  const head& head_;
  const int count_;
  std::vector<child_process> all_;
  std::unique_ptr<pragma::link> link_;
};

/// All at once: each takes a moment to leave.
void dismiss(std::vector<std::unique_ptr<node>>& all) {
  for (auto& one : all) one->stop();
  all.clear();
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
  constexpr int nodes = 10, attempts = 4;
  constexpr double job_seconds = 0.2;
  std::vector<std::unique_ptr<node>> all;
  for (int i = 0; i < nodes; ++i) all.push_back(std::make_unique<node>(node_options(h, "rack.w" + std::to_string(i), job_seconds)));
  if (wait_for(all, 60) < 0) return (void)std::printf("the ten nodes did not join\n");
  std::map<std::string, int> owner;
  const auto before = cost_of(h.process->pid());
  const auto start = clock_type::now();
  const auto dial = [&](const std::string& who) { return link::dial(user_link(h, who)); };
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
  std::vector<double> got(users, 0), pauses; // a node's, between a job and the next
  size_t jobs = 0;
  for (const auto& n : all) {
    auto busy_until = clock_type::time_point::max();
    for (const auto& job : n->done()) {
      ++jobs;
      if (job.begun < accepted || job.ended > first_done) continue;
      got[static_cast<size_t>(owner[job.run])] += std::chrono::duration<double>(job.ended - job.begun).count();
      if (job.begun >= busy_until) pauses.push_back(1e3 * std::chrono::duration<double>(job.begun - busy_until).count());
      busy_until = job.ended;
    }
  }
  dismiss(all);
  const auto now = cost_of(h.process->pid());
  std::printf("%zu runs of %d users on a real head, %d nodes: %d finished, %zu jobs in %.1f s; Jain's index of the first %.1f s %.4f; head: %.1f s of CPU, peak %ld MiB\n", owner.size(), users, nodes, states["finished"], jobs, took,
              std::chrono::duration<double>(first_done - accepted).count(), jain(got), now.cpu_seconds - before.cpu_seconds, now.peak_mib);
  std::printf("meanwhile a node that had ended a job began the next after p50 %.2f ms, p99 %.2f ms (%zu times)\n", percentile(pauses, 0.5), percentile(pauses, 0.99), pauses.size());
}

/// 20 users, of whom number u has u runs or so (200 in all), on 100 nodes: what each gets of the nodes' time while all want more.
void shares() {
  constexpr int nodes = 100;
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

/// Whether all were back within 30 s.
bool dials(head& h, const std::string& node_exe, int simulated, int real) {
  commands_at_once(h);
  std::vector<std::unique_ptr<node>> all;
  auto before = cost_of(h.process->pid());
  auto start = clock_type::now();
  for (int i = 0; i < simulated; ++i) all.push_back(std::make_unique<node>(node_options(h, "rack.n" + std::to_string(i), 0)));
  const double first = wait_for(all, 300) < 0 ? -1 : since(start);
  std::vector<double> took;
  for (const auto& one : all) took.push_back(std::chrono::duration<double>(one->joined_at() - start).count());
  auto now = cost_of(h.process->pid());
  std::printf("%d simulated nodes join at once: all in %.1f s, p50 %.2f s, p99 %.2f s; head: %.1f s of CPU, peak %ld MiB\n", simulated, first, percentile(took, 0.5), percentile(took, 0.99), now.cpu_seconds - before.cpu_seconds, now.peak_mib);
  std::fflush(stdout);
  start = clock_type::now();
  real_nodes processes(h, node_exe, real);
  const double second = seconds_until([&] { return processes.here(); }, 300) < 0 ? -1 : since(start);
  std::printf("%d real node processes are started at once beside them: all have looked at their machine and joined after %.1f s\n", real, second);
  std::fflush(stdout);
  before = cost_of(h.process->pid());
  std::this_thread::sleep_for(std::chrono::seconds(10));
  now = cost_of(h.process->pid());
  std::printf("they beat: %.1f%% of a CPU\n", 10 * (now.cpu_seconds - before.cpu_seconds));
  commands_at_once(h);
  h.process->kill();
  const auto killed = clock_type::now();
  if (!h.start()) return false;
  const double listening = since(killed), simulated_back = wait_for(all, 300), real_back = seconds_until([&] { return processes.here(); }, 300);
  const double back = real_back < 0 ? -1 : since(killed);
  now = cost_of(h.process->pid());
  std::printf("head killed and started again: listening after %.1f s, all %d simulated back after %.1f s more, and all %d processes: %.1f s after the kill; %.1f s of CPU, peak %ld MiB\n", listening, simulated, simulated_back, real, back,
              now.cpu_seconds, now.peak_mib);
  std::fflush(stdout);
  dismiss(all);
  return first >= 0 && second >= 0 && simulated_back >= 0 && back >= 0 && back <= 30;
}

} // namespace

int main(int argc, char** argv) {
  const std::string piece = argc > 3 ? argv[3] : "all";
  if (argc < 3 || (piece != "all" && piece != "dials" && piece != "users" && piece != "shares")) {
    std::fprintf(stderr, "usage: cluster_storm build/bin/pragma build/bin/pragma-node [dials|users|shares|all] [SIMULATED REAL]\n");
    return 2;
  }
  const int simulated = argc > 4 ? std::max(1, std::atoi(argv[4])) : 1000, real = argc > 5 ? std::max(0, std::atoi(argv[5])) : 100;
  ::signal(SIGPIPE, SIG_IGN);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  if (piece == "shares") return shares(), 0;
  auto folder = temp_dir::create("pragma-storm-");
  if (!folder || !create_ca(folder->path() / "ca", "storm")) return 1;
  std::vector<std::pair<std::string, role>> certificates{{"head", role::head}, {"rack", role::node}, {"user", role::user}, {"admin", role::admin}};
  for (int u = 0; u < users; ++u) certificates.emplace_back("user" + std::to_string(u), role::user);
  for (const auto& [name, what] : certificates)
    if (!issue_certificate(folder->path() / "ca", name, what)) return 1;
  head h{argv[1], folder->path(), 0, {}};
  if (!h.start()) {
    std::fprintf(stderr, "the head did not start\n");
    return 1;
  }
  bool good = true;
  if (piece != "users") good = dials(h, argv[2], simulated, real);
  if (piece != "dials") users_of_a_head(h);
  h.process->kill();
  if (piece == "all") shares();
  return good ? 0 : 1;
}
