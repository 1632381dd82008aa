// Does the head's placement scale? Simulated nodes and runs drive the real dispatcher, with no network and no real time: CPU time a job, and how
// long jobs wait, at growing numbers of nodes with the load per node held constant.
//
//   cluster_simulation [NODES ...]        default 10 100 1000
//
// A node has one CPU device and two slots; a run has one candidate at a time: a verification (log-normal, median 3 s, sigma 0.8) and a measurement
// (median 6 s, sigma 0.4), in turns; 1.5 runs a node, so that there is always somebody waiting. One node in a hundred is killed every simulated minute.
#include "cluster/dispatcher.hpp"

#include <algorithm>
#include <cmath>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <queue>
#include <random>

using namespace pragma;

namespace {

constexpr double simulated_seconds = 600, tick_pause = 1, kill_pause = 60, away = 10;

double cpu_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct event {
  double at;
  enum kind { answer, tick, kill, rejoin } what;
  assignment who;
  std::string node;
  bool operator>(const event& other) const { return at > other.at; }
};

class simulation {
public:
  explicit simulation(int nodes) : nodes_(nodes) {}

  void run() {
    for (int i = 0; i < nodes_; ++i) {
      d_.joined(facts(i), 0);
      schedule({kill_pause + random() * kill_pause, event::kill, {}, "node" + std::to_string(i)});
    }
    for (int r = 0; r < nodes_ * 3 / 2; ++r) submit("run" + std::to_string(r), 0);
    schedule({tick_pause, event::tick, {}, {}});
    const double start = cpu_seconds();
    carry_out(0);
    while (!events_.empty() && events_.top().at < simulated_seconds) {
      const auto e = events_.top();
      events_.pop();
      if (e.what == event::answer) {
        const double before = cpu_seconds();
        const bool counts = d_.answered(e.who.job, e.who.ticket, e.at);
        spent_ += cpu_seconds() - before;
        if (counts) {
          ++done_;
          submit(e.who.job.substr(0, e.who.job.find('/')), e.at);
        }
      } else if (e.what == event::tick) {
        for (int i = 0; i < nodes_; ++i) d_.heard_of("node" + std::to_string(i), e.at);
        d_.tick(e.at);
        schedule({e.at + tick_pause, event::tick, {}, {}});
      } else if (e.what == event::kill) {
        if (random() < 0.01) {
          d_.lost(e.node, e.at);
          schedule({e.at + away, event::rejoin, {}, e.node});
        }
        schedule({e.at + kill_pause, event::kill, {}, e.node});
      } else {
        d_.joined(facts(std::atoi(e.node.c_str() + 4)), e.at);
      }
      carry_out(e.at);
    }
    const double cpu = cpu_seconds() - start;
    std::printf("%6d %9lld %12.1f %14.1f %12.2f %10lld %11lld\n", nodes_, static_cast<long long>(done_), 1e6 * spent_ / static_cast<double>(std::max<int64_t>(1, done_)),
                1e6 * cpu / static_cast<double>(std::max<int64_t>(1, done_)), d_.assigned() ? d_.waited() / static_cast<double>(d_.assigned()) : 0.0,
                static_cast<long long>(d_.requeued()), static_cast<long long>(d_.duplicates()));
  }

private:
  double random() { return std::uniform_real_distribution<double>()(random_); }
  static node_facts facts(int i) { return {"node" + std::to_string(i), "0", 2, {{"cpu", "cpu", "x", "x", 0, {}, {}}}}; }
  void schedule(event e) { events_.push(std::move(e)); }

  void submit(const std::string& run, double now) {
    job j;
    j.run = run;
    j.id = run + "/" + std::to_string(++jobs_);
    j.needs.exclusive = (turns_[run]++ % 2) == 1;
    const double before = cpu_seconds();
    d_.submit(j, now);
    spent_ += cpu_seconds() - before;
  }

  void carry_out(double now) {
    const double before = cpu_seconds();
    const auto orders = d_.take_orders(now);
    spent_ += cpu_seconds() - before;
    for (const auto& a : orders.assign) {
      const bool measures = (std::atoi(a.job.c_str() + a.job.find('/') + 1) % 2) == 1;
      const double seconds = std::lognormal_distribution<double>(std::log(measures ? 6.0 : 3.0), measures ? 0.4 : 0.8)(random_);
      schedule({now + seconds, event::answer, a, {}});
    }
    for (const auto& gone : orders.abandon) submit(gone.job.substr(0, gone.job.find('/')), now);
  }

  int nodes_;
  dispatcher d_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::map<std::string, int> turns_;
  std::mt19937 random_{1};
  int64_t jobs_ = 0, done_ = 0;
  double spent_ = 0;
};

} // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::max(1, std::atoi(argv[i])));
  if (sizes.empty()) sizes = {10, 100, 1000};
  std::printf("%6s %9s %12s %14s %12s %10s %11s\n", "nodes", "jobs", "us/job head", "us/job all", "mean wait s", "requeued", "duplicates");
  for (const int n : sizes) simulation(n).run();
  return 0;
}
