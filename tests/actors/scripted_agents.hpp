// Agents that answer from a script, for tests of the Conductor, and what they saw.
#pragma once

#include "actors/conductor.hpp"
#include "actors/loop.hpp"

#include <caf/scheduler/test_coordinator.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <deque>

namespace pragma::test {

/// What the mocks answer and what they saw, in order.
struct script {
  std::deque<std::string> sources;                 ///< what the coder writes; then it is exhausted
  std::map<std::string, double> speedups;          ///< by source; a source without one fails verification
  std::set<std::string> fails_confirmation, dies_in_confirmation, busy_measuring, busy_confirming; ///< busy: other work ran, the whole time
  std::set<std::string> unknown;       ///< verified in vain
  std::set<std::string> fails_in_measurement;      ///< as an error, not as a verdict
  int verifier_deaths = 0;                         ///< the next so many verify requests kill the verifier
  bool store_full = false, coder_budget_gone = false;
  std::vector<std::string> unverifiable;
  std::vector<std::string> log;
  std::map<std::string, won_schedules> schedules;  ///< by family
  std::string schedule;                            ///< of every candidate
  std::map<std::string, machine_scores> scores;    ///< by machine
  std::string cpu, answers;                        ///< the machine; the finding that every candidate sets out to remove
  pragma::task task;                               ///< what the verifier loads
  std::optional<error> not_loaded;                 ///< ... or says instead
  std::vector<metric> metrics;                     ///< of every profile
  std::vector<std::string> asked;                  ///< metrics, in the last measure request
  std::vector<code_request> requests;
  std::vector<coder_setup> setups;
  std::map<std::string, run_result> stored;
  std::vector<std::string> compilers;              ///< of the machine that builds: "gcc 12.2.0"
  std::vector<std::string> told;                   ///< events, as "measuring 2"
  int verifiers = 0;
};

inline verifier_actor::behavior_type mock_verifier(verifier_actor::pointer self, script* s) {
  return {[s](load_atom, const load_request& request) -> caf::result<loaded_task> {
            s->log.push_back("load");
            if (s->not_loaded) return to_caf(*s->not_loaded);
            loaded_task t;
            t.task.id = "task-hash";
            t.task.path = request.path;
            t.task.graph = s->task.graph;
            t.task.inputs = s->task.inputs;
            t.unverifiable = s->unverifiable;
            t.compilers = s->compilers;
            t.limits.cpu = s->cpu;
            return t;
          },
          [s, self](verify_atom, const candidate& c) -> caf::result<verdict> {
            s->log.push_back("verify " + c.source);
            if (s->verifier_deaths > 0) {
              --s->verifier_deaths;
              self->quit(caf::exit_reason::kill);
              return caf::sec::runtime_error;
            }
            verdict v;
            if (s->unknown.count(c.source)) {
              v.stage = verdict_stage::not_established;
              v.why_not = doubt::machine_busy;
              v.reason = "the machine was busy";
              return v;
            }
            if (s->speedups.count(c.source)) v.stage = verdict_stage::passed;
            else {
              v.stage = verdict_stage::build;
              v.reason = "undeclared identifier 'x'";
              v.log = "candidate.cpp:3:5: error: 'x' was not declared in this scope";
            }
            return v;
          }};
}

inline interval around(double value) { return {value, value * 0.99, value * 1.01}; }

inline profiler_actor::behavior_type mock_profiler(profiler_actor::pointer, script* s) {
  return {[s](measure_atom, const measure_request& r) -> caf::result<measurement> {
            s->log.push_back("measure " + r.candidate.source);
            if (s->fails_in_measurement.count(r.candidate.source)) return to_caf({ec::candidate_failed, "the candidate was killed by SIGKILL", ""});
            measurement m;
            m.verdict = r.verdict;
            m.profile.candidate = r.candidate.id();
            m.profile.time.speedup = around(s->speedups[r.candidate.source]);
            m.profile.time.candidate_seconds = 1e-3 / s->speedups[r.candidate.source];
            m.profile.time.baseline_seconds = 1e-3;
            m.profile.time.contended = s->busy_measuring.count(r.candidate.source) > 0;
            if (r.best_contended) m.best_again.speedup = around(s->speedups[r.best.source] * 0.9);
            m.profile.metrics = s->metrics;
            s->asked = r.asked_metrics;
            if (r.has_best) {
              m.compared = true;
              m.against_best.speedup = around(s->speedups[r.candidate.source] / s->speedups[r.best.source]);
            }
            return m;
          },
          [s](confirm_atom, const candidate& c) -> caf::result<confirmation> {
            s->log.push_back("confirm " + c.source);
            if (s->dies_in_confirmation.count(c.source)) return to_caf({ec::candidate_failed, "the candidate was killed by SIGKILL", ""});
            confirmation result;
            result.verdict.stage = s->fails_confirmation.count(c.source) ? verdict_stage::compare : verdict_stage::passed;
            result.verdict.reason = "wrong on an unseen seed";
            result.time.speedup = around(s->speedups[c.source]);
            if (s->busy_confirming.count(c.source)) {
              result.time.speedup = around(7.64);
              result.time.contended = true;
              result.time.blocks_accepted = 2;
              result.time.blocks_tried = 399;
            }
            return result;
          }};
}

inline coder_actor::behavior_type mock_coder(coder_actor::pointer, script* s) {
  return {[s](setup_atom, const coder_setup& setup) -> caf::result<std::string> {
            s->setups.push_back(setup);
            return std::string("mock");
          },
          [s](code_atom, const code_request& request) -> caf::result<coded> {
            s->log.push_back("code");
            s->requests.push_back(request);
            coded answer;
            if (s->sources.empty()) {
              if (s->coder_budget_gone) return to_caf({ec::limit_exceeded, "token budget of 10 used up", ""});
              answer.exhausted = true;
              return answer;
            }
            answer.candidate.source = s->sources.front();
            answer.candidate.schedule = s->schedule;
            answer.candidate.answers = s->answers;
            answer.usage.prompt_tokens = 10;
            s->sources.pop_front();
            return answer;
          }};
}

inline store_actor::behavior_type mock_store(store_actor::pointer, script* s) {
  return {[s](save_atom, const run_header& h) -> caf::result<bool> {
            s->stored[h.id].header = h;
            return true;
          },
          [s](save_atom, const run_header& h, const iteration_record& r) -> caf::result<bool> {
            s->log.push_back("save " + std::to_string(r.number));
            if (s->store_full) return to_caf({ec::io_error, "No space left on device", ""});
            s->stored[h.id].header = h;
            auto& kept = s->stored[h.id].iterations;
            const auto same = std::find_if(kept.begin(), kept.end(), [&](const auto& k) { return k.number == r.number; });
            if (same != kept.end()) *same = r;
            else kept.push_back(r);
            return true;
          },
          [s](read_atom, const std::string& id) -> caf::result<run_result> {
            if (!s->stored.count(id)) return to_caf({ec::not_found, "no run " + id, ""});
            return s->stored[id];
          },
          [s](recall_atom, const std::string& family) -> caf::result<won_schedules> {
            s->log.push_back("recall");
            return s->schedules[family];
          },
          [s](remember_atom, const std::string& family, const won_schedule& won) -> caf::result<bool> {
            remember(s->schedules[family], won);
            return true;
          },
          [s](scores_atom, const std::string& machine) -> caf::result<machine_scores> { return s->scores[machine]; },
          [s](scores_atom, const std::string& machine, const scored_run& run) -> caf::result<bool> {
            learn(s->scores[machine], run);
            return true;
          }};
}

inline observer_actor::behavior_type mock_observer(observer_actor::pointer, script* s) {
  return {[s](event_atom, const run_event& e) { s->told.push_back(e.what + " " + std::to_string(e.attempt)); }};
}

struct fixture {
  script s;
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;
  conductor_actor head;

  fixture() {
    config.set("scheduler.policy", caf::atom("testing"));
    system = std::make_unique<caf::actor_system>(config);
    conductor_agents agents;
    auto& sys = *system;
    agents.verifier = [this, &sys] {
      ++s.verifiers;
      return sys.spawn(mock_verifier, &s);
    };
    agents.profiler = [this, &sys] { return sys.spawn(mock_profiler, &s); };
    agents.coder = [this, &sys] { return sys.spawn(mock_coder, &s); };
    agents.store = sys.spawn(mock_store, &s);
    agents.max_restarts = 3;
    agents.observer = observer_ = sys.spawn(mock_observer, &s);
    head = spawn_conductor(sys, agents);
    store_ = agents.store;
  }
  ~fixture() {
    caf::anon_send_exit(head, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(store_, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(observer_, caf::exit_reason::user_shutdown);
    run();
    head = nullptr;
    store_ = nullptr;
    observer_ = nullptr;
  }

  caf::scheduler::test_coordinator& scheduler() { return dynamic_cast<caf::scheduler::test_coordinator&>(system->scheduler()); }
  void run() { scheduler().run(); }

  expected<run_result> optimize(run_request request = {}, int steps = 0) {
    request.load.path = "task.py";
    caf::scoped_actor self{*system};
    auto pending = self->request(head, caf::infinite, begin_atom::value, request);
    if (steps > 0) {
      for (int i = 0; i < steps; ++i) scheduler().try_run_once();
      caf::anon_send(head, halt_atom::value);
    }
    run();
    expected<run_result> result = fail(ec::internal, "no answer");
    pending.receive([&](const run_result& r) { result = r; }, [&](const caf::error& e) { result = fail(from_caf(*system, e)); });
    return result;
  }

private:
  store_actor store_;
  observer_actor observer_;
};

} // namespace pragma::test
