#include "cluster/node.hpp"

#include "base/text.hpp"
#include "base/version.hpp"
#include "cluster/network.hpp"
#include "cluster/node_bench.hpp"
#include "profilers/accelerators.hpp"
#include "profilers/hardware.hpp"

#include <deque>
#include <random>
#include <thread>

#include <unistd.h>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;

constexpr double dial_seconds = 5;
constexpr auto answer_time = std::chrono::seconds(3);     ///< for a heartbeat's answer; then the link counts as dead
constexpr auto join_time = std::chrono::seconds(3);
constexpr auto beat_pause = std::chrono::seconds(1);
constexpr double first_pause = 0.2, longest_pause = 15;   ///< seconds between dials
constexpr double cancel_seconds = 30;                     ///< for work to end after a cancel; hung children are killed long before

// -- the agents ----------------------------------------------------------------------------------------------------

using worker_actor = caf::typed_actor<caf::replies_to<do_atom, work_order, std::string>::with<work_answer>>;
struct worker_state {
  static inline const char* name = "worker";
};
/// Detached: it blocks.
worker_actor::behavior_type worker(worker_actor::stateful_pointer<worker_state>, std::shared_ptr<node_bench> bench) {
  return {[bench](do_atom, const work_order& order, const std::string& device) { return bench->perform(order, device); }};
}

/// What main loop and agent both see.
struct node_load {
  std::atomic<int> in_flight = 0;
  std::atomic<int64_t> done = 0;
};

struct agent_state {
  static inline const char* name = "node";
  using pointer = node_actor::stateful_pointer<agent_state>;
  struct waiting {
    work_order order;
    std::string device;
  };

  pointer self = nullptr;
  std::string node;
  cluster_actor cluster;
  std::shared_ptr<node_bench> bench;
  std::shared_ptr<node_load> load;
  std::vector<worker_actor> idle;
  std::deque<waiting> queue;
  int workers = 0, most = 1, crashes = 0;

  ~agent_state() {
    for (const auto& who : idle) caf::anon_send_exit(who, caf::exit_reason::user_shutdown); // they have threads of their own
  }

  void next() {
    while (!queue.empty()) {
      if (idle.empty() && workers >= most) return;
      if (idle.empty()) {
        idle.push_back(self->spawn<caf::detached>(worker, bench));
        ++workers;
      }
      auto who = std::move(idle.back());
      idle.pop_back();
      auto what = std::move(queue.front());
      queue.pop_front();
      self->request(who, caf::infinite, do_atom::value, what.order, what.device)
          .then([this, who](work_answer& answer) { finished(who, std::move(answer)); },
                [this, what](const caf::error& e) { crashed(what, e); });
    }
  }

  void finished(const worker_actor& who, work_answer answer) {
    crashes = 0;
    idle.push_back(who);
    tell(std::move(answer));
    next();
  }

  /// The worker is gone, the process lives on: another takes its place, after a pause that grows.
  void crashed(const waiting& what, const caf::error& e) {
    --workers;
    work_answer answer;
    answer.job = what.order.job;
    answer.ticket = what.order.ticket;
    answer.node = node;
    answer.device = what.device;
    answer.failure = failure::of({ec::internal, "a worker died: " + self->system().render(e), ""});
    answer.node_at_fault = true;
    tell(std::move(answer));
    const auto pause = std::chrono::milliseconds(100) * (1 << std::min(crashes++, 6));
    self->delayed_send(self, pause, forget_atom::value, std::string()); // wakes next()
  }

  void tell(work_answer answer) {
    --load->in_flight;
    ++load->done;
    self->send(cluster, done_atom::value, std::move(answer));
  }
};

node_actor::behavior_type node_agent(agent_state::pointer self, std::string name, cluster_actor cluster, std::shared_ptr<node_bench> bench,
                                     std::shared_ptr<node_load> load, int most) {
  auto& state = self->state;
  state.self = self;
  state.node = std::move(name);
  state.cluster = std::move(cluster);
  state.bench = std::move(bench);
  state.load = std::move(load);
  state.most = most;
  return {
      [self](do_atom, work_order& order, std::string& device) {
        ++self->state.load->in_flight;
        self->state.queue.push_back({std::move(order), std::move(device)});
        self->state.next();
      },
      [self](forget_atom, const std::string& run) {
        if (!run.empty()) self->state.bench->forget(run);
        self->state.next();
      },
  };
}

void add_bandwidth(node_facts& facts, std::vector<std::string>& missing, const std::function<void(const std::string&)>& say);

// -- the life of a node --------------------------------------------------------------------------------------------

class member {
public:
  member(const node_options& options, const std::atomic<bool>& stop, const std::function<void(const std::string&)>& say)
      : options_(options), stop_(stop), say_(say) {}

  expected<void> serve() {
    auto net = network::start({options_.tls, 2});
    if (!net) return fail(net.error());
    net_ = std::move(*net);
    hello_.certificate_days = net_->certificate_days();
    hello_.facts = probe_this_machine(options_, hello_.missing);
    if (hello_.facts.devices.empty())
      return fail(ec::unsupported, "this machine has nothing to offer: " + join(hello_.missing, "; "), "`pragma doctor` says more");
    add_bandwidth(hello_.facts, hello_.missing, say_);
    bench_ = std::make_shared<node_bench>(hello_.facts.name, options_.tasks, &cancel_);
    double pause = first_pause;
    std::string told;
    while (!stop_) {
      auto ended = stay();
      if (stop_) break;
      if (!ended && (ended.error().code == ec::invalid_argument || ended.error().code == ec::unsupported)) return ended;
      if (joined_) {
        joined_ = false;
        pause = first_pause;
        told.clear();
      }
      const auto why = ended ? std::string("the link is gone") : ended.error().message;
      if (why != told) say_(why + "; trying again until it works");
      told = why;
      wait(pause * jitter());
      pause = std::min(longest_pause, pause * 2);
    }
    return {};
  }

private:
  double jitter() { return std::uniform_real_distribution<double>(0.5, 1.5)(random_); }
  void wait(double seconds) const {
    const auto end = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds));
    while (!stop_ && clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }

  /// One membership, from dialling to the end of the link (or, after `stop`, of the work).
  expected<void> stay() {
    auto cluster = net_->dial(options_.head, dial_seconds);
    if (!cluster) return fail(cluster.error());
    auto& system = net_->system();
    caf::scoped_actor self{system};
    cancel_ = false;
    const auto load = std::make_shared<node_load>();
    const auto agent = system.spawn(node_agent, hello_.facts.name, *cluster, bench_, load,
                                    hello_.facts.slots + static_cast<int>(hello_.facts.devices.size())); // a measurement on a device takes no slot
    auto ended = speak(self, *cluster, agent, *load);
    // What is under way is worth nothing to anybody now: the head gives it to others.
    cancel_ = true;
    for (const auto end = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(cancel_seconds));
         load->in_flight > 0 && clock::now() < end;)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
    if (load->in_flight > 0) return fail(ec::unsupported, "work could not be ended within " + format_number(cancel_seconds, 3) + " s", "start the node again");
    return ended;
  }

  expected<void> speak(caf::scoped_actor& self, const cluster_actor& cluster, const node_actor& agent, const node_load& load) {
    expected<void> trouble;
    node_welcome welcome;
    self->request(cluster, join_time, join_atom::value, hello_, agent)
        .receive([&](const node_welcome& w) { welcome = w; },
                 [&](const caf::error&) { trouble = fail(ec::timeout, options_.head.text() + " did not answer our greeting"); });
    if (!trouble) return trouble;
    if (!welcome.refused.empty()) {
      const bool may_pass = welcome.refused.find("already") != std::string::npos; // our own last self, perhaps
      return fail(may_pass ? ec::locked : ec::invalid_argument, "the head refuses this node: " + welcome.refused);
    }
    joined_ = true;
    say_("joined " + options_.head.text() + " as " + hello_.facts.name);
    heartbeat beat{hello_.facts.name, 0};
    bool draining = false;
    for (;;) {
      const auto start = clock::now();
      bool known = false;
      self->request(cluster, answer_time, beat_atom::value, beat)
          .receive([&](bool k) { known = k; }, [&](const caf::error&) { trouble = fail(ec::timeout, "the head is silent"); });
      if (!trouble) return trouble;
      if (!known) return fail(ec::remote_failed, "the head does not know this node any more");
      beat.round_trip_ms = std::chrono::duration<double, std::milli>(clock::now() - start).count();
      if (stop_ && !draining) {
        draining = true;
        say_(load.in_flight > 0 ? "finishing " + std::to_string(load.in_flight) + " jobs, then leaving" : "leaving");
        self->send(cluster, drain_atom::value, hello_.facts.name);
      }
      if (draining && load.in_flight == 0) {
        self->send(cluster, leave_atom::value, hello_.facts.name);
        std::this_thread::sleep_for(std::chrono::milliseconds(200)); // so that it leaves before the process does
        return {};
      }
      const auto next = start + beat_pause;
      while (clock::now() < next && (draining ? load.in_flight > 0 : !stop_)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  const node_options& options_;
  const std::atomic<bool>& stop_;
  const std::function<void(const std::string&)>& say_;
  std::unique_ptr<network> net_;
  std::shared_ptr<node_bench> bench_;
  node_hello hello_;
  std::atomic<bool> cancel_ = false;
  bool joined_ = false;
  std::mt19937 random_{std::random_device{}()};
};

std::string host_name() {
  char text[256] = "";
  return ::gethostname(text, sizeof text - 1) == 0 && *text ? text : "node";
}

std::vector<std::string> details_of(const cpu_facts& cpu) {
  std::vector<std::string> details{std::to_string(cpu.cores) + " cores, " + std::to_string(cpu.logical) + " threads", std::to_string(cpu.simd_bits) + "-bit SIMD"};
  for (const auto& [name, bytes] : {std::pair{"L1d", cpu.l1d_bytes}, {"L2", cpu.l2_bytes}, {"L3", cpu.l3_bytes}})
    if (bytes > 0) details.push_back(std::string(name) + " " + format_bytes(static_cast<double>(bytes)));
  return details;
}

/// Measured once per machine and then read from its cache, some 3 s; a node whose bandwidth cannot be measured says so and serves.
void add_bandwidth(node_facts& facts, std::vector<std::string>& missing, const std::function<void(const std::string&)>& say) {
  for (auto& device : facts.devices) {
    if (device.backend != "cpu") continue;
    const auto limits = machine_roofline(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), false, [&](int done, int, const std::string&) {
      if (done == 0) say("measuring this machine's bandwidth and peak, once (some 3 s)");
    });
    if (!limits) missing.push_back("bandwidth: " + limits.error().message);
    else if (!limits->read_gbs.empty())
      device.details.push_back("memory " + format_number(limits->read_gbs.back(), 1) + " GB/s and " + format_number(limits->peak_gflops, 0) + " GFLOP/s (float32), measured");
  }
}

} // namespace

node_facts probe_this_machine(const node_options& options, std::vector<std::string>& missing) {
  node_facts facts;
  facts.name = options.name;
  if (facts.name.empty() && options.tls)
    if (auto certificate = check_tls_files(tls_files::in(*options.tls))) facts.name = certificate->name;
  if (facts.name.empty()) facts.name = host_name();
  facts.version = pragma_version;
  facts.slots = options.slots > 0 ? options.slots : std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / 2);
  device_facts cpu;
  cpu.id = cpu.backend = "cpu";
  if (auto known = read_cpu_facts()) {
    cpu.model = known->model;
    cpu.arch = known->model + ", " + std::to_string(known->simd_bits) + " bit"; // what -march=native depends on
    cpu.memory_bytes = static_cast<uint64_t>(std::max<int64_t>(0, known->memory_bytes));
    cpu.details = details_of(*known);
  }
  bool torch = false, compiler = false;
  for (const auto& tool : profiler_tools()) {
    if (tool.found) cpu.tools.push_back(tool.name);
    else missing.push_back(tool.name + ": " + (tool.problem.empty() ? "not installed" : tool.problem));
    torch = torch || (tool.found && tool.name == "python with torch");
    compiler = compiler || (tool.found && (tool.name == "gcc" || tool.name == "clang"));
  }
  if (torch && compiler) facts.devices.push_back(std::move(cpu));
  else missing.push_back("cpu: needs a Python with Torch and gcc or clang");
  for (const auto& b : backends())
    if (b.on_device() && why_absent(b).empty()) offer(probe_accelerators(b), facts, missing);
  return facts;
}

void offer(const accelerator_status& found, node_facts& facts, std::vector<std::string>& missing) {
  if (!found.problem.empty()) {
    missing.push_back(found.backend + ": " + found.problem);
    return;
  }
  if (found.triton.empty()) {
    missing.push_back(found.backend + ": " + found.executable + " has no Triton, in which candidates for such devices are written");
    return;
  }
  std::vector<std::string> tools;
  for (const auto& tool : found.profilers) {
    if (tool.found && tool.problem.empty()) tools.push_back(tool.name);
    else missing.push_back(tool.name + ": " + tool.problem);
  }
  for (const auto& one : found.devices) {
    device_facts device;
    device.id = one.where.text();
    device.backend = found.backend;
    device.model = one.limits.cpu;
    device.arch = one.limits.arch;
    device.memory_bytes = static_cast<uint64_t>(std::max<int64_t>(0, one.limits.memory_bytes));
    device.tools = tools;
    device.details = facts_of(one);
    device.details.push_back("torch " + found.torch + ", triton " + found.triton);
    facts.devices.push_back(std::move(device));
  }
}

expected<void> serve_node(const node_options& options, const std::atomic<bool>& stop, const std::function<void(const std::string&)>& say) {
  return member(options, stop, say).serve();
}

} // namespace pragma
