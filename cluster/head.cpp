#include "cluster/head.hpp"

#include "actors/store.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "cluster/scheduler.hpp"
#include "cluster/gate.hpp"
#include "cluster/local_system.hpp"
#include "cluster/log.hpp"
#include "cluster/metrics.hpp"
#include "cluster/placement.hpp"
#include "cluster/service.hpp"
#include "cluster/standby.hpp"

#include <algorithm>
#include <thread>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;

constexpr size_t scheduler_threads = 4;
constexpr auto look_time = std::chrono::milliseconds(50);
constexpr double metrics_seconds = 1, runs_seconds = 10; ///< between looks at the agents, and at the runs
constexpr double agent_seconds = 30;  ///< an agent that does not answer for so long is as good as gone
constexpr double lock_seconds = 5;      ///< for an earlier head of this folder to be gone altogether
constexpr auto record_time = std::chrono::milliseconds(500); ///< for the last answers to be recorded

expected<run_store> open_store(const std::filesystem::path& folder, const std::atomic<bool>& stop) {
  const auto end = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(lock_seconds));
  for (;;) {
    auto store = open_runs(folder, run_store::mode::read_write);
    if (store || store.error().code != ec::locked || stop || clock::now() > end) return store;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

class serving {
public:
  serving(const head_options& options, const std::atomic<bool>& stop) : options_(options), stop_(stop) {}

  expected<head_end> run() {
    if (options_.metrics) {
      auto opened = metrics_server::open(*options_.metrics);
      if (!opened) return fail(opened.error());
      metrics_ = std::move(*opened);
    }
    if (auto turn = wait_for_turn(); !turn) return fail(turn.error());
    if (stop_) return head_end::stopped;
    if (auto ready = begin(); !ready) return fail(ready.error());
    auto ended = watch();
    if (ended && *ended == head_end::stopped) checkpoint();
    end();
    return ended;
  }

private:
  /// One of two heads follows the other until that is gone. Without another there is nothing to wait for.
  expected<void> wait_for_turn() {
    if (!options_.peer) {
      auto epoch = epoch_without_pair(options_.pair);
      if (!epoch) return fail(epoch.error());
      pair_state_.epoch = *epoch;
      return {};
    }
    if (options_.inherited < 0) {
      auto socket = listen_on(options_.listen);
      if (!socket) return fail(socket.error());
      listening_ = std::move(*socket);
      options_.inherited = listening_.fd;
    }
    standby_options waiting;
    waiting.listen = options_.listen;
    waiting.peer = *options_.peer;
    waiting.listening = options_.inherited;
    waiting.tls = options_.tls;
    waiting.runs = options_.runs;
    waiting.state = options_.pair;
    waiting.log = door_lines();
    waiting.alive = [this, told = false]() mutable {
      if (!std::exchange(told, true)) tell_ready(port_of(options_.inherited));
      if (metrics_) metrics_->stands_by();
      tell_service_manager("WATCHDOG=1");
    };
    auto turn = stand_by(waiting, stop_);
    if (!turn) return fail(turn.error());
    if (*turn) pair_state_ = **turn;
    return {};
  }

  expected<void> begin() {
    std::error_code problem;
    const auto transcripts = options_.tasks.parent_path() / "transcripts";
    for (const auto& folder : {options_.runs, options_.tasks, transcripts}) {
      std::filesystem::create_directories(folder, problem);
      if (problem) return fail(ec::io_error, "cannot make " + folder.string() + ": " + problem.message(), "choose a folder that can be written with --data DIR");
    }
    auto limits = read_quotas(options_.quotas);
    if (!limits) return fail(limits.error());
    auto store = open_store(options_.runs, stop_);
    if (!store) return fail(store.error());
    scheduler_options scheduler;
    scheduler.store = std::make_shared<run_store>(std::move(*store));
    if (options_.peer) {
      pair_ = std::make_shared<replica>(pair_state_, options_.pair, scheduler.store, [] { return std::chrono::duration<double>(clock::now().time_since_epoch()).count(); });
      scheduler.store->follow(pair_);
    }
    scheduler.tasks = std::filesystem::absolute(options_.tasks);
    scheduler.transcripts = std::filesystem::absolute(transcripts);
    scheduler.cancel = &cancel_;
    scheduler.limits = *limits;
    users_ = spawn_scheduler(system_.get(), std::move(scheduler), cluster_);
    placement_options placing;
    placing.limits = options_.limits;
    placing.limits.devices_of_owner = limits->devices_per_user;
    placing.listen = options_.listen.text();
    placing.certificate_days = [out = door_] { return *out ? (*out)->certificate_days() : -1; };
    placing.more = [pair = pair_, own = pair_state_.epoch](cluster_status& s) {
      s.epoch = pair ? pair->state().epoch : own;
      if (pair) s.standby = pair->standby();
    };
    *cluster_ = spawn_placement(system_.get(), placing);
    gate_ = spawn_gate(system_.get(), door_, *cluster_, users_, pair_);
    // Who asks for a run's news finds it at work: first the runs of before, then the door.
    self_->request(users_, std::chrono::minutes(5), recover_atom::value)
        .receive([](uint64_t runs) { if (runs > 0) log_event(log_level::info, "going on with " + std::to_string(runs) + " runs"); },
                 [&](const caf::error& e) { log_event(log_level::error, "the runs of before are not gone on with", {{"reason", system_.get().render(e)}}); });
    return open_door();
  }

  expected<void> open_door() {
    door::options o;
    o.listen = options_.listen;
    o.tls = options_.tls;
    o.inherited = options_.inherited;
    o.on_event = [gate = gate_](door_event event) { caf::anon_send(gate, gate_event{std::make_shared<door_event>(std::move(event))}); };
    o.epoch = [this] { return epoch(); };
    o.turn_away = [this](const greeting& g, const identity& who, greeting& answer) {
      if (!pair_ || who.what == role::head || g.epoch <= epoch()) return;
      newer_ = true; // the other head has taken over, and this one did not hear of it
      answer.refused = "members have heard of epoch " + std::to_string(g.epoch) + ", and here is " + std::to_string(epoch());
    };
    o.log = door_lines();
    auto opened = door::open(std::move(o));
    if (!opened) return fail(opened.error());
    *door_ = std::move(*opened);
    const int days = (*door_)->certificate_days();
    const auto where = address{options_.listen.host, (*door_)->port()}.text();
    log_event(log_level::info, "listening on " + where + (options_.tls ? " (mutual TLS, certificate valid for " + std::to_string(days) + " days)" : " (no TLS: this machine only)"));
    tell_ready((*door_)->port());
    if (metrics_) metrics_->ready(true);
    if (pair_)
      rival_ = std::make_unique<rival_watch>(*options_.peer, options_.tls, [pair = pair_] { return pair->state(); }, [pair = pair_] { return pair->standby() == "none"; });
    return {};
  }

  uint64_t epoch() const { return pair_ ? pair_->state().epoch : pair_state_.epoch; }

  static door_log door_lines() {
    return [](const char* level, const std::string& what, const identity& who) {
      json fields = json::object();
      if (!who.name.empty()) fields = {{"certificate", who.name}, {"role", name(who.what)}, {"address", who.address}};
      log_event(std::string_view(level) == "debug" ? log_level::debug : std::string_view(level) == "info" ? log_level::info : log_level::warn, what, fields);
    };
  }

  void tell_ready(uint16_t port) const {
    if (!options_.ready_file.empty())
      if (auto told = write_file_atomic(options_.ready_file, std::to_string(port) + "\n"); !told) log_event(log_level::warn, told.error().message);
    tell_service_manager("READY=1");
  }

  /// Why one of two heads may not go on; empty: it may. Members hear of a new epoch.
  std::string look_at_pair() {
    if (!pair_) return {};
    if (newer_) return "members have heard of a newer epoch";
    if (rival_->must_stand_down()) return "the other head has the better right to serve";
    auto looked = pair_->look();
    if (looked.ask_nodes) (*door_)->tell_all({"vouch", 0, looked.ask_nodes, nullptr});
    if (looked.new_epoch) (*door_)->tell_all({"epoch", 0, epoch(), nullptr});
    return looked.stand_down;
  }

  /// An agent that is gone is nothing to live without: whoever started this process starts it again, and nothing that was recorded is lost.
  expected<head_end> watch() {
    self_->monitor(users_);
    self_->monitor(*cluster_);
    self_->monitor(gate_);
    std::string gone;
    auto measured = clock::now();
    double warned = -1e9, answered = 0;
    const auto start = clock::now();
    while (!stop_ && gone.empty()) {
      self_->receive([&](const caf::down_msg& down) { gone = system_.get().render(down.reason); }, caf::after(look_time) >> [] {});
      if (const auto why = look_at_pair(); !why.empty()) {
        log_event(log_level::error, "this head stands down", {{"reason", why}});
        return head_end::stood_down;
      }
      if (std::chrono::duration<double>(clock::now() - measured).count() < metrics_seconds) continue;
      measured = clock::now();
      const double up = std::chrono::duration<double>(clock::now() - start).count();
      if (measure(up)) answered = up;
      if (up - answered > agent_seconds) gone = "no answer for " + format_number(agent_seconds, 3) + " s";
      else tell_service_manager("WATCHDOG=1");
      if (const int days = (*door_)->certificate_days(); days >= 0 && days < expiry_warning_days && up - warned > 86400) {
        warned = up;
        log_event(log_level::warn, "the head's certificate expires in " + std::to_string(days) + " days", {{"days", days}});
      }
    }
    if (gone.empty()) return head_end::stopped;
    return fail(ec::internal, "an agent of the head ended: " + gone, "nothing that was recorded is lost; start the head again");
  }

  /// Whether the agents live, and figures for those who look.
  bool measure(double up) {
    bool well = false;
    self_->request<caf::message_priority::high>(*cluster_, std::chrono::seconds(2), status_atom::value) // before what members ask
        .receive(
            [&](cluster_status& s) {
              well = true;
              if (metrics_) metrics_->set(s, (*door_)->counts());
            },
            [&](const caf::error&) {
              if (metrics_) metrics_->set_unwell();
            });
    if (!metrics_ || up - listed_ < runs_seconds) return well;
    listed_ = up;
    self_->request(users_, std::chrono::seconds(5), list_atom::value, caller{"", true})
        .receive([&](const std::vector<cluster_run>& runs) { metrics_->set(runs); }, [&](const caf::error&) { metrics_->set_unwell(); });
    return well;
  }

  void checkpoint() {
    if (metrics_) metrics_->ready(false);
    (*door_)->stop_accepting();
    self_->send(users_, hold_atom::value);
    uint64_t first = 0;
    const auto deadline = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(options_.grace_seconds));
    for (bool told = false;;) {
      uint64_t open = 0;
      self_->request(*cluster_, std::chrono::seconds(1), hold_atom::value).receive([&](uint64_t n) { open = n; }, [](const caf::error&) {});
      if (!told) log_event(log_level::info, "stopping: " + std::to_string(first = open) + " jobs in flight have " + format_number(options_.grace_seconds, 3) + " s; the rest is asked again by the next head");
      told = true;
      if (open == 0 || clock::now() > deadline) break;
      std::this_thread::sleep_for(look_time);
    }
    if (first > 0) std::this_thread::sleep_for(record_time);
  }

  void end() {
    cancel_ = true;
    // The door stays: gate and store may be about to use it. Members notice when the process ends, in a moment, and dial until a head is back.
    caf::anon_send_exit(gate_, caf::exit_reason::user_shutdown);
    if (*cluster_) caf::anon_send_exit(*cluster_, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(users_, caf::exit_reason::user_shutdown);
    std::this_thread::sleep_for(std::chrono::milliseconds(200)); // the store's agent closes it
    log_event(log_level::info, "stopped");
  }

  head_options options_;
  const std::atomic<bool>& stop_;
  local_system system_{scheduler_threads};
  caf::scoped_actor self_{system_.get()};
  std::atomic<bool> cancel_ = false;
  std::shared_ptr<cluster_actor> cluster_ = std::make_shared<cluster_actor>();
  std::shared_ptr<std::unique_ptr<door>> door_ = std::make_shared<std::unique_ptr<door>>();
  scheduler_actor users_;
  gate_actor gate_;
  std::unique_ptr<metrics_server> metrics_;
  open_socket listening_;
  pair_state pair_state_;                 ///< as it was when this head began to serve
  std::shared_ptr<replica> pair_;         ///< null: this head is not one of two
  std::unique_ptr<rival_watch> rival_;
  std::atomic<bool> newer_ = false;       ///< a member has heard of a newer epoch
  double listed_ = -runs_seconds;
};

} // namespace

expected<head_end> serve_head(const head_options& options, const std::atomic<bool>& stop) {
  // Never destroyed: agents in long calls may look at it until the process ends (leave_process()).
  static serving* one = nullptr;
  one = new serving(options, stop);
  return one->run();
}

} // namespace pragma
