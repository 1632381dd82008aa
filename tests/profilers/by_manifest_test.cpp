// A profiler that PRAGMA has no code for, described by a manifest alone: found, asked for its version and names, run, read.
#include "manifest_fixture.hpp"

using namespace pragma;
namespace fs = std::filesystem;

namespace {

json tally_json() { return parse_json(tally_text(), "tally.json").value(); }

source_result collected(const collect_manifest& m, const manifest_request& request, const run_target& run) {
  source_result out;
  collect_by_manifest(m, request, run, out);
  INFO(json(out.missing).dump());
  CHECK(out.missing.size() <= 2); // one clear line a reason
  return out;
}

} // namespace

TEST_CASE("a made-up profiler is found, runs the candidate, and its own output becomes metrics") {
  const auto m = parsed(tally_json());
  const auto probe = probe_manifest(m);
  CHECK(probe.found);
  CHECK(probe.version == "3.2.1");
  CHECK(probe.obstacle.empty());
  auto folder = temp_dir::create("pragma-test-tally-");
  REQUIRE(folder);
  const auto trace = folder->path() / "ran";
  const auto out = collected(m, {}, runs({"/bin/sh", "-c", "echo once >> " + trace.string()}));
  CHECK(content(trace) == "once\n"); // the candidate ran, and once
  CHECK(out.missing.empty());
  // Steps press 1'009.5, fold 2'009.5, press 3'009.5 us.
  REQUIRE(metric_of(out, "step_time"));
  CHECK(metric_of(out, "step_time")->value == Approx(6028.5e3));
  CHECK(metric_of(out, "step_time")->unit == "ns");
  CHECK(metric_of(out, "step_time")->tool == "tally 3.2.1");
  CHECK(metric_of(out, "step_time")->how == provenance::measured);
  CHECK(metric_of(out, "widgets")->unit == "pieces");
  CHECK(metric_of(out, "slack")->value == Approx((1009.5 * 1005.5 + 2009.5 * 2005.5 + 3009.5 * 3005.5) / 6028.5));
  CHECK(metric_of(out, "launches_per_call")->value == 3);
  CHECK_FALSE(metric_of(out, "rework")); // not asked for
}

TEST_CASE("further metrics, kernels by name, several calls") {
  const auto m = parsed(tally_json());
  manifest_request request;
  request.extra_metrics = {"rework", "depth_max"};
  request.kernel_regex = "^press";
  request.calls = 2;
  const auto out = collected(m, request, runs({"true"}));
  CHECK(metric_of(out, "rework")->value == Approx((1006.5 + 3006.5) / 2));
  CHECK(metric_of(out, "depth_max")->value == 3009.5);
  CHECK(metric_of(out, "launches_per_call")->value == 1);
  CHECK(metric_of(out, "step_time")->note.find("2 calls") != std::string::npos);
  manifest_request only;
  only.default_metrics = false;
  only.extra_metrics = {"widgets"};
  const auto few = collected(m, only, runs({"true"}));
  CHECK(metric_of(few, "widgets"));
  CHECK_FALSE(metric_of(few, "step_time"));
}

TEST_CASE("kernels are chosen here where the tool cannot") {
  auto manifest = tally_json();
  auto& argv = manifest["collect"]["passes"][0]["argv"];
  argv.erase(std::find_if(argv.begin(), argv.end(), [](const json& word) { return word.is_array(); }));
  manifest_request request;
  request.kernel_regex = "^fold";
  const auto out = collected(parsed(manifest), request, runs({"true"}));
  CHECK(metric_of(out, "step_time")->value == Approx(2009.5e3));
}

TEST_CASE("names are checked against the tool's own list") {
  const auto m = parsed(tally_json());
  CHECK(check_metric_names(m, {"step_time", "rework"}));
  const auto wrong = check_metric_names(m, {"rework", "reworks"});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == ec::invalid_argument);
  CHECK(wrong.error().message.find("'reworks'") != std::string::npos);
  CHECK(wrong.error().hint.find("rework") != std::string::npos);
  auto silent = tally_json();
  silent["catalogue"][0]["argv"] = {"false"};
  const auto unknown = check_metric_names(parsed(silent), {"rework"});
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ec::tool_failed);
  CHECK(check_metric_names(parsed(silent), {"step_time"})); // a default needs no list
}

TEST_CASE("what keeps a tool from measuring is one line, and no error") {
  const auto m = parsed(tally_json());
  SECTION("the tool's own words are translated, with what to do") {
    const auto out = collected(m, {}, runs({"false"}));
    CHECK(out.metrics.empty());
    CHECK(out.missing == std::vector<std::string>{"tally: no license to count: ask the widget office"});
  }
  SECTION("not installed") {
    auto absent = tally_json();
    absent["collect"]["program"] = {"no-such-tally"};
    const auto none = parsed(absent);
    CHECK_FALSE(probe_manifest(none).found);
    const auto out = collected(none, {}, runs({"true"}));
    CHECK(out.missing == std::vector<std::string>{"tally: not installed (it is part of PRAGMA's tests)"});
    CHECK(manifest_status(none).problem.find("not installed") != std::string::npos);
    CHECK(check_metric_names(none, {"rework"}).error().code == ec::not_found);
  }
  SECTION("it hangs") {
    manifest_request request;
    request.max_seconds = 3;
    const auto out = collected(m, request, runs({"sleep", "60"}));
    REQUIRE(out.missing.size() == 1);
    CHECK(out.missing[0].find("timed out") != std::string::npos);
  }
  SECTION("no time was given") {
    manifest_request request;
    request.max_seconds = 0.5;
    const auto out = collected(m, request, [](const auto&, const auto&, double) -> target_run {
      FAIL("nothing may run");
      return {};
    });
    CHECK(says(out.missing, "no time left"));
  }
  SECTION("no kernel ran") {
    manifest_request request;
    request.kernel_regex = "no such kernel";
    CHECK(says(collected(m, request, runs({"true"})).missing, "no kernel was profiled"));
  }
  SECTION("it wrote nothing") {
    const auto out = collected(m, {}, [](const auto&, const auto&, double) { return target_run{true, "", "", "", 0.1}; });
    CHECK(says(out.missing, "it left no file tally.out"));
  }
  SECTION("it wrote something else") {
    const auto out = collected(m, {}, [](const auto&, const fs::path& scratch, double) {
      REQUIRE(write_file_atomic(scratch / "tally.out", "Step;Name\n1;x\n"));
      return target_run{true, "", "", "", 0.1};
    });
    CHECK(says(out.missing, "tally.out has no column 'Kernel'"));
  }
  SECTION("a system setting forbids it") {
    auto folder = temp_dir::create("pragma-test-tally-");
    REQUIRE(folder);
    const auto setting = folder->path() / "params";
    REQUIRE(write_file_atomic(setting, "A: 0\nLocked: 1\n"));
    auto locked = tally_json();
    locked["collect"]["probe"]["checks"] = {{{"file", setting.string()}, {"pattern", "Locked: 1"}, {"reason", "the press is locked"}, {"remedy", "unlock it"}}};
    const auto out = collected(parsed(locked), {}, runs({"true"}));
    CHECK(out.missing == std::vector<std::string>{"tally: the press is locked (unlock it)"});
    REQUIRE(write_file_atomic(setting, "A: 0\nLocked: 0\n"));
    CHECK(collected(parsed(locked), {}, runs({"true"})).missing.empty());
  }
}

TEST_CASE("a metric that the tool knows nothing of is named; the others are there") {
  const auto m = parsed(tally_json());
  manifest_request request;
  request.extra_metrics = {"gears"};
  const auto out = collected(m, request, runs({"true"}));
  CHECK(metric_of(out, "widgets"));
  CHECK(says(out.missing, "no value for gears"));
}

TEST_CASE("a candidate that meddles with the results cannot break anything") {
  const auto m = parsed(tally_json());
  manifest_request request;
  request.extra_metrics = {"--to", "a,b", ""}; // never reach the command line
  const auto out = collected(m, request, [&](const std::vector<std::string>& wrapper, const fs::path& scratch, double) {
    CHECK(std::count(wrapper.begin(), wrapper.end(), "--to") == 1);
    fs::create_symlink("/etc/passwd", scratch / "tally.out");
    return target_run{true, "", "", "", 0.1};
  });
  CHECK(out.metrics.empty());
  CHECK(says(out.missing, "it left no file"));
  const auto text = collected(m, {}, [&](const auto&, const fs::path& scratch, double) {
    REQUIRE(write_file_atomic(scratch / "tally.out", std::string("Step;Kernel;Counter;Reading;In\n0;k\x1b[31m\x01;widgets;1e999;pieces\n1;k\x1b[31m;slack;5;\x07%\n")));
    return target_run{true, "", "", "", 0.1};
  });
  REQUIRE(metric_of(text, "slack"));
  CHECK(json(*metric_of(text, "slack")).dump().find("\\u001b") == std::string::npos);
  CHECK_FALSE(metric_of(text, "widgets"));
}

TEST_CASE("manifests for a backend: the shipped ones, and those that a user registered") {
  std::vector<std::string> problems;
  const auto names = [](const std::vector<collect_manifest>& all) {
    std::vector<std::string> list;
    for (const auto& m : all) list.push_back(m.name);
    return list;
  };
  CHECK(names(manifests_for("cuda", {}, &problems)) == std::vector<std::string>{"ncu"});
  CHECK(names(manifests_for("ascend", {}, &problems)) == std::vector<std::string>{"msprof"});
  CHECK(names(manifests_for("rocm", {}, &problems)) == std::vector<std::string>{"rocprofv3"});
  CHECK(names(manifests_for("cuda", {tally_json()}, &problems)) == std::vector<std::string>{"ncu", "tally"});
  CHECK(problems.empty());
  auto broken = tally_json();
  broken["collect"]["pases"] = json::array();
  CHECK(names(manifests_for("cuda", {broken}, &problems)) == std::vector<std::string>{"ncu"});
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].find("tally") != std::string::npos);
  CHECK(problems[0].find("passes") != std::string::npos);
}
