// The Conductor against scripted agents on CAF's deterministic scheduler: no threads, no Torch, no clock.
#include "actors/conductor.hpp"
#include "actors/loop.hpp"

#include <caf/scheduler/test_coordinator.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <deque>

using namespace pragma;

namespace {

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
  pragma::task task;                               ///< what the verifier loads
  std::vector<metric> metrics;                     ///< of every profile
  std::vector<std::string> asked;                  ///< metrics, in the last measure request
  std::vector<code_request> requests;
  std::vector<coder_setup> setups;
  std::map<std::string, run_result> stored;
  std::vector<std::string> compilers;              ///< of the machine that builds: "gcc 12.2.0"
  std::vector<std::string> told;                   ///< events, as "measuring 2"
  int verifiers = 0;
};

verifier_actor::behavior_type mock_verifier(verifier_actor::pointer self, script* s) {
  return {[s](load_atom, const load_request& request) -> caf::result<loaded_task> {
            s->log.push_back("load");
            loaded_task t;
            t.task.id = "task-hash";
            t.task.path = request.path;
            t.task.graph = s->task.graph;
            t.task.inputs = s->task.inputs;
            t.unverifiable = s->unverifiable;
            t.compilers = s->compilers;
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

interval around(double value) { return {value, value * 0.99, value * 1.01}; }

profiler_actor::behavior_type mock_profiler(profiler_actor::pointer, script* s) {
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

coder_actor::behavior_type mock_coder(coder_actor::pointer, script* s) {
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
            s->sources.pop_front();
            return answer;
          }};
}

store_actor::behavior_type mock_store(store_actor::pointer, script* s) {
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
          }};
}

observer_actor::behavior_type mock_observer(observer_actor::pointer, script* s) {
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

} // namespace

TEST_CASE_METHOD(fixture, "bad code, then a slow kernel, then a faster one: the best is kept and confirmed") {
  s.sources = {"broken", "fast", "slow", "fastest"};
  s.speedups = {{"fast", 2.0}, {"slow", 1.2}, {"fastest", 3.0}};
  const auto result = optimize();
  REQUIRE(result);
  REQUIRE(result->iterations.size() == 4);
  CHECK(result->header.state == "finished");
  CHECK(result->header.best_attempt == 4);
  CHECK(result->header.confirmed);
  CHECK(result->header.final.time.speedup.value == Approx(3.0));
  CHECK(result->iterations[0].stage == "build");
  CHECK(result->iterations[1].new_best);
  CHECK_FALSE(result->iterations[2].new_best);
  CHECK(result->iterations[3].new_best);
  CHECK(s.log.back() == "confirm fastest");
}

TEST_CASE_METHOD(fixture, "a candidate that fails in its measurement costs an attempt, and not the run") {
  s.sources = {"a", "dies", "b"};
  s.speedups = {{"a", 1.0}, {"dies", 3.0}, {"b", 2.0}};
  s.fails_in_measurement = {"dies"};
  const auto result = optimize();
  REQUIRE(result);
  REQUIRE(result->iterations.size() == 3);
  CHECK(result->iterations[1].stage == "measure");
  CHECK_FALSE(result->iterations[1].new_best);
  CHECK(result->header.state == "finished");
  CHECK(s.log.back() == "confirm b");
}

TEST_CASE_METHOD(fixture, "what is told of an attempt has that attempt's number") {
  s.sources = {"a", "broken", "b"};
  s.speedups = {{"a", 1.0}, {"b", 2.0}};
  REQUIRE(optimize());
  const std::vector<std::string> attempts = {"coding 1", "verifying 1", "measuring 1", "iteration 1", "coding 2", "verifying 2", "iteration 2",
                                             "coding 3", "verifying 3", "measuring 3", "iteration 3"};
  std::vector<std::string> told;
  for (const auto& event : s.told)
    if (event.rfind("loa", 0) != 0 && event.rfind("note", 0) != 0) told.push_back(event);
  REQUIRE(told.size() > attempts.size());
  told.resize(attempts.size());
  CHECK(told == attempts);
}

TEST_CASE_METHOD(fixture, "the coder is told which compilers the machine has that builds") {
  s.sources = {"a"};
  s.speedups = {{"a", 1.0}};
  s.compilers = {"gcc 12.2.0", "clang 14.0.6"};
  REQUIRE(optimize());
  REQUIRE_FALSE(s.setups.empty());
  CHECK(s.setups.front().compilers == std::vector<std::string>{"gcc", "clang"});
}

TEST_CASE_METHOD(fixture, "every attempt is saved before the next one is asked for") {
  s.sources = {"a", "b"};
  s.speedups = {{"a", 1.0}, {"b", 2.0}};
  REQUIRE(optimize());
  const std::vector<std::string> expected_log = {"load", "code", "verify a", "measure a", "save 1", "code", "verify b", "measure b", "save 2", "code", "confirm b"};
  CHECK(s.log == expected_log);
}

TEST_CASE_METHOD(fixture, "candidates side by side: made and verified together, measured one by one, and the coder learns of all") {
  s.sources = {"a", "broken", "b", "c", "d"};
  s.speedups = {{"a", 1.0}, {"b", 2.0}, {"c", 1.5}, {"d", 1.2}};
  run_request request;
  request.parallel = 3;
  request.stop.attempts = 5;
  const auto result = optimize(request);
  REQUIRE(result);
  const std::vector<std::string> expected_log = {"load", "code", "code", "code", "verify a", "verify broken", "verify b", "measure a", "save 1", "save 2", "measure b", "save 3",
                                                 "code", "code", "verify c", "verify d", "measure c", "save 4", "measure d", "save 5", "confirm b"};
  CHECK(s.log == expected_log);
  CHECK(result->header.best_attempt == 3);
  REQUIRE(s.requests.size() == 5);
  CHECK_FALSE(s.requests[1].has_last); // beside the first: nothing was learned in between
  REQUIRE(s.requests[3].before.size() == 2);
  CHECK(s.requests[3].before[0].last_passed);
  CHECK_FALSE(s.requests[3].before[1].last_passed);
  CHECK(s.requests[3].last_was_best);
}

TEST_CASE_METHOD(fixture, "a verifier that dies with several requests in flight is replaced once, and each candidate is judged once") {
  s.sources = {"a", "b", "c"};
  s.speedups = {{"a", 1.0}, {"b", 2.0}, {"c", 3.0}};
  s.verifier_deaths = 1;
  run_request request;
  request.parallel = 3;
  const auto result = optimize(request);
  REQUIRE(result);
  CHECK(result->iterations.size() == 3);
  CHECK(s.verifiers == 2);
}

TEST_CASE_METHOD(fixture, "after a finding the conductor asks the profiler for the metrics that would tell more") {
  s.sources = {"first", "broken", "third"};
  s.speedups = {{"first", 1.0}, {"third", 2.0}};
  s.metrics = {{"topdown.frontend_bound", 45, "%", "perf 6.1", provenance::measured, ""},
               {"topdown.retiring", 30, "%", "perf 6.1", provenance::measured, ""}};
  const auto result = optimize();
  REQUIRE(result);
  REQUIRE_FALSE(result->iterations[0].findings.empty());
  CHECK(s.asked == metrics_to_ask(result->iterations[0].findings)); // by the third attempt, past the broken one
  CHECK_FALSE(s.asked.empty());
}

TEST_CASE_METHOD(fixture, "a schedule that won is handed to the next run on such a task, unless it starts cold") {
  s.task.graph = R"({"inputs": [], "params": [], "constants": [], "nodes": [], "outputs": [], "random": false, "mutated": []})";
  s.task.inputs = {{"x", dtype::float32, {64, 128}}};
  s.schedule = "{\"lanes\": 8}";
  s.sources = {"a"};
  s.speedups = {{"a", 2.0}};
  const auto first = optimize();
  REQUIRE(first);
  CHECK(s.setups.back().known_schedule.empty());
  REQUIRE(s.schedules.size() == 1);

  s.task.inputs = {{"x", dtype::float32, {32, 128}}};
  s.sources = {"a"};
  REQUIRE(optimize());
  CHECK(s.setups.back().known_schedule == s.schedule);
  CHECK(s.setups.back().known_from.find(first->header.id) != std::string::npos);

  run_request cold;
  cold.coder.cold = true;
  s.sources = {"a"};
  REQUIRE(optimize(cold));
  CHECK(s.setups.back().known_schedule.empty());
}

TEST_CASE_METHOD(fixture, "the brief carries the error with its cause, then the best version") {
  s.sources = {"fast", "broken", "last"};
  s.speedups = {{"fast", 2.0}, {"last", 1.0}};
  REQUIRE(optimize());
  REQUIRE(s.requests.size() == 4);
  CHECK_FALSE(s.requests[0].brief.has_code);
  const auto& after_failure = s.requests[2].brief;
  CHECK(after_failure.code.source == "broken");
  CHECK(after_failure.failure_stage == "build");
  CHECK(after_failure.failure.find("'x' was not declared") != std::string::npos);
  CHECK_FALSE(after_failure.repairs.empty());
  CHECK(after_failure.has_best);
  CHECK(after_failure.best.source == "fast");
  CHECK(s.requests[2].failure.find("build") == 0);
}

TEST_CASE_METHOD(fixture, "a verifier that dies is started again and asked the same, nothing is counted twice") {
  s.sources = {"a", "b"};
  s.speedups = {{"a", 1.5}, {"b", 2.0}};
  s.verifier_deaths = 2;
  const auto result = optimize();
  REQUIRE(result);
  CHECK(result->iterations.size() == 2);
  CHECK(result->header.best_attempt == 2);
  CHECK(s.verifiers == 3);
}

TEST_CASE_METHOD(fixture, "an agent that dies again and again ends the run with an error, the record stays") {
  s.sources = {"a", "b"};
  s.speedups = {{"a", 1.5}, {"b", 2.0}};
  s.verifier_deaths = 100;
  const auto result = optimize();
  REQUIRE(!result);
  REQUIRE(s.stored.size() == 1);
  CHECK(s.stored.begin()->second.header.state == "failed");
}

TEST_CASE_METHOD(fixture, "a store that cannot write ends the run at once") {
  s.sources = {"a", "b"};
  s.speedups = {{"a", 1.5}, {"b", 2.0}};
  s.store_full = true;
  const auto result = optimize();
  REQUIRE(!result);
  CHECK(result.error().message.find("No space left") != std::string::npos);
  CHECK(s.log.back() == "save 1");
}

TEST_CASE_METHOD(fixture, "a spent budget ends the search but the best is still confirmed") {
  s.sources = {"a"};
  s.speedups = {{"a", 1.5}};
  s.coder_budget_gone = true;
  const auto result = optimize();
  REQUIRE(result);
  CHECK(result->header.confirmed);
  CHECK(result->header.stop_reason.find("token budget") != std::string::npos);
}

TEST_CASE_METHOD(fixture, "a winner that fails its confirmation is dropped for the next best") {
  s.sources = {"honest", "cheat"};
  s.speedups = {{"honest", 1.5}, {"cheat", 9.0}};
  s.fails_confirmation = {"cheat"};
  const auto result = optimize();
  REQUIRE(result);
  CHECK(result->header.confirmed);
  CHECK(result->header.best_attempt == 1);
  CHECK(result->iterations[1].stage == "confirm");
  // Stored before the next is tried: a run that is resumed does not take the refused one for the best again.
  const auto& kept = s.stored[result->header.id].iterations;
  REQUIRE(kept.size() == 2);
  CHECK(kept[1].stage == "confirm");
  CHECK(kept[1].reason.find("wrong on an unseen seed") != std::string::npos);
  const auto save = std::find(s.log.begin(), s.log.end(), "confirm cheat") + 1;
  REQUIRE(save < s.log.end());
  CHECK(*save == "save 2");
  loop resumed;
  resumed.resume(s.stored[result->header.id], result->header.request);
  REQUIRE(resumed.best());
  CHECK(resumed.best()->number == 1);
}

TEST_CASE_METHOD(fixture, "a run that has a right kernel never ends with none: refusals go on to the fastest that is left") {
  s.sources = {"cheat", "slow", "good", "wrong"};
  s.speedups = {{"cheat", 9.0}, {"slow", 1.2}, {"good", 1.5}}; // only the first was ever a best
  s.fails_confirmation = {"cheat"};
  s.dies_in_confirmation = {"good"};
  const auto result = optimize();
  REQUIRE(result);
  CHECK(result->header.confirmed);
  CHECK(result->header.best_attempt == 2);
  CHECK(result->iterations[0].stage == "confirm");
  CHECK(result->iterations[2].stage == "confirm");
  CHECK(result->iterations[2].reason.find("SIGKILL") != std::string::npos);
  CHECK(s.log.back() == "confirm slow");
}

TEST_CASE_METHOD(fixture, "a task on which a null kernel would pass is refused") {
  s.unverifiable = {"zeros"};
  const auto result = optimize();
  REQUIRE(!result);
  CHECK(result.error().code == ec::task_invalid);
  CHECK(result.error().message.find("zeros") != std::string::npos);
}

TEST_CASE_METHOD(fixture, "the number of attempts is a limit") {
  for (int i = 0; i < 10; ++i) {
    s.sources.push_back("v" + std::to_string(i));
    s.speedups["v" + std::to_string(i)] = 1.0 + 0.1 * i;
  }
  run_request request;
  request.stop.attempts = 3;
  const auto result = optimize(request);
  REQUIRE(result);
  CHECK(result->iterations.size() == 3);
  CHECK_FALSE(result->header.stop_reason.empty());
}

TEST_CASE_METHOD(fixture, "a run that was stopped goes on at the next attempt with the same best") {
  for (int i = 0; i < 6; ++i) {
    s.sources.push_back("v" + std::to_string(i));
    s.speedups["v" + std::to_string(i)] = i == 0 ? 5.0 : 1.0;
  }
  const auto stopped = optimize({}, 25);
  REQUIRE(stopped);
  CHECK(stopped->header.state == "interrupted");
  const auto done = stopped->iterations.size();
  REQUIRE(done >= 1);
  REQUIRE(done < 6);

  run_request again = stopped->header.request;
  const auto result = optimize(again);
  REQUIRE(result);
  CHECK(result->header.id == stopped->header.id);
  CHECK(result->header.state == "finished");
  CHECK(result->iterations.size() == 6);
  CHECK(result->iterations[done].number == static_cast<int>(done) + 1);
  CHECK(result->header.best_attempt == 1);
  REQUIRE(s.setups.size() == 2);
  CHECK(s.setups[1].history.size() == done);
  CHECK(s.setups[1].tried.size() == done);
}

TEST_CASE_METHOD(fixture, "resuming a run that does not exist says so") {
  run_request request;
  request.id = "20200101-000000-abcdef";
  const auto result = optimize(request);
  REQUIRE(!result);
  CHECK(result.error().code == ec::not_found);
}

TEST_CASE("payloads survive the wire, malformed ones are refused") {
  run_header h;
  h.id = "x";
  h.final.time.speedup = around(2);
  run_header back;
  REQUIRE(from_wire(to_wire(h), back));
  CHECK(back.final.time.speedup.low == h.final.time.speedup.low);
  CHECK_FALSE(from_wire(std::string("garbage"), back));
  CHECK_FALSE(from_wire(to_wire(std::vector<iteration_record>(1)), back));
}

TEST_CASE_METHOD(fixture, "what could not be established is no failure, and the coder hears nothing of it") {
  s.sources = {"a", "b"};
  s.unknown = {"a"};
  s.speedups = {{"b", 2}};
  auto result = optimize();
  REQUIRE(result);
  REQUIRE(result->iterations.size() == 2);
  const auto& first = result->iterations[0];
  CHECK(first.stage == "not established");
  CHECK_FALSE(first.failed());
  CHECK(first.actions.empty());
  CHECK(first.reasoning.front().find("Not established") != std::string::npos);
  CHECK_FALSE(s.requests[1].has_last);
  CHECK(s.requests[1].failure.empty());
  CHECK(result->header.best_attempt == 2);
}

TEST_CASE_METHOD(fixture, "a handful of samples of a busy machine is no headline") {
  s.sources = {"a"};
  s.speedups = {{"a", 5.97}};
  s.busy_confirming = {"a"};
  auto result = optimize();
  REQUIRE(result);
  CHECK(result->header.confirmed);
  CHECK(result->header.final.time.speedup.value == Approx(5.97)); // the clean figure stays, and says so
  CHECK_FALSE(result->header.final.time.contended);
  CHECK(result->header.final.time.note.find("2 of 399") != std::string::npos);
}

TEST_CASE_METHOD(fixture, "a winner that was never timed on a quiet machine is not established") {
  s.sources = {"a"};
  s.speedups = {{"a", 5.97}};
  s.busy_measuring = s.busy_confirming = {"a"};
  auto result = optimize();
  REQUIRE(result);
  CHECK_FALSE(result->header.confirmed);
  CHECK(result->header.best_attempt == 1); // it has not failed
  CHECK(result->iterations[0].passed());
  CHECK(result->header.not_confirmed.find("too busy") != std::string::npos);
}

TEST_CASE_METHOD(fixture, "a best that was timed under contention is timed again, and its new figure is kept") {
  s.sources = {"a", "b"};
  s.speedups = {{"a", 2}, {"b", 1}};
  s.busy_measuring = {"a"};
  auto result = optimize();
  REQUIRE(result);
  CHECK(result->iterations[0].code.measured.time.speedup.value == Approx(1.8));
  CHECK(s.stored[result->header.id].iterations[0].code.measured.time.speedup.value == Approx(1.8));
}
