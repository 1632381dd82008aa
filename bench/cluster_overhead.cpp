// What does a job cost over the cluster? Empty jobs to real node processes on this machine through mutual TLS, against the same call in this process:
// round trip of one job at a time, and jobs per second when all nodes are kept busy; memory of an idle node; time from SIGKILL and SIGSTOP of a node to
// the requeue of its work.
//
//   cluster_overhead build/bin/pragma-node [NODES ...]      default 1 4 16 64
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "cluster/gate.hpp"
#include "cluster/local_system.hpp"
#include "cluster/node_bench.hpp"
#include "cluster/placement.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

using namespace pragma;

namespace {

using clock_type = std::chrono::steady_clock;
constexpr int round_trips = 500, jobs_per_node = 200, most_jobs = 4000;

double since(clock_type::time_point start) { return std::chrono::duration<double>(clock_type::now() - start).count(); }

work_order empty_job(const std::string& run) {
  static int number = 0;
  work_order order;
  order.job = "bench/" + std::to_string(++number);
  order.run = run;
  order.kind = "none";
  return order;
}

double percentile(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(p * static_cast<double>(values.size() - 1))];
}

long resident_kib(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  std::string word;
  while (file >> word)
    if (word == "Pss:") {
      long kib = 0;
      file >> kib;
      return kib;
    }
  return 0;
}

class bench {
public:
  bench(const std::string& exe, local_system& system, cluster_actor head, uint16_t port, std::filesystem::path folder)
      : exe_(exe), head_(std::move(head)), port_(port), folder_(std::move(folder)), self_(system.get()) {}

  cluster_status status() {
    cluster_status s;
    self_->request(head_, std::chrono::seconds(10), status_atom::value).receive([&](cluster_status& got) { s = std::move(got); }, [](const caf::error&) {});
    return s;
  }
  size_t present() {
    const auto now = status();
    return static_cast<size_t>(std::count_if(now.members.begin(), now.members.end(), [](const auto& m) { return !m.node.facts.devices.empty(); }));
  }
  bool wait_for(size_t members, double seconds) {
    for (const auto start = clock_type::now(); since(start) < seconds; std::this_thread::sleep_for(std::chrono::milliseconds(50)))
      if (present() == members) return true;
    return false;
  }
  bool grow_to(size_t wanted) {
    while (nodes_.size() < wanted) {
      process_spec spec;
      const auto name = "member.n" + std::to_string(nodes_.size());
      spec.argv = {exe_, "--join", "127.0.0.1:" + std::to_string(port_), "--name", name, "--tls", (folder_ / "member").string(), "--slots", "1"};
      spec.env = {{"PRAGMA_HOME", (folder_ / "home").string()}}; // the first node measures the machine's bandwidth, the others read it
      auto child = child_process::start(spec);
      if (!child) return false;
      nodes_.push_back(std::move(*child));
    }
    return wait_for(wanted, 120);
  }
  std::vector<double> one_at_a_time() {
    std::vector<double> seconds;
    for (int i = 0; i < round_trips; ++i) {
      const auto start = clock_type::now();
      self_->request(head_, std::chrono::seconds(10), submit_atom::value, empty_job("r"), job_needs{}).receive([](const work_answer&) {}, [](const caf::error&) {});
      seconds.push_back(since(start));
    }
    return seconds;
  }
  double all_at_once() {
    const int count = std::min(most_jobs, jobs_per_node * static_cast<int>(nodes_.size()));
    std::vector<caf::response_handle<caf::blocking_actor, caf::detail::type_list<work_answer>, true>> pending;
    const auto start = clock_type::now();
    for (int i = 0; i < count; ++i) pending.push_back(self_->request(head_, std::chrono::seconds(120), submit_atom::value, empty_job("r" + std::to_string(i % 8)), job_needs{}));
    for (auto& p : pending) p.receive([](const work_answer&) {}, [](const caf::error&) {});
    return count / since(start);
  }
  double idle_mib() const {
    double sum = 0;
    for (const auto& n : nodes_) sum += static_cast<double>(resident_kib(n.pid())) / 1024;
    return sum / static_cast<double>(nodes_.size());
  }
  /// Seconds until the head has noticed that the last node is gone.
  double time_to_notice(int signal) {
    const auto members = present();
    const auto start = clock_type::now();
    ::kill(nodes_.back().pid(), signal);
    while (present() == members && since(start) < 60) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const double took = since(start);
    nodes_.back().kill();
    nodes_.pop_back();
    return took;
  }

private:
  std::string exe_;
  cluster_actor head_;
  uint16_t port_;
  std::filesystem::path folder_;
  caf::scoped_actor self_;
  std::vector<child_process> nodes_;
};

int fail_with(const error& e) {
  std::fprintf(stderr, "%s\n", render(e).c_str());
  return 1;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: cluster_overhead build/bin/pragma-node [NODES ...]\n");
    return 2;
  }
  std::vector<size_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(static_cast<size_t>(std::max(1, std::atoi(argv[i]))));
  if (sizes.empty()) sizes = {1, 4, 16, 64};
  auto made_folder = temp_dir::create("pragma-overhead-");
  if (!made_folder) return fail_with(made_folder.error());
  std::optional<temp_dir> folder(std::move(*made_folder));
  if (auto made = create_ca(folder->path() / "ca", "bench"); !made) return fail_with(made.error());
  for (const auto& [name, what] : {std::pair{"head", role::head}, {"member", role::node}})
    if (auto made = issue_certificate(folder->path() / "ca", name, what); !made) return fail_with(made.error());
  std::filesystem::rename(folder->path() / "ca" / "member", folder->path() / "member");
  local_system system(4);
  const auto head = spawn_placement(system.get(), {});
  const auto out = std::make_shared<std::unique_ptr<door>>();
  const auto entrance = spawn_gate(system.get(), out, head, scheduler_actor{});
  door::options listening;
  listening.listen = {"127.0.0.1", 0};
  listening.tls = folder->path() / "ca" / "head";
  listening.on_event = [entrance](door_event event) { caf::anon_send(entrance, gate_event{std::make_shared<door_event>(std::move(event))}); };
  auto opened = door::open(std::move(listening));
  if (!opened) return fail_with(opened.error());
  *out = std::move(*opened);
  const auto port = (*out)->port();

  node_bench here("here", folder->path() / "here");
  std::vector<double> local;
  for (int i = 0; i < round_trips; ++i) {
    const auto start = clock_type::now();
    (void)here.perform(empty_job("r"), "cpu");
    local.push_back(since(start));
  }
  std::printf("in this process: p50 %.1f us\n", 1e6 * percentile(local, 0.5));
  std::printf("%6s %14s %14s %10s %18s\n", "nodes", "job p50 ms", "job p99 ms", "jobs/s", "idle node MiB");
  {
    bench b(argv[1], system, head, port, folder->path());
    for (const size_t n : sizes) {
      if (!b.grow_to(n)) {
        std::fprintf(stderr, "%zu nodes did not join in time\n", n);
        return 1;
      }
      const double idle = b.idle_mib();
      const auto trips = b.one_at_a_time();
      std::printf("%6zu %14.3f %14.3f %10.0f %18.1f\n", n, 1e3 * percentile(trips, 0.5), 1e3 * percentile(trips, 0.99), b.all_at_once(), idle);
      std::fflush(stdout);
    }
    b.grow_to(std::max<size_t>(3, sizes.back()));
    std::printf("SIGKILL to lost: %.2f s\n", b.time_to_notice(SIGKILL));
    std::printf("SIGSTOP to lost: %.2f s\n", b.time_to_notice(SIGSTOP));
  }
  folder.reset();
  leave_process(0);
}
