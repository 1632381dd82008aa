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

TEST_CASE("further metrics, several calls") {
  const auto m = parsed(tally_json());
  manifest_request request;
  request.extra_metrics = {"rework", "depth_max"};
  request.calls = 2;
  const auto out = collected(m, request, runs({"true"}));
  CHECK(metric_of(out, "rework")->value == Approx((1006.5 + 2006.5 + 3006.5) / 2));
  CHECK(metric_of(out, "depth_max")->value == 3009.5);
  CHECK(metric_of(out, "launches_per_call")->value == 1.5);
  CHECK(metric_of(out, "step_time")->note.find("2 calls") != std::string::npos);
  manifest_request only;
  only.default_metrics = false;
  only.extra_metrics = {"widgets"};
  const auto few = collected(m, only, runs({"true"}));
  CHECK(metric_of(few, "widgets"));
  CHECK_FALSE(metric_of(few, "step_time"));
}

TEST_CASE("a tool that sees the whole run sees the runner's kernels: only the candidate's count") {
  auto manifest = tally_json();
  manifest_request request;
  request.own_kernels = {"press"};
  CHECK(metric_of(collected(parsed(manifest), request, runs({"true"})), "launches_per_call")->value == 3); // it can be told when to look
  manifest["collect"]["passes"][0]["whole_run"] = true;
  const auto out = collected(parsed(manifest), request, runs({"true"}));
  CHECK(metric_of(out, "step_time")->value == Approx((1009.5 + 3009.5) * 1e3));
  CHECK(metric_of(out, "launches_per_call")->value == 2);
  CHECK(metric_of(out, "launches_per_call")->note.find("fold") == std::string::npos);
  request.calls = 1;
  request.warmup_calls = 1;
  CHECK(metric_of(collected(parsed(manifest), request, runs({"true"})), "launches_per_call")->value == 1);
  request.own_kernels = {"made_at_run_time"}; // under other names: all count
  CHECK(metric_of(collected(parsed(manifest), request, runs({"true"})), "launches_per_call")->value == 1.5);
}

TEST_CASE("that launches were cut off is said of tools that were told to") {
  auto manifest = tally_json();
  manifest_request request;
  request.max_launches = 2;
  const auto all = collected(parsed(manifest), request, runs({"true"}));
  CHECK(metric_of(all, "launches_per_call")->value == 3);
  CHECK_FALSE(says(all.missing, "only the first"));
  auto& argv = manifest["collect"]["passes"][0]["argv"];
  argv.insert(argv.begin() + 2, {"--steps", "{max_launches}"});
  const auto some = collected(parsed(manifest), request, runs({"true"}));
  CHECK(metric_of(some, "launches_per_call")->value == 2);
  CHECK(says(some.missing, "only the first 2 launches"));
  // What comes after as many as were asked for was written by somebody else.
  const auto forged = collected(parsed(manifest), request, [](const auto&, const fs::path& scratch, double) {
    std::string text = "Step;Kernel;Counter;Reading;In\n";
    for (int i = 0; i < 50; ++i) text += std::to_string(i) + ";press" + std::to_string(i) + ";step_time;1;us\n";
    REQUIRE(write_file_atomic(scratch / "tally.out", text));
    return target_run{true, "", "", "", 0.1};
  });
  CHECK(forged.kernels == std::vector<std::string>{"press0", "press1"});
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
    auto idle = tally_json();
    auto& argv = idle["collect"]["passes"][0]["argv"];
    argv.insert(argv.begin() + 2, {"--steps", "0"});
    CHECK(says(collected(parsed(idle), {}, runs({"true"})).missing, "no kernel was profiled"));
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
  CHECK(says(out.missing, "no metric has such a name: '--to', 'a,b', ''"));
  const auto text = collected(m, {}, [&](const auto&, const fs::path& scratch, double) {
    REQUIRE(write_file_atomic(scratch / "tally.out", std::string("Step;Kernel;Counter;Reading;In\n0;k\x1b[31m\x01;widgets;1e999;pieces\n1;k\x1b[31m;slack;5;\x07%\n")));
    return target_run{true, "", "", "", 0.1};
  });
  REQUIRE(metric_of(text, "slack"));
  CHECK(json(*metric_of(text, "slack")).dump().find("\\u001b") == std::string::npos);
  CHECK_FALSE(metric_of(text, "widgets"));
}

TEST_CASE("small files that would make large tables are cut or refused") {
  const auto m = parsed(tally_json());
  const auto with = [&](const std::string& text) {
    return collected(m, {}, [&](const auto&, const fs::path& scratch, double) {
      REQUIRE(write_file_atomic(scratch / "tally.out", text));
      return target_run{true, "", "", "", 0.1};
    });
  };
  std::string wide = "Step;Kernel;Counter;Reading;In";
  for (int i = 0; i < 8000; ++i) wide += ";c";
  wide += "\n";
  for (int i = 0; i < 100'000; ++i) wide += std::to_string(i) + ";k;widgets;1;pieces\n";
  const auto cut = with(wide); // 3 MB, which would come to 25 GB
  REQUIRE(metric_of(cut, "widgets"));
  CHECK(metric_of(cut, "widgets")->value < 1000);
  CHECK(says(with("Step;Kernel;Counter;Reading;In\n" + std::string(3'000'000, ';')).missing, "cells"));
  CHECK(says(with(std::string(20 << 20, 'x')).missing, "it left more than"));
}

TEST_CASE("all files of a pass together have one budget") {
  auto manifest = tally_json();
  manifest["collect"]["passes"][0]["outputs"][0]["file"] = "*.out";
  const auto out = collected(parsed(manifest), {}, [](const auto&, const fs::path& scratch, double) {
    REQUIRE(write_file_atomic(scratch / "a.out", "Step;Kernel;Counter;Reading;In\n0;k;widgets;1;pieces\n"));
    for (int i = 0; i < 6; ++i) REQUIRE(write_file_atomic(scratch / ("b" + std::to_string(i) + ".out"), "##" + std::string(5 << 20, 'x') + "\n"));
    fs::resize_file(scratch / "b5.out", uint64_t{1} << 30); // costs nothing to make
    return target_run{true, "", "", "", 0.1};
  });
  REQUIRE(metric_of(out, "widgets"));
  CHECK(metric_of(out, "widgets")->value == 1);
  CHECK(says(out.missing, "it left more than"));
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
