#include "cluster/scheduler.hpp"

#include "actors/coder.hpp"
#include "actors/conductor.hpp"
#include "actors/knowledge.hpp"
#include "actors/store.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/utc.hpp"
#include "cluster/log.hpp"
#include "cluster/placed.hpp"
#include "cluster/scheduled_run.hpp"

#include <algorithm>
#include <deque>

namespace pragma {

namespace {

constexpr size_t news_bytes = max_message_bytes / 2;
constexpr size_t record_slice_bytes = max_message_bytes / 2;
constexpr size_t most_answers = 50;
constexpr size_t most_listed = 500;
constexpr size_t most_manifest_bytes = max_message_bytes / 8; ///< they are in every order
constexpr int most_priority = 100;
constexpr size_t kept_finished = 200;                     ///< runs whose news stay in memory

observer_actor::behavior_type observer(observer_actor::pointer, std::shared_ptr<scheduled_run> run) {
  return {[run](event_atom, const run_event& event) { run->add(event); }};
}

using library_actor = caf::typed_actor<caf::replies_to<ask_atom, std::string>::with<std::string>>;
struct library_state {
  static inline const char* name = "library";
  std::optional<library> opened;
};
/// Detached: it blocks on files.
library_actor::behavior_type answer_from_library(library_actor::stateful_pointer<library_state> self, library_paths paths, embedding_config embedding) {
  return {[=](ask_atom, const std::string& text) -> caf::result<std::string> {
    auto parsed = parse_json(text, "question");
    if (!parsed) return to_caf(parsed.error());
    question wanted;
    try {
      wanted.text = parsed->value("text", "");
      wanted.count = std::min<size_t>(parsed->value("count", wanted.count), most_answers);
      wanted.profiler = parsed->value("profiler", "");
      wanted.hardware = parsed->value("hardware", "");
    } catch (const json::exception& e) {
      return to_caf({ec::parse_error, std::string("a question: ") + e.what(), ""});
    }
    auto& open = self->state.opened;
    if (!open) {
      auto opened = library::open(paths, embedding, true);
      if (!opened) return to_caf(opened.error());
      open.emplace(std::move(*opened));
    }
    auto answer = open->ask(wanted);
    if (!answer) return to_caf(answer.error());
    return json(*answer).dump(-1, ' ', false, json::error_handler_t::replace);
  }};
}

struct scheduler_state {
  static inline const char* name = "scheduler";
  using pointer = scheduler_actor::stateful_pointer<scheduler_state>;
  /// Factories run in the conductor's handlers: what they spawn is told to leave when the run is over.
  struct agents_of_run {
    std::mutex mutex;
    std::vector<caf::actor> all;
    template <class Handle> Handle keep(Handle handle) {
      const std::lock_guard lock(mutex);
      all.push_back(caf::actor_cast<caf::actor>(handle));
      return handle;
    }
  };
  struct active {
    conductor_actor conductor;
    std::shared_ptr<agents_of_run> agents = std::make_shared<agents_of_run>();
  };

  pointer self = nullptr;
  scheduler_options options;
  std::shared_ptr<cluster_actor> cluster;
  store_actor store;
  knowledge_actor knowledge;
  library_actor answers;
  std::string prefix;
  std::map<std::string, std::shared_ptr<scheduled_run>> runs;
  std::map<std::string, cluster_run> summaries; ///< of all stored runs, as the store had them last: nobody else writes there, and parsing all records is slow
  std::map<std::string, active> at_work;
  std::deque<run_order> queue;            ///< runs that wait for their owner's turn
  bool held = false;
  std::map<std::string, std::pair<std::string, std::string>> records; ///< id -> bytes, hash: of the one that is being fetched

  /// A run's owner; empty: it is not known, or of before runs had owners.
  std::string owner_of(const std::string& id) const {
    if (const auto run = runs.find(id); run != runs.end()) return run->second->owner;
    const auto stored = summaries.find(id);
    return stored == summaries.end() ? std::string() : stored->second.owner;
  }
  void remember(const run_header& h) {
    remember(summary_of(h));
  }
  void remember(const run_summary& r) {
    summaries[r.id] = {r.id, r.task, r.state, r.best_attempt, r.confirmed ? r.speedup.value : 0, r.owner, r.priority};
  }
  void remember(const std::string& id) {
    if (auto stored = options.store->get_run(id))
      if (auto header = from_json_value<run_header>(*stored, "run " + id)) remember(*header);
  }
  expected<void> check(const std::string& id, const caller& who) const {
    if (who.owns(owner_of(id))) return {};
    return fail(ec::not_found, "you have no run " + printable(id) + " here", "`pragma runs` lists yours; an admin sees all");
  }
  /// ... and there is such a run, whoever asks.
  expected<void> check_known(const std::string& id, const caller& who) const {
    if (auto allowed = check(id, who); !allowed) return allowed;
    if (runs.contains(id) || summaries.contains(id)) return {};
    return fail(ec::not_found, "there is no run '" + printable(id) + "' here", "`pragma runs` lists them");
  }

  static const std::string& id_of(const run_order& order) { return order.request.id.empty() ? order.request.new_id : order.request.id; }

  size_t waiting_of(const std::string& owner) const {
    return static_cast<size_t>(std::count_if(queue.begin(), queue.end(), [&](const auto& w) { return w.request.owner == owner; }));
  }
  size_t running_of(const std::string& owner) const {
    return static_cast<size_t>(std::count_if(at_work.begin(), at_work.end(), [&](const auto& w) { return runs.contains(w.first) && runs.at(w.first)->owner == owner; }));
  }

  expected<std::string> begin(run_order order, const caller& who) {
    auto& request = order.request;
    if (held) return fail(ec::locked, "the head is stopping", "ask again when it is back");
    // A user may begin runs here, not programs, and name no files of this machine.
    if (request.coder.kind == "llm" && request.coder.llm.kind != "openai")
      return fail(ec::unsupported, "a head asks models over HTTP only, not by " + printable(request.coder.llm.kind), "--model with --base-url; or --local for a command");
    const bool again = !request.id.empty();
    std::vector<std::string> notes;
    if (again) {
      if (auto allowed = check(request.id, who); !allowed) return fail(allowed.error());
      if (at_work.contains(request.id) || std::any_of(queue.begin(), queue.end(), [&](const auto& w) { return id_of(w) == request.id; })) return request.id;
      auto stored = read_run(*options.store, request.id);
      if (!stored) return fail(stored.error());
      const auto stop = request.stop;
      request = stored->header.request;
      request.id = stored->header.id;
      if (stop.attempts > 0) request.stop = stop;
      auto task = find_task(request.load.path);
      if (!task) return fail(task.error());
      request.load.path = task->string();
      auto text = read_task_text(*task);
      if (!text) return fail(text.error());
      order.task = std::move(*text);
      if (auto copied = options.store->put_task(task_key(*task), json(order.task)); !copied) return fail(copied.error());
    } else {
      request.owner = who.name;
      request.priority = std::clamp(request.priority, -most_priority, who.admin ? most_priority : 0);
      if (const auto most = options.limits.tokens_per_run; most > 0 && (request.coder.llm.budget_tokens <= 0 || request.coder.llm.budget_tokens > most)) {
        request.coder.llm.budget_tokens = most;
        if (request.coder.kind == "llm") notes.push_back("the head allows " + std::to_string(most) + " tokens a run");
      }
      if (auto needs = with_constraints({}, request.needs); !needs) return fail(needs.error());
      if (const auto& q = options.limits; full(request.owner) && (waiting_of(request.owner) >= static_cast<size_t>(q.queued_per_user) || queue.size() >= static_cast<size_t>(q.queued)))
        return fail(ec::limit_exceeded, "the queue is full: " + std::to_string(waiting_of(request.owner)) + " of your runs wait, " + std::to_string(queue.size()) + " of all", "ask again when some have ended; `pragma runs --mine` lists yours");
      auto kept = keep_task_text(order.task, options.tasks);
      if (!kept) return fail(kept.error());
      if (auto copied = options.store->put_task(task_key(*kept), json(order.task)); !copied) return fail(copied.error());
      request.load.path = kept->string();
      request.new_id = new_run_id(request.load.path);
      prepare_for_cluster(request.load, notes);
    }
    const auto id = again ? request.id : request.new_id;
    request.coder.transcript = request.coder.kind == "llm" ? (options.transcripts / (id + ".jsonl")).string() : std::string();
    auto run = std::make_shared<scheduled_run>();
    run->id = id;
    run->log.emplace(options.tasks.parent_path() / "logs", id);
    run->task = order.task.name;
    run->owner = request.owner;
    run->priority = request.priority;
    run->state = "queued";
    for (const auto& text : notes) run->note(text);
    runs[id] = run;
    forget_finished(id);
    log_event(log_level::info, again ? "run resumed" : "run accepted", {{"run", id}, {"user", request.owner}, {"task", order.task.name}, {"priority", request.priority}});
    remember_waiting(request, order.task.name); // before anybody is told of it
    if (full(request.owner)) {
      run->note("it waits: the head runs at most " + std::to_string(options.limits.running_per_user) + " of one user at once, and " + std::to_string(options.limits.running) + " of all");
      queue.push_back(std::move(order));
      return id;
    }
    launch(std::move(order), run);
    return id;
  }

  /// The oldest ones' news, when there are too many.
  void forget_finished(const std::string& but) {
    const size_t most = kept_finished + at_work.size() + queue.size() + 1;
    for (auto it = runs.begin(); it != runs.end() && runs.size() > most;) {
      const bool over = !at_work.contains(it->first) && it->first != but && it->second->state != "queued";
      it = over ? runs.erase(it) : std::next(it);
    }
  }

  bool full(const std::string& owner) const {
    const auto& most = options.limits;
    return (most.running > 0 && at_work.size() >= static_cast<size_t>(most.running)) || (most.running_per_user > 0 && running_of(owner) >= static_cast<size_t>(most.running_per_user));
  }

  /// Durable, so that a head that starts again finds it.
  void remember_waiting(run_request request, const std::string& task) {
    if (!request.id.empty()) return; // resumed: it is there
    run_header header;
    header.id = request.id = request.new_id;
    header.request = std::move(request);
    header.environment.task.name = task;
    header.started = utc_now();
    if (auto kept = options.store->put_run(header.id, json(header)); !kept) log_event(log_level::error, "a run that is to begin is not kept", {{"run", header.id}, {"reason", kept.error().message}});
  }

  /// Those that wait, by priority, then in their order.
  void launch_next() {
    for (bool again = !held; again;) {
      again = false;
      auto best = queue.end();
      for (auto it = queue.begin(); it != queue.end(); ++it)
        if (!full(it->request.owner) && (best == queue.end() || it->request.priority > best->request.priority)) best = it;
      if (best == queue.end()) return;
      auto order = std::move(*best);
      queue.erase(best);
      const auto id = id_of(order);
      if (const auto run = runs.find(id); run != runs.end()) {
        launch(std::move(order), run->second);
        again = true;
      }
    }
  }

  void launch(run_order order, const std::shared_ptr<scheduled_run>& run) {
    const auto& request = order.request;
    const auto id = run->id;
    {
      const std::lock_guard lock(run->mutex);
      run->state = "running";
    }
    auto place = std::make_shared<run_place>();
    place->run = id;
    place->prefix = prefix;
    place->task = order.task;
    place->path = request.load.path;
    place->owner = request.owner;
    place->priority = request.priority;
    place->needs.backend = request.load.backend;
    if (auto needs = with_constraints(place->needs, request.needs)) place->needs = std::move(*needs);
    place->needs_text = "backend " + request.load.backend + (request.needs.empty() ? "" : ", " + printable(request.needs));
    place->say = [run](const std::string& text) { run->note(text); };
    auto& system = self->system();
    auto& mine = at_work[id];
    auto session = std::make_shared<coding_session>(options.cancel);
    const auto owned = mine.agents;
    conductor_agents agents;
    agents.verifier = [&system, cluster = *cluster, place, owned] { return owned->keep(spawn_placed_verifier(system, cluster, place)); };
    agents.profiler = [&system, cluster = *cluster, place, owned] { return owned->keep(spawn_placed_profiler(system, cluster, place)); };
    agents.coder = [&system, session, owned] { return owned->keep(system.spawn<caf::detached>(coder, session)); };
    agents.store = store;
    agents.knowledge = knowledge;
    agents.observer = owned->keep(system.spawn(observer, run));
    agents.request_timeout = std::chrono::hours(24 * 365); // in this process; a job may queue for long
    mine.conductor = spawn_conductor(system, agents);
    self->request(mine.conductor, caf::infinite, begin_atom::value, request)
        .then([this, id, run](const run_result& result) {
                run->settle(result.header.confirmed ? result.header.final.time.speedup.value : 0);
                over(id, *run, result.header.state, {});
              },
              [this, id, run](const caf::error& e) {
                const auto why = from_caf(self->system(), e);
                over(id, *run, why.code == ec::interrupted ? "interrupted" : "failed", failure::of(why));
              });
  }

  /// A task's name in the run store: that of its file's folder, which is made of its text (keep_task_text).
  static std::string task_key(const std::filesystem::path& file) { return file.parent_path().filename().string(); }

  /// The text of a stored run's task: where it was, or, when this head's folder was moved or restored elsewhere, at the same place in this one.
  expected<std::filesystem::path> find_task(const std::filesystem::path& stored) const {
    std::error_code ignored;
    if (const auto here = options.tasks / stored.parent_path().filename() / stored.filename(); std::filesystem::exists(here, ignored)) return here;
    if (auto kept = options.store->get_task(task_key(stored)); kept && *kept) // this head was another's standby
      if (auto text = from_json_value<task_text>(**kept, "the text of a task")) return keep_task_text(*text, options.tasks);
    return fail(ec::not_found, "the text of the run's task is not in " + options.tasks.string(), "restore the folder `tasks` with the folder `runs`: `pragma head restore`");
  }

  /// What a user's request cannot say about a cluster's machines. Every device that fits may be leased; the profilers that are registered
  /// are the head's, as its compendium is, and travel with each order.
  void prepare_for_cluster(load_request& load, std::vector<std::string>& notes) const {
    if (load.device != 0) notes.push_back("--device " + std::to_string(load.device) + " is ignored: in a cluster the head leases whichever device is free");
    load.device = 0;
    load.manifests.clear();
    if (!load.where().on_device()) return;
    auto registered = registered_collectors(options.library, load.backend);
    if (!registered) notes.push_back("the profilers that are registered here are not used: " + registered.error().message);
    else if (json(*registered).dump().size() > most_manifest_bytes) notes.push_back("the profilers that are registered here are not used: their manifests are too long for a message");
    else load.manifests = std::move(*registered);
  }

  void over(const std::string& id, scheduled_run& run, const std::string& state, failure why) {
    log_event(state == "failed" ? log_level::warn : log_level::info, "run ended", {{"run", id}, {"user", run.owner}, {"state", state}, {"attempts", run.attempts}, {"speedup", run.speedup}, {"reason", why.message}});
    run.end(state, std::move(why));
    remember(id);
    self->send(*cluster, forget_atom::value, id);
    if (const auto it = at_work.find(id); it != at_work.end()) {
      caf::anon_send_exit(it->second.conductor, caf::exit_reason::user_shutdown);
      const std::lock_guard lock(it->second.agents->mutex);
      for (const auto& agent : it->second.agents->all) caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
      at_work.erase(it);
    }
    launch_next();
  }

  /// At once: what a node does of it ends, too.
  bool cancel(const std::string& id) {
    log_event(log_level::info, "run cancelled", {{"run", id}});
    if (const auto it = std::find_if(queue.begin(), queue.end(), [&](const auto& w) { return id_of(w) == id; }); it != queue.end()) {
      queue.erase(it);
      if (auto stored = options.store->get_run(id)) {
        (*stored)["state"] = "interrupted";
        (*stored)["stop_reason"] = "cancelled before it began";
        (void)options.store->put_run(id, *stored);
      }
      remember(id);
      if (const auto run = runs.find(id); run != runs.end()) run->second->end("interrupted");
      return true;
    }
    const auto it = at_work.find(id);
    if (it == at_work.end()) return false;
    self->send(it->second.conductor, halt_atom::value);
    self->send(*cluster, cancel_atom::value, id);
    return true;
  }

  run_news news(const std::string& id, uint64_t from) {
    run_news answer;
    const auto found = runs.find(id);
    if (found == runs.end()) {
      answer.state = "unknown";
      if (auto stored = read_run(*options.store, id)) answer.state = stored->header.state == "running" ? "interrupted" : stored->header.state;
      return answer;
    }
    auto& run = *found->second;
    const std::lock_guard lock(run.mutex);
    answer.next = std::max(from, run.first);
    size_t bytes = 0;
    while (answer.next - run.first < run.events.size()) {
      const auto& event = run.events[answer.next - run.first];
      bytes += json::to_cbor(event).size();
      if (bytes > news_bytes && !answer.events.empty()) return answer; // the state is told with the last event
      if (auto read = from_json_value<run_event>(event, "event")) answer.events.push_back(std::move(*read));
      ++answer.next;
    }
    answer.state = run.state;
    answer.failure = run.failure;
    return answer;
  }

  expected<text_slice> fetch(const std::string& id, uint64_t offset) {
    auto record = records.find(id);
    if (offset == 0 || record == records.end()) {
      auto stored = read_run(*options.store, id);
      if (!stored) return fail(stored.error());
      const auto bytes = json::to_cbor(json(*stored));
      std::string text(bytes.begin(), bytes.end());
      auto hash = sha256_hex(text);
      records.clear(); // one at a time is enough
      record = records.emplace(id, std::pair{std::move(text), std::move(hash)}).first;
    }
    const auto& [text, hash] = record->second;
    text_slice slice;
    slice.offset = std::min<uint64_t>(offset, text.size());
    slice.total = text.size();
    slice.sha256 = hash;
    slice.bytes = text.substr(slice.offset, record_slice_bytes);
    return slice;
  }

  std::vector<cluster_run> list(const caller& who) {
    std::vector<cluster_run> all;
    for (const auto& [id, run] : runs) {
      const std::lock_guard lock(run->mutex);
      if (who.owns(run->owner)) all.push_back({id, run->task, run->state, run->attempts, run->speedup, run->owner, run->priority});
    }
    for (auto run = summaries.rbegin(); run != summaries.rend() && all.size() < most_listed; ++run) // newest first: an id begins with its time
      if (!runs.contains(run->first) && who.owns(run->second.owner)) all.push_back(run->second);
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.id > b.id; });
    return all;
  }

  /// Goes on with what an earlier head left. What says that it is running and is not this head's to go on with is at work nowhere: who writes the
  /// store is this process alone.
  uint64_t recover() {
    auto stored = list_runs(*options.store);
    if (!stored) {
      log_event(log_level::error, "the runs of before cannot be read", {{"reason", stored.error().message}});
      return 0;
    }
    uint64_t going_on = 0;
    std::reverse(stored->begin(), stored->end()); // oldest first
    for (const auto& summary : *stored) {
      remember(summary);
      if (summary.state != "running") continue;
      const auto& id = summary.id;
      auto run = read_run(*options.store, id);
      if (!run) continue;
      auto* header = &run->header;
      const bool ours = !header->request.owner.empty() || header->request.load.path.starts_with(options.tasks.string() + "/");
      expected<std::string> begun = fail(ec::interrupted, "the process that ran it is gone", "go on with `pragma resume`");
      if (ours) {
        run_order order;
        order.request.id = id;
        order.request.stop.attempts = 0;
        begun = begin(std::move(order), {"", true});
      }
      if (begun && runs.contains(id)) {
        runs[id]->note("the head was restarted: going on");
        ++going_on;
        continue;
      }
      log_event(log_level::warn, "run not gone on with", {{"run", id}, {"reason", begun.error().message}});
      header->state = "interrupted";
      header->stop_reason = begun.error().message;
      (void)options.store->put_run(id, json(*header));
      remember(*header);
    }
    return going_on;
  }
};

scheduler_actor::behavior_type scheduler(scheduler_state::pointer self, scheduler_options options, std::shared_ptr<cluster_actor> cluster) {
  auto& state = self->state;
  state.self = self;
  state.cluster = std::move(cluster);
  state.options = std::move(options);
  state.prefix = new_run_id("head");
  auto& system = self->system();
  state.store = system.spawn<caf::detached>(store, [kept = state.options.store]() -> expected<std::shared_ptr<run_store>> { return kept; });
  state.knowledge = system.spawn<caf::detached>(knowledge, state.options.library, state.options.embedding);
  state.answers = system.spawn<caf::detached>(answer_from_library, state.options.library, state.options.embedding);
  return {
      [self](start_atom, run_order& order, const caller& who) { return to_result(self->state.begin(std::move(order), who)); },
      [self](news_atom, const std::string& run, uint64_t from, const caller& who) -> caf::result<run_news> {
        if (auto allowed = self->state.check(run, who); !allowed) return to_caf(allowed.error());
        return self->state.news(run, from);
      },
      [self](fetch_atom, const std::string& run, uint64_t offset, const caller& who) -> caf::result<text_slice> {
        if (auto allowed = self->state.check(run, who); !allowed) return to_caf(allowed.error());
        return to_result(self->state.fetch(run, offset));
      },
      [self](list_atom, const caller& who) { return self->state.list(who); },
      [self](ask_atom, const std::string& text) { return self->delegate(self->state.answers, ask_atom::value, text); },
      [self](halt_atom, const std::string& run, const caller& who) -> caf::result<bool> {
        if (auto allowed = self->state.check_known(run, who); !allowed) return to_caf(allowed.error());
        const auto it = self->state.at_work.find(run);
        if (it == self->state.at_work.end()) return self->state.cancel(run);
        self->send(it->second.conductor, halt_atom::value); // first: it takes what is withdrawn for the user's wish
        self->send(*self->state.cluster, halt_atom::value, run);
        return true;
      },
      [self](cancel_atom, const std::string& run, const caller& who) -> caf::result<bool> {
        if (auto allowed = self->state.check_known(run, who); !allowed) return to_caf(allowed.error());
        return self->state.cancel(run);
      },
      [self](recover_atom) { return self->state.recover(); },
      [self](hold_atom) { self->state.held = true; },
  };
}

} // namespace

scheduler_actor spawn_scheduler(caf::actor_system& system, scheduler_options options, std::shared_ptr<cluster_actor> cluster) {
  return system.spawn(scheduler, std::move(options), std::move(cluster));
}

} // namespace pragma
