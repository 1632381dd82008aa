// The Conductor against scripted agents on CAF's deterministic scheduler: no threads, no Torch, no clock.
#include "scripted_agents.hpp"

#include "kernels/parts.hpp"

using namespace pragma;
using namespace pragma::test;

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
  CHECK(result->iterations[0].stage() == "build");
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
  CHECK(result->iterations[1].stage() == "measure");
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

TEST_CASE_METHOD(fixture, "what following a finding brought is kept for the machine, and weighs the next run's findings") {
  s.cpu = "a processor";
  s.metrics = {{"topdown.frontend_bound", 45, "%", "perf 6.1", provenance::measured, ""}};
  s.answers = "front_end_bound";
  const auto run = [&] {
    s.sources = {"a", "b", "c", "d"};
    s.speedups = {{"a", 2.0}, {"b", 1.9}, {"c", 1.8}, {"d", 1.7}};
    return optimize();
  };
  const auto first = run();
  REQUIRE(first);
  REQUIRE_FALSE(first->iterations[0].findings.empty());
  CHECK(first->header.scores.empty());
  const auto confidence = first->iterations[0].findings[0].confidence;
  REQUIRE(s.scores["a processor"].runs.size() == 1);
  CHECK(s.scores["a processor"].runs[0].run == first->header.id);
  const auto scores = scores_of(s.scores["a processor"]);
  REQUIRE(scores.size() == 1);
  CHECK(scores[0].followed == 3); // none of them helped
  CHECK(scores[0].better == 0);
  const auto second = run();
  REQUIRE(second);
  REQUIRE(second->header.scores.size() == 1);
  CHECK(second->iterations[0].findings[0].confidence == Approx(confidence * weight_of(scores, "front_end_bound")));
  CHECK(second->iterations[0].findings[0].confidence < confidence);
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

TEST_CASE_METHOD(fixture, "a task that Torch keeps has not failed: its run is listed as left as it is") {
  for (const auto& [code, state] : std::map<ec, std::string>{{ec::torch_only, "left as it is"}, {ec::left_as_it_is, "left as it is"}, {ec::task_invalid, "failed"}}) {
    s.stored.clear();
    s.not_loaded = error{code, "fft_rfft has no kernel", ""};
    REQUIRE(!optimize());
    REQUIRE(s.stored.size() == 1);
    CHECK(s.stored.begin()->second.header.state == state);
    CHECK(s.stored.begin()->second.header.stop_reason == "fft_rfft has no kernel");
  }
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
  CHECK(result->iterations[1].stage() == "confirm");
  // Stored before the next is tried: a run that is resumed does not take the refused one for the best again.
  const auto& kept = s.stored[result->header.id].iterations;
  REQUIRE(kept.size() == 2);
  CHECK(kept[1].stage() == "confirm");
  CHECK(kept[1].verdict.reason.find("wrong on an unseen seed") != std::string::npos);
  const auto save = std::find(s.log.begin(), s.log.end(), "confirm cheat") + 1;
  REQUIRE(save < s.log.end());
  CHECK(*save == "save 2");
  loop resumed;
  resumed.resume(s.stored[result->header.id], result->header.request);
  REQUIRE(resumed.best());
  CHECK(resumed.best()->number == 1);
}

TEST_CASE_METHOD(fixture, "a candidate in parts, whose only figure is as called, is compared with the best's figure as called") {
  s.sources = {"one kernel"};
  s.speedups = {{"one kernel", 1.3}}; // from C
  auto ended = optimize();
  REQUIRE(ended);
  ended->header.final.as_called = true;
  ended->header.final.time.speedup = {0.9, 0.88, 0.92}; // from Python
  for (const std::string language : {parts_language, "cpp"}) {
    loop resumed;
    resumed.resume(*ended, ended->header.request);
    coded next;
    next.candidate.language = language;
    resumed.coded_now(next);
    CHECK(resumed.measure_request_now().best_speedup.value == Approx(language == parts_language ? 0.9 : 1.3));
  }
  // Where the drop-in was not called there is only the kernel's.
  ended->header.final.as_called = false;
  loop resumed;
  resumed.resume(*ended, ended->header.request);
  coded next;
  next.candidate.language = parts_language;
  resumed.coded_now(next);
  CHECK(resumed.measure_request_now().best_speedup.value == Approx(1.3));
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
  CHECK(result->iterations[0].stage() == "confirm");
  CHECK(result->iterations[2].stage() == "confirm");
  CHECK(result->iterations[2].verdict.reason.find("SIGKILL") != std::string::npos);
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
  CHECK_FALSE(s.setups[0].resumed);
  CHECK(s.setups[1].resumed);
  CHECK(s.setups[1].used.prompt_tokens == static_cast<int64_t>(10 * done)); // a budget goes on, too
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
  CHECK(first.stage() == "not established");
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

TEST_CASE_METHOD(fixture, "a run that goes on with its parts keeps the confirmation of its best, unless they are better") {
  for (const double together : {1.0, 3.0}) {
    s.sources = {"whole"};
    s.speedups = {{"whole", 2.0}, {"parts", together}};
    const auto alone = optimize();
    REQUIRE(alone);
    CHECK(alone->header.confirmed);
    run_request request;
    request.id = alone->header.id;
    request.stop.attempts = 2;
    request.coder.given.resize(1);
    s.sources = {"parts"};
    s.log.clear();
    const auto both = optimize(request);
    REQUIRE(both);
    CHECK(both->header.confirmed);
    CHECK(both->header.final.time.speedup.value == (together > 2 ? together : 2.0));
    CHECK(std::count_if(s.log.begin(), s.log.end(), [](const std::string& said) { return said.rfind("confirm", 0) == 0; }) == (together > 2 ? 1 : 0));
    // Somebody's `pragma resume` on another day confirms again.
    request.coder.given.clear();
    request.stop.attempts = 3;
    s.sources.clear();
    s.log.clear();
    REQUIRE(optimize(request));
    CHECK(s.log.back().rfind("confirm", 0) == 0);
  }
}
