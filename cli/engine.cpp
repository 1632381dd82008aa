#include "cli/engine.hpp"

#include "actors/coder.hpp"
#include "actors/conductor.hpp"
#include "actors/knowledge.hpp"
#include "actors/profiler.hpp"
#include "actors/run_log.hpp"
#include "actors/store.hpp"
#include "actors/verifier.hpp"
#include "base/files.hpp"
#include "base/utc.hpp"
#include "cli/stored_runs.hpp"
#include "devices/device_lease.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace pragma::cli {

namespace {

observer_actor::behavior_type observer(observer_actor::pointer, std::function<void(const run_event&)> on_event) {
  return {[on_event](event_atom, const run_event& event) { on_event(event); }};
}

/// Other processes that run something here have it between our messages.
expected<std::shared_ptr<run_store>> open_for_a_moment() {
  auto store = open_runs(run_store_folder(), run_store::mode::in_turn);
  if (!store) return fail(store.error());
  return std::make_shared<run_store>(std::move(*store));
}

constexpr unsigned processors_of_a_run = 4; ///< of one on a device, at its most: our threads, the reference, a candidate, Triton's compiler
constexpr int most_side_by_side = 3;        ///< more wait for the device

class local_engine : public engine {
public:
  local_engine() {
    // The loop asks one thing at a time; two workers serve the Conductor and the observer. The agents have threads of their own.
    config_.set("scheduler.max-threads", static_cast<size_t>(2));
    config_.set("scheduler.policy", caf::atom("sharing"));
    system_ = std::make_unique<caf::actor_system>(config_);
    knowledge_ = system_->spawn<caf::detached>(knowledge, library_paths::usual(), embedding_config{});
  }
  ~local_engine() override { caf::anon_send_exit(knowledge_, caf::exit_reason::user_shutdown); }

  expected<run_result> run(const run_request& wanted, std::function<void(const run_event&)> on_event, const std::atomic<bool>& cancel) override {
    auto request = wanted;
    if (request.id.empty() && request.new_id.empty()) request.new_id = new_run_id(request.load.path);
    const auto& id = request.id.empty() ? request.new_id : request.id;
    auto claim = run_store::claim(run_store_folder(), id);
    if (!claim) return fail(claim.error());
    ++running_;
    auto result = run_claimed(request, id, std::move(on_event), cancel);
    --running_;
    claim->remove();
    return result;
  }

  /// On a device a run is mostly the work of one processor (starting processes, compiling, comparing), while measurements there take turns. On a processor it would
  /// disturb what it measures.
  size_t side_by_side(const load_request& load) const override {
    if (!load.where().on_device()) return 1;
    const int room = static_cast<int>(std::thread::hardware_concurrency() / processors_of_a_run) - running_;
    return static_cast<size_t>(std::clamp(room, 1, most_side_by_side));
  }

private:
  expected<run_result> run_claimed(run_request request, const std::string& id, std::function<void(const run_event&)> on_event, const std::atomic<bool>& cancel) {
    auto log = std::make_shared<run_log>(data_home() / "logs", id);
    on_event = [log, tell = std::move(on_event)](const run_event& event) {
      log->add(line_of(event));
      tell(event);
    };
    if (request.id.empty())
      if (auto given = hand_over_collectors(request.load); !given) {
        run_event note;
        note.what = "note";
        note.time = utc_now();
        note.text = "the profilers that you registered are not used: " + given.error().message;
        on_event(note);
      }
    caf::scoped_actor self{*system_};
    auto bench = std::make_shared<workbench>(&cancel, true, lease_file({}));
    auto session = std::make_shared<coding_session>(&cancel);
    conductor_agents agents;
    auto& system = *system_;
    // Factories run in the Conductor's thread; what they spawned is told to leave when the run is over.
    std::vector<caf::actor> spawned;
    std::mutex spawned_mutex;
    const auto remember = [&](auto handle) {
      const std::lock_guard lock(spawned_mutex);
      spawned.push_back(caf::actor_cast<caf::actor>(handle));
      return handle;
    };
    agents.verifier = [&, bench] { return remember(system.spawn<caf::detached>(verifier, bench)); };
    agents.profiler = [&, bench] { return remember(system.spawn<caf::detached>(profiler, bench)); };
    agents.coder = [&, session] { return remember(system.spawn<caf::detached>(coder, session)); };
    agents.store = system.spawn<caf::detached>(store, open_for_a_moment);
    agents.knowledge = knowledge_;
    agents.observer = system.spawn(observer, std::move(on_event));
    auto head = spawn_conductor(system, agents);

    expected<run_result> result = fail(ec::internal, "the conductor gave no answer");
    bool asked_to_stop = false;
    auto pending = self->request(head, caf::infinite, begin_atom::value, request);
    // The blocking wait for a response has no way to look at Ctrl-C: forward it as a message from here.
    std::atomic<bool> over = false;
    std::thread watcher([&] {
      while (!over) {
        if (cancel && !asked_to_stop) {
          asked_to_stop = true;
          caf::anon_send(head, halt_atom::value);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    });
    pending.receive(
        [&](const run_result& r) { result = r; },
        [&](const caf::error& e) { result = fail(from_caf(system, e)); });
    over = true;
    watcher.join();
    const auto leave = [&](const caf::actor& actor) {
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
      self->wait_for(actor);
    };
    leave(caf::actor_cast<caf::actor>(head));
    for (const auto& actor : spawned) leave(actor);
    leave(caf::actor_cast<caf::actor>(agents.store));
    leave(caf::actor_cast<caf::actor>(agents.observer));
    return result;
  }

  std::atomic<int> running_ = 0;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  knowledge_actor knowledge_; ///< for all runs: the compendium is opened once
};

/// Runs on the head's cluster; this process only watches.
class remote_engine : public engine {
public:
  explicit remote_engine(std::unique_ptr<head_client> client) : client_(std::move(client)) {}
  expected<run_result> run(const run_request& request, std::function<void(const run_event&)> on_event, const std::atomic<bool>& cancel) override {
    run_order order;
    order.request = request;
    if (request.id.empty()) {
      auto text = read_task_text(request.load.path);
      if (!text) return fail(text.error());
      order.task = std::move(*text);
    }
    auto result = client_->run(std::move(order), on_event, cancel);
    if (result && request.id.empty()) { // the head has the task under a path of its own
      result->header.request.load.path = result->header.environment.task.path = request.load.path;
      result->header.request.out_dir = request.out_dir;
    }
    return result;
  }

private:
  std::unique_ptr<head_client> client_;
};

} // namespace

expected<std::unique_ptr<engine>> engine::open(const head_choice& head) {
  auto client = head.connect();
  if (!client) return fail(client.error());
  if (*client) return std::unique_ptr<engine>(new remote_engine(std::move(*client)));
  if (auto store = open_for_a_moment(); !store) return fail(store.error()); // what would end the first attempt is said at once
  return std::unique_ptr<engine>(new local_engine());
}

expected<void> hand_over_collectors(load_request& load) {
  if (!load.manifests.empty()) return {};
  auto registered = registered_collectors(library_paths::usual(), load.backend);
  if (!registered) return fail(registered.error());
  load.manifests = std::move(*registered);
  return {};
}

} // namespace pragma::cli
