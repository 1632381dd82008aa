#include "cluster/desk.hpp"

#include "actors/coder.hpp"
#include "actors/conductor.hpp"
#include "actors/knowledge.hpp"
#include "actors/store.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "cluster/placed.hpp"

#include <algorithm>
#include <deque>

namespace pragma {

namespace {

constexpr size_t kept_events = 500;                       ///< of a run; who was away longer reads the record
constexpr size_t news_bytes = max_message_bytes / 2;
constexpr size_t slice_bytes = max_message_bytes / 2;
constexpr size_t most_answers = 50;
constexpr size_t most_listed = 500;
constexpr size_t most_manifest_bytes = max_message_bytes / 8; ///< they are in every order
constexpr size_t kept_finished = 200;                     ///< runs whose news stay in memory

/// One run as the desk knows it. The observer writes, the desk reads.
struct desk_run {
  std::mutex mutex;
  std::string id, task, state = "running";
  std::deque<json> events;                                ///< run_event
  uint64_t first = 0;                                     ///< number of events.front()
  pragma::failure failure;
  int attempts = 0;
  double speedup = 0;

  void add(const run_event& event) {
    const std::lock_guard lock(mutex);
    if (event.what == "iteration") {
      attempts = event.iteration.number;
      if (event.iteration.new_best) speedup = event.iteration.code.measured.time.speedup.value;
    }
    events.push_back(json(event));
    if (events.size() > kept_events) {
      events.pop_front();
      ++first;
    }
  }
  void note(const std::string& text) {
    run_event event;
    event.what = "note";
    event.text = text;
    add(event);
  }
  void end(const std::string& how, pragma::failure why = {}) {
    const std::lock_guard lock(mutex);
    state = how;
    failure = std::move(why);
  }
};

observer_actor::behavior_type observer(observer_actor::pointer, std::shared_ptr<desk_run> run) {
  return {[run](event_atom, const run_event& event) { run->add(event); }};
}

using books_actor = caf::typed_actor<caf::replies_to<ask_atom, std::string>::with<std::string>>;
struct books_state {
  static inline const char* name = "books";
  std::optional<library> books;
};
/// Detached: it blocks on files.
books_actor::behavior_type books(books_actor::stateful_pointer<books_state> self, library_paths paths, embedding_config embedding) {
  return {[=](ask_atom, const std::string& text) -> caf::result<std::string> {
    auto parsed = parse_json(text, "question");
    if (!parsed) return to_caf(parsed.error());
    question wanted;
    wanted.text = parsed->value("text", "");
    wanted.count = std::min<size_t>(parsed->value("count", wanted.count), most_answers);
    wanted.profiler = parsed->value("profiler", "");
    wanted.hardware = parsed->value("hardware", "");
    auto& open = self->state.books;
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

struct desk_state {
  static inline const char* name = "desk";
  using pointer = desk_actor::stateful_pointer<desk_state>;
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
  desk_options options;
  std::shared_ptr<cluster_actor> cluster;
  store_actor store;
  knowledge_actor knowledge;
  books_actor books;
  std::string prefix;
  std::map<std::string, std::shared_ptr<desk_run>> runs;
  std::map<std::string, active> at_work;
  std::map<std::string, std::pair<std::string, std::string>> records; ///< id -> bytes, hash: of the one that is being fetched

  expected<std::string> begin(run_order order) {
    if (order.protocol != cluster_protocol)
      return fail(ec::invalid_argument, "this head speaks " + std::string(cluster_protocol) + ", you " + printable(order.protocol), "install the same version on both");
    auto& request = order.request;
    // A user may begin runs here, not programs, and name no files of this machine.
    if (request.coder.kind == "llm" && request.coder.llm.kind != "openai")
      return fail(ec::unsupported, "a head asks models over HTTP only, not by " + printable(request.coder.llm.kind), "--model with --base-url; or --local for a command");
    const bool again = !request.id.empty();
    if (again) {
      if (at_work.contains(request.id)) return request.id;
      auto stored = read_run(*options.store, request.id);
      if (!stored) return fail(stored.error());
      const auto stop = request.stop;
      request = stored->header.request;
      request.id = stored->header.id;
      if (stop.attempts > 0) request.stop = stop;
      auto text = read_task_text(request.load.path);
      if (!text) return fail(text.error());
      order.task = std::move(*text);
    } else {
      auto kept = keep_task_text(order.task, options.tasks);
      if (!kept) return fail(kept.error());
      request.load.path = kept->string();
      request.new_id = new_run_id(request.load.path);
    }
    std::vector<std::string> notes;
    if (!again) prepare_for_cluster(request.load, notes);
    const auto id = again ? request.id : request.new_id;
    request.coder.transcript = request.coder.kind == "llm" ? (options.transcripts / (id + ".jsonl")).string() : std::string();
    auto run = std::make_shared<desk_run>();
    run->id = id;
    run->task = order.task.name;
    runs[id] = run;
    while (runs.size() > kept_finished + at_work.size() + 1)
      for (auto it = runs.begin(); it != runs.end(); ++it)
        if (!at_work.contains(it->first) && it->first != id) {
          runs.erase(it);
          break;
        }

    auto place = std::make_shared<run_place>();
    place->run = id;
    place->prefix = prefix;
    place->task = order.task;
    place->path = request.load.path;
    place->needs.backend = request.load.backend;
    for (const auto& text : notes) run->note(text);
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
        .then([this, id, run](const run_result& result) { over(id, *run, result.header.state, {}); },
              [this, id, run](const caf::error& e) {
                const auto why = from_caf(self->system(), e);
                over(id, *run, why.code == ec::interrupted ? "interrupted" : "failed", failure::of(why));
              });
    return id;
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

  void over(const std::string& id, desk_run& run, const std::string& state, failure why) {
    run.end(state, std::move(why));
    self->send(*cluster, forget_atom::value, id);
    if (const auto it = at_work.find(id); it != at_work.end()) {
      caf::anon_send_exit(it->second.conductor, caf::exit_reason::user_shutdown);
      const std::lock_guard lock(it->second.agents->mutex);
      for (const auto& agent : it->second.agents->all) caf::anon_send_exit(agent, caf::exit_reason::user_shutdown);
      at_work.erase(it);
    }
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
    slice.bytes = text.substr(slice.offset, slice_bytes);
    return slice;
  }

  std::vector<cluster_run> list() {
    std::vector<cluster_run> all;
    for (const auto& [id, run] : runs) {
      const std::lock_guard lock(run->mutex);
      all.push_back({id, run->task, run->state, run->attempts, run->speedup});
    }
    if (auto stored = options.store->list_runs()) { // newest first
      for (const auto& [id, value] : *stored) {
        if (runs.contains(id)) continue;
        if (all.size() >= most_listed) break;
        auto header = from_json_value<run_header>(value, "run " + id);
        if (!header) continue;
        all.push_back({id, header->environment.task.name, header->state, header->best_attempt, header->confirmed ? header->final.time.speedup.value : 0});
      }
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.id > b.id; });
    return all;
  }

  /// Goes on with what an earlier head left.
  void recover() {
    auto stored = options.store->list_runs();
    if (!stored) return;
    for (const auto& [id, value] : *stored) {
      auto header = from_json_value<run_header>(value, "run " + id);
      if (!header || header->state != "running" || !header->request.load.path.starts_with(options.tasks.string() + "/")) continue;
      run_order order;
      order.request.id = id;
      order.request.stop.attempts = 0;
      if (auto begun = begin(std::move(order)); begun && runs.contains(id)) runs[id]->note("the head was restarted: going on");
    }
  }
};

desk_actor::behavior_type desk(desk_state::pointer self, desk_options options, std::shared_ptr<cluster_actor> cluster) {
  auto& state = self->state;
  state.self = self;
  state.cluster = std::move(cluster);
  state.options = std::move(options);
  state.prefix = new_run_id("head");
  auto& system = self->system();
  state.store = system.spawn<caf::detached>(store, state.options.store);
  state.knowledge = system.spawn<caf::detached>(knowledge, state.options.library, state.options.embedding);
  state.books = system.spawn<caf::detached>(books, state.options.library, state.options.embedding);
  return {
      [self](start_atom, run_order& order) { return to_result(self->state.begin(std::move(order))); },
      [self](news_atom, const std::string& run, uint64_t from) { return self->state.news(run, from); },
      [self](fetch_atom, const std::string& run, uint64_t offset) { return to_result(self->state.fetch(run, offset)); },
      [self](list_atom) { return self->state.list(); },
      [self](ask_atom, const std::string& text) { return self->delegate(self->state.books, ask_atom::value, text); },
      [self](halt_atom, const std::string& run) {
        if (const auto it = self->state.at_work.find(run); it != self->state.at_work.end()) self->send(it->second.conductor, halt_atom::value);
      },
      [self](halt_atom) {
        for (const auto& [id, run] : self->state.at_work) self->send(run.conductor, halt_atom::value);
      },
      [self](recover_atom) { self->state.recover(); },
  };
}

} // namespace

desk_actor spawn_desk(caf::actor_system& system, desk_options options, std::shared_ptr<cluster_actor> cluster) {
  return system.spawn(desk, std::move(options), std::move(cluster));
}

} // namespace pragma
