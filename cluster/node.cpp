#include "cluster/node.hpp"

#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "cluster/link.hpp"
#include "cluster/local_system.hpp"
#include "cluster/log.hpp"
#include "cluster/node_bench.hpp"
#include "devices/device_lease.hpp"
#include "profilers/accelerators.hpp"
#include "profilers/hardware.hpp"

#include <algorithm>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include <unistd.h>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;

constexpr double dial_seconds = 5, dial_one_of_two = 2;
constexpr double standby_pause = 0.5;                     ///< seconds at most, while a head stands by: it may serve soon
constexpr double answer_seconds = 3;                      ///< for a heartbeat's answer; then the link counts as dead
constexpr double join_seconds = 10;
constexpr auto beat_pause = std::chrono::seconds(1);
constexpr auto look_pause = std::chrono::milliseconds(100); ///< between looks at the link and at whether to leave
constexpr double first_pause = 0.2, longest_pause = 15;   ///< seconds between dials
constexpr double cancel_seconds = 30;                     ///< for work to end after a cancel; hung children are killed long before

// -- the agents ----------------------------------------------------------------------------------------------------

using worker_actor = caf::typed_actor<caf::replies_to<do_atom, work_order, std::string>::with<work_answer>>;
struct worker_state {
  static inline const char* name = "worker";
};
/// Detached: it blocks.
worker_actor::behavior_type worker(worker_actor::stateful_pointer<worker_state>, std::shared_ptr<order_bench> bench) {
  return {[bench](do_atom, const work_order& order, const std::string& device) { return bench->perform(order, device); }};
}

/// What main loop and agent both see.
class node_load {
public:
  void took(uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    tickets_.push_back(ticket);
  }
  void ended(uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    if (const auto at = std::find(tickets_.begin(), tickets_.end(), ticket); at != tickets_.end()) tickets_.erase(at);
  }
  std::vector<uint64_t> tickets() const {
    const std::lock_guard lock(mutex_);
    return tickets_;
  }
  size_t in_flight() const { return tickets().size(); }

private:
  mutable std::mutex mutex_;
  std::vector<uint64_t> tickets_;
};

/// The head, for as long as the link to it lives.
using shared_link = std::shared_ptr<std::unique_ptr<link>>;

struct agent_state {
  static inline const char* name = "node";
  using pointer = node_actor::stateful_pointer<agent_state>;
  struct waiting {
    work_order order;
    std::string device;
  };

  pointer self = nullptr;
  std::string node;
  shared_link head;
  std::shared_ptr<order_bench> bench;
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

  /// Told first: a heartbeat between the two must not say that it is lost.
  void tell(work_answer answer) {
    if (*head) (*head)->tell("done", answer);
    load->ended(answer.ticket);
    log_event(log_level::debug, "job done", {{"job", answer.job}, {"device", answer.device}, {"failed", answer.failure.happened()}});
  }
};

node_actor::behavior_type node_agent(agent_state::pointer self, std::string name, shared_link head, std::shared_ptr<order_bench> bench, std::shared_ptr<node_load> load,
                                     int most) {
  auto& state = self->state;
  state.self = self;
  state.node = std::move(name);
  state.head = std::move(head);
  state.bench = std::move(bench);
  state.load = std::move(load);
  state.most = most;
  return {
      [self](do_atom, work_order& order, std::string& device) {
        self->state.queue.push_back({std::move(order), std::move(device)});
        self->state.next();
      },
      [self](forget_atom, const std::string& run) {
        if (!run.empty()) self->state.bench->forget(run);
        self->state.next();
      },
  };
}

// -- the life of a node --------------------------------------------------------------------------------------------

class member {
public:
  member(const node_options& options, const std::atomic<bool>& stop) : options_(options), stop_(stop) {}

  expected<void> serve() {
    system_ = options_.system ? options_.system : std::make_shared<local_system>(2);
    hello_.facts = options_.facts ? *options_.facts : probe_this_machine(options_, hello_.missing);
    if (hello_.facts.devices.empty())
      return fail(ec::unsupported, "this machine has nothing to offer: " + join(hello_.missing, "; "), "`pragma doctor` says more");
    bench_ = options_.bench ? options_.bench : std::make_shared<node_bench>(hello_.facts.name, options_.tasks);
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
      if (why != told) log_event(log_level::warn, why + "; trying again until it works");
      told = why;
      if (!ended && ended.error().code == ec::locked) pause = std::min(pause, standby_pause);
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
    const auto head = std::make_shared<std::unique_ptr<link>>();
    auto& system = system_->get();
    const auto load = std::make_shared<node_load>();
    const auto agent = system.spawn(node_agent, hello_.facts.name, head, bench_, load,
                                    hello_.facts.slots + static_cast<int>(hello_.facts.devices.size())); // a measurement on a device takes no slot
    link::options dialling;
    dialling.heads = options_.heads;
    dialling.first = at_;
    dialling.tls = options_.tls;
    dialling.want = "node";
    dialling.node = hello_.facts.name;
    dialling.memory = memory_;
    dialling.seconds = options_.heads.size() > 1 ? dial_one_of_two : dial_seconds;
    dialling.on_frame = [agent, load, this](frame f) { ordered(agent, *load, f); };
    auto dialled = link::dial(dialling);
    if (!dialled) {
      caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
      return fail(dialled.error());
    }
    at_ = (*dialled)->number() + 1; // should this one be lost, the other first
    bench_->begin();
    *head = std::move(*dialled);
    auto ended = speak(**head, *load);
    if (joined_ && options_.on_joined) options_.on_joined(false);
    // What is under way is worth nothing to anybody now: the head gives it to others.
    bench_->cancel();
    for (const auto end = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(cancel_seconds));
         load->in_flight() > 0 && clock::now() < end;)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
    if (load->in_flight() > 0) return fail(ec::unsupported, "work could not be ended within " + format_number(cancel_seconds, 3) + " s", "start the node again");
    return ended;
  }

  /// In the link's thread.
  static void ordered(const node_actor& agent, node_load& load, frame& f) {
    const auto word = [&](const char* key) { return f.body.is_object() && f.body.contains(key) && f.body[key].is_string() ? f.body[key].get<std::string>() : std::string(); };
    if (f.kind == "forget") return caf::anon_send(agent, forget_atom::value, word("run"));
    if (f.kind != "do" || !f.body.is_object() || !f.body.contains("order")) return;
    auto order = from_json_value<work_order>(f.body["order"], "an order");
    if (!order) return log_event(log_level::warn, "an order cannot be read", {{"reason", order.error().message}});
    load.took(order->ticket);
    caf::anon_send(agent, do_atom::value, std::move(*order), word("device"));
  }

  expected<void> speak(link& head, const node_load& load) {
    const auto welcome = head.ask_for<node_welcome>("join", hello_, join_seconds);
    if (!welcome) return fail(ec::timeout, head.head().text() + ": " + welcome.error().message);
    if (!welcome->refused.empty()) return fail(welcome->for_now ? ec::locked : ec::invalid_argument, "the head refuses this node: " + welcome->refused);
    joined_ = true;
    if (options_.on_joined) options_.on_joined(true);
    log_event(log_level::info, "joined " + head.head().text() + " as " + hello_.facts.name, {{"certificate_days", head.certificate_days()}});
    heartbeat beat{hello_.facts.name, 0, {}};
    bool draining = false;
    for (;;) {
      const auto start = clock::now();
      beat.tickets = load.tickets();
      const auto known = head.ask_for<bool>("beat", beat, answer_seconds);
      if (!known) return fail(ec::timeout, known.error().code == ec::timeout ? "the head is silent" : known.error().message);
      if (!*known) return fail(ec::remote_failed, "the head does not know this node any more");
      beat.round_trip_ms = std::chrono::duration<double, std::milli>(clock::now() - start).count();
      if (stop_ && !draining) {
        draining = true;
        log_event(log_level::info, load.in_flight() > 0 ? "finishing " + std::to_string(load.in_flight()) + " jobs, then leaving" : "leaving");
        head.tell("drain", nullptr);
      }
      if (draining && load.in_flight() == 0) {
        head.tell("leave", nullptr);
        (void)head.ask_for<bool>("beat", beat, 1); // answered after "leave" was read: a link that closes earlier may take with it what is on the way
        return {};
      }
      const auto next = start + beat_pause;
      while (clock::now() < next && head.alive() && (draining ? load.in_flight() > 0 : !stop_)) std::this_thread::sleep_for(look_pause);
    }
  }

  const node_options& options_;
  const std::atomic<bool>& stop_;
  std::shared_ptr<local_system> system_;
  std::shared_ptr<order_bench> bench_;
  node_hello hello_;
  size_t at_ = 0;                         ///< of the heads: the one to dial first
  std::shared_ptr<witness> memory_ = std::make_shared<witness>(); ///< of heads
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

} // namespace

node_facts probe_this_machine(const node_options& options, std::vector<std::string>& missing) {
  node_facts facts;
  facts.name = options.name;
  if (facts.name.empty() && options.tls)
    if (auto certificate = check_tls_files(tls_files::in(*options.tls))) facts.name = certificate->name;
  if (facts.name.empty()) facts.name = host_name();
  facts.version = pragma_version;
  facts.machine = machine_identity();
  facts.slots = options.slots > 0 ? options.slots : std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / 2);
  device_facts cpu;
  cpu.id = cpu.backend = "cpu";
  if (auto known = read_cpu_facts()) {
    cpu.model = known->model;
    cpu.arch = known->model + ", " + std::to_string(known->simd_bits) + " bit"; // what -march=native depends on
    cpu.memory_bytes = static_cast<uint64_t>(std::max<int64_t>(0, known->memory_bytes));
    cpu.details = details_of(*known);
    facts.simd_bits = known->simd_bits;
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
    device.hardware = lease_file(one.where).filename().string();
    device.details.push_back("torch " + found.torch + ", triton " + found.triton);
    facts.devices.push_back(std::move(device));
  }
}

std::string machine_identity() {
  // machine-id differs between the containers of a host, and is the same on machines that were copied; a boot is one kernel's.
  const auto boot = read_file("/proc/sys/kernel/random/boot_id");
  return boot ? short_hash(trim(*boot)) : std::string();
}

expected<void> serve_node(const node_options& options, const std::atomic<bool>& stop) { return member(options, stop).serve(); }

} // namespace pragma
