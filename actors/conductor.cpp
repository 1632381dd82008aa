#include "actors/conductor.hpp"

#include "actors/loop.hpp"
#include "base/hash.hpp"
#include "base/utc.hpp"
#include "verification/verify.hpp"

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>
#include <unistd.h>

namespace pragma {

/// Sorts by time, tells runs of one second apart.
std::string new_run_id(const std::string& path) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S-", &utc);
  timespec precise{};
  clock_gettime(CLOCK_REALTIME, &precise);
  return text + short_hash(path + std::to_string(::getpid()) + std::to_string(precise.tv_nsec)).substr(0, 6);
}

struct conductor_state {
  static inline const char* name = "conductor";
  using pointer = conductor_actor::stateful_pointer<conductor_state>;
  using clock = std::chrono::steady_clock;

  pointer self = nullptr;
  conductor_agents agents;
  verifier_actor verifier;
  profiler_actor profiler;
  coder_actor coder;
  loop run;
  caf::typed_response_promise<run_result> promise;
  struct made {
    coded answer;
    verdict result;
  };
  std::vector<made> batch;             ///< made side by side, not measured yet
  size_t open_verdicts = 0;
  std::optional<error> failed;         ///< of a verification
  bool running = false, halted = false;
  int restarts = 0;
  clock::time_point confirm_started;

  // -- talking ------------------------------------------------------------------------------------------------------

  /// Of the attempt that is being made, where the event does not say which.
  void tell(run_event event) {
    if (event.attempt == 0) event.attempt = run.attempt();
    event.time = utc_now();
    if (agents.observer) self->send(agents.observer, event_atom::value, std::move(event));
  }
  void tell(const std::string& what, const std::string& text, int attempt = 0) {
    run_event event;
    event.what = what;
    event.attempt = attempt;
    event.text = text;
    tell(std::move(event));
  }

  /// True when the error means that the agent is gone, not that it refused.
  static bool agent_died(const caf::error& e) {
    return e == caf::sec::request_receiver_down || e == caf::sec::runtime_error ||
           e.category() == caf::atom("exit");
  }

  /// Asks an agent. When it dies meanwhile, starts another and asks the same again: requests are idempotent.
  template <class Result, class Agent, class Atom, class Payload>
  void ask(Agent conductor_state::*which, std::function<Agent()> conductor_agents::*factory, Atom atom, Payload payload,
           std::function<void(const Result&)> next, std::function<void(const error&)> refused) {
    if (!(this->*which)) this->*which = (agents.*factory)();
    const auto asked = this->*which;
    self->request(asked, agents.request_timeout, atom, payload)
        .then([next](const Result& result) { next(result); },
              [=, this](const caf::error& e) {
                if (!agent_died(e) || restarts >= agents.max_restarts) return refused(from_caf(self->system(), e));
                if (this->*which == asked) { // else another request that died with it has started one already
                  ++restarts;
                  this->*which = (agents.*factory)();
                  tell("note", "an agent died; started another and asked again");
                }
                ask<Result>(which, factory, atom, payload, next, refused);
              });
  }
  std::function<void(const error&)> or_fail() {
    return [this](const error& e) { end_with(e); };
  }

  /// Durable first, then `next`.
  void save(std::function<void()> next) {
    self->request(agents.store, agents.request_timeout, save_atom::value, run.header())
        .then([next](bool) { next(); }, [this](const caf::error& e) { deliver_error(from_caf(self->system(), e)); });
  }

  // -- the loop -----------------------------------------------------------------------------------------------------

  void begin(run_request request) {
    running = true;
    halted = false;
    restarts = 0;
    if (request.id.empty()) {
      auto id = request.new_id.empty() ? new_run_id(request.load.path) : request.new_id;
      run.begin(std::move(request), std::move(id), utc_now());
      return save([this] { load(); });
    }
    self->request(agents.store, agents.request_timeout, read_atom::value, request.id)
        .then(
            [this, request](const run_result& stored) {
              run.resume(stored, request);
              tell("note", "resuming " + request.id + " after attempt " + std::to_string(run.history().size()));
              load();
            },
            [this](const caf::error& e) { deliver_error(from_caf(self->system(), e)); });
  }

  void load() {
    tell("loading", run.header().request.load.path);
    ask<loaded_task>(
        &conductor_state::verifier, &conductor_agents::verifier, load_atom::value, run.header().request.load,
        [this](const loaded_task& task) {
          const auto& before = run.header().environment.task.id;
          if (!before.empty() && before != task.task.id)
            return end_with({ec::task_invalid, "the task file changed since this run began: " + task.task.path, "start a new run with `pragma optimize`"});
          run.loaded(task);
          run_event event;
          event.what = "loaded";
          event.loaded = task;
          tell(std::move(event));
          if (!task.unverifiable.empty()) return end_with(unverifiable_task(task.unverifiable));
          recall();
        },
        or_fail());
  }

  /// A store that cannot answer costs the head start, nothing else.
  void recall() {
    const auto machine = run.wanted_scores();
    if (machine.empty()) return recall_schedules();
    self->request(agents.store, agents.request_timeout, scores_atom::value, machine)
        .then(
            [this](const machine_scores& known) {
              run.scored(known);
              recall_schedules();
            },
            [this](const caf::error&) { recall_schedules(); });
  }

  void recall_schedules() {
    const auto family = run.wanted_schedules();
    if (family.empty()) return setup();
    self->request(agents.store, agents.request_timeout, recall_atom::value, family)
        .then(
            [this](const won_schedules& known) {
              run.recalled(known);
              setup();
            },
            [this](const caf::error&) { setup(); });
  }

  void setup() {
    ask<std::string>(
        &conductor_state::coder, &conductor_agents::coder, setup_atom::value, run.coder_request(),
        [this](const std::string& who) {
          tell("note", "coder: " + who);
          attempt();
        },
        or_fail());
  }

  void attempt() {
    if (halted) return end("interrupted", "stopped by the user");
    if (const auto reason = run.stop_reason(); !reason.empty()) return confirm(reason);
    batch.clear();
    code();
  }

  /// As many candidates as are verified side by side; then all of them to the Verifier.
  void code() {
    const auto& request = run.header().request;
    const size_t room = static_cast<size_t>(std::max(1, request.stop.attempts - static_cast<int>(run.history().size())));
    const size_t wanted = std::min<size_t>(static_cast<size_t>(std::max(1, request.parallel)), room);
    if (batch.size() >= wanted) return verify();
    tell("coding", "", run.attempt() + static_cast<int>(batch.size()));
    ask<coded>(
        &conductor_state::coder, &conductor_agents::coder, code_atom::value, run.code_request_now(!batch.empty()),
        [this](const coded& answer) {
          if (answer.exhausted) return batch.empty() ? confirm("nothing is left to try") : verify();
          batch.push_back({answer, {}});
          code();
        },
        [this](const error& e) {
          if (!batch.empty()) return verify();
          // A spent budget or a silent endpoint ends the search, not the run: what was found is still confirmed.
          if (e.code == ec::interrupted || !run.best()) return end_with(e);
          confirm("the coder stopped: " + e.message);
        });
  }

  void verify() {
    open_verdicts = batch.size();
    for (size_t i = 0; i < batch.size(); ++i) {
      tell("verifying", batch[i].answer.candidate.rationale, run.attempt() + static_cast<int>(i));
      ask<verdict>(
          &conductor_state::verifier, &conductor_agents::verifier, verify_atom::value, batch[i].answer.candidate,
          [this, i](const verdict& v) {
            batch[i].result = v;
            verdict_came();
          },
          [this](const error& e) {
            if (!failed) failed = e;
            verdict_came();
          });
    }
  }

  void verdict_came() {
    if (--open_verdicts > 0) return;
    if (failed) return end_with(*std::exchange(failed, std::nullopt));
    next_of_batch();
  }

  /// Measured one after the other; each is an attempt of its own.
  void next_of_batch() {
    if (batch.empty()) return attempt();
    const auto one = std::move(batch.front());
    batch.erase(batch.begin());
    run.coded_now(one.answer);
    run.verified(one.result);
    if (run.needs_measurement()) measure();
    else conclude();
  }

  void measure() {
    tell("measuring", "");
    ask<measurement>(
        &conductor_state::profiler, &conductor_agents::profiler, measure_atom::value, run.measure_request_now(),
        [this](const measurement& m) {
          run.measured(m);
          conclude();
        },
        [this](const error& e) {
          // A candidate that fails is a failed attempt, whoever says so and in which words.
          if (e.code != ec::measurement_failed && e.code != ec::candidate_failed) return end_with(e);
          run.not_measured(e);
          conclude();
        });
  }

  void conclude() {
    run.conclude(utc_now());
    const auto wanted = run.wanted_documentation();
    if (!agents.knowledge || wanted.metrics.empty()) return keep(run.documented({}, {}));
    self->request(agents.knowledge, agents.knowledge_timeout, explain_atom::value, wanted)
        .then([this, wanted](const looked_up& answer) { keep(run.documented(wanted, answer)); },
              [this](const caf::error& e) {
                tell("note", "going on without documentation: " +
                                 (e == caf::sec::request_timeout ? std::string("the knowledge base did not answer in time") : from_caf(self->system(), e).message));
                agents.knowledge = nullptr; // said once; asking again would cost each attempt the same wait
                keep(run.documented({}, {}));
              });
  }

  /// Durable before the next attempt.
  void keep(const iteration_record& record) {
    const auto* retimed = run.retimed();
    if (!retimed) return keep_last(record);
    self->request(agents.store, agents.request_timeout, save_atom::value, run.header(), *retimed)
        .then([this, record](bool) { keep_last(record); }, [this](const caf::error& e) { deliver_error(from_caf(self->system(), e)); });
  }

  void keep_last(const iteration_record& record) {
    self->request(agents.store, agents.request_timeout, save_atom::value, run.header(), record)
        .then(
            [this, record](bool) {
              run_event event;
              event.what = "iteration";
              event.attempt = record.number; // it is over: the next one has begun
              event.iteration = record;
              tell(std::move(event));
              next_of_batch();
            },
            [this](const caf::error& e) { deliver_error(from_caf(self->system(), e)); });
  }

  void confirm(const std::string& reason) {
    if (!run.best() || run.still_confirmed()) return end("finished", reason);
    if (halted) return end("interrupted", "stopped by the user");
    tell("confirming", "attempt " + std::to_string(run.header().best_attempt), run.header().best_attempt);
    confirm_started = clock::now();
    ask<confirmation>(
        &conductor_state::profiler, &conductor_agents::profiler, confirm_atom::value, run.best_candidate(),
        [this, reason](const confirmation& c) {
          const double took = std::chrono::duration<double>(clock::now() - confirm_started).count();
          confirmed(c, took, reason);
        },
        [this, reason](const error& e) {
          if (e.code != ec::candidate_failed && e.code != ec::timeout) return end_with(e);
          confirmation c; // it died on the way: a refusal like any other
          c.verdict.stage = verdict_stage::run;
          c.verdict.reason = e.message;
          confirmed(c, std::chrono::duration<double>(clock::now() - confirm_started).count(), reason);
        });
  }

  /// A refusal is durable before the next one is tried, so that a run that is resumed does not take it for the best again.
  void confirmed(const confirmation& c, double took, const std::string& reason) {
    if (run.confirmed(c, took)) return end("finished", reason);
    tell("note", "the best version failed its confirmation: " + c.verdict.reason);
    const auto* refused = run.refused();
    if (!refused) return confirm(reason);
    self->request(agents.store, agents.request_timeout, save_atom::value, run.header(), *refused)
        .then([this, reason](bool) { confirm(reason); }, [this](const caf::error& e) { deliver_error(from_caf(self->system(), e)); });
  }

  // -- the end ------------------------------------------------------------------------------------------------------

  void end_with(const error& e) {
    if (e.code == ec::interrupted || halted) return end("interrupted", "stopped by the user");
    run.finish(e.code == ec::torch_only || e.code == ec::left_as_it_is ? "left as it is" : "failed", e.message, utc_now());
    self->request(agents.store, agents.request_timeout, save_atom::value, run.header())
        .then([this, e](bool) { deliver_error(e); }, [this, e](const caf::error&) { deliver_error(e); });
  }

  void end(const std::string& state, const std::string& reason) {
    run.finish(state, reason, utc_now());
    save([this] {
      const auto [family, won] = run.lesson();
      const auto finish = [this] {
        running = false;
        promise.deliver(run.result());
      };
      const auto deliver = [this, finish] {
        const auto learned = run.outcomes();
        if (learned.outcomes.empty()) return finish();
        self->request(agents.store, agents.request_timeout, scores_atom::value, run.header().environment.limits.cpu, learned)
            .then([finish](bool) { finish(); }, [finish](const caf::error&) { finish(); });
      };
      if (family.empty()) return deliver();
      self->request(agents.store, agents.request_timeout, remember_atom::value, family, won)
          .then([deliver](bool) { deliver(); }, [deliver](const caf::error&) { deliver(); });
    });
  }

  void deliver_error(const error& e) {
    running = false;
    promise.deliver(to_caf(e));
  }
};

static conductor_actor::behavior_type conductor(conductor_actor::stateful_pointer<conductor_state> self, conductor_agents agents) {
  self->state.self = self;
  self->state.agents = std::move(agents);
  return {
      [self](begin_atom, const run_request& request) -> caf::typed_response_promise<run_result> {
        auto& state = self->state;
        auto promise = self->make_response_promise<run_result>();
        if (state.running) {
          promise.deliver(to_caf({ec::locked, "this conductor is already busy with run " + state.run.header().id, ""}));
          return promise;
        }
        state.promise = promise;
        state.begin(request);
        return promise;
      },
      [self](halt_atom) { self->state.halted = true; },
  };
}

conductor_actor spawn_conductor(caf::actor_system& system, conductor_agents agents) {
  return system.spawn(conductor, std::move(agents));
}

} // namespace pragma
