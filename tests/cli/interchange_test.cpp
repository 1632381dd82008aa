// A run in other tools' formats, held against the rules that these tools publish: SARIF 2.1.0's schema, the trace-event format, Speedscope's file format.
#include "cli/interchange.hpp"
#include "diagnosis/conductor.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

using namespace pragma;
using Catch::Contains;

namespace {

const std::string hostile = "</script>\"'\x01\xff \xe2\x80\xae{}";

finding at_line(bottleneck what, int line) {
  finding f;
  f.what = what;
  f.confidence = 0.8;
  f.line = line;
  f.why = "why " + hostile;
  f.remedies = {"do this", hostile};
  return f;
}

iteration_record attempt(int number, const std::string& finished, double hot_share) {
  iteration_record it;
  it.number = number;
  it.verdict.stage = verdict_stage::passed;
  it.code.source = "int a;\nint b; // " + hostile + "\nint c;\n";
  it.code.rationale = hostile;
  it.code.measured.device = "a processor";
  it.code.measured.time.speedup = {1.5, 1.4, 1.6};
  if (hot_share > 0)
    it.code.measured.metrics = {{"callgrind.hottest_line", 2, "line", "callgrind", provenance::simulated, ""}, {"callgrind.hottest_line_share", hot_share, "%", "callgrind", provenance::simulated, ""}};
  it.findings = {at_line(bottleneck::not_vectorized, 2), at_line(bottleneck::memory_bandwidth_bound, 0), at_line(bottleneck::dependency_chain, 3), at_line(bottleneck::not_vectorized, 3)};
  it.code_seconds = 0.5, it.build_seconds = 1, it.verify_seconds = 0.5, it.time_seconds = 2, it.profile_seconds = 1, it.wall_seconds = 5.2;
  it.finished = finished;
  return it;
}

json document_of(const std::vector<iteration_record>& attempts, int best) {
  return {{"run", {{"id", "20261122-100000-abcdef"}, {"started", "2026-11-22T10:00:00Z"}, {"best", best}, {"task", {{"name", "softmax " + hostile}}}, {"environment", {{"cpu", "a processor"}}},
                   {"totals", {{"load", 3.0}, {"confirm", 4.0}}}}},
          {"iterations", attempts}};
}

/// As it is written: what is no valid UTF-8 would throw here.
json as_written(const expected<json>& document) {
  if (!document) FAIL(render(document.error()));
  return json::parse(document->dump());
}

void only(const json& object, std::vector<std::string> known) {
  for (const auto& [key, value] : object.items()) {
    INFO(key);
    CHECK(std::find(known.begin(), known.end(), key) != known.end());
  }
}

/// What sarif-schema-2.1.0.json asks of the objects that we write, each closed there ("additionalProperties": false).
void check_sarif(const json& log) {
  only(log, {"$schema", "version", "runs", "inlineExternalProperties", "properties"});
  CHECK(log["version"] == "2.1.0");
  REQUIRE(log["runs"].size() == 1);
  const auto& run = log["runs"][0];
  only(run, {"tool", "automationDetails", "columnKind", "artifacts", "results", "properties"});
  const auto& driver = run["tool"]["driver"];
  only(driver, {"name", "version", "rules"});
  CHECK_FALSE(driver["name"].get<std::string>().empty());
  CHECK(run["columnKind"] == "utf16CodeUnits");
  for (const auto& rule : driver["rules"]) {
    only(rule, {"id", "shortDescription"});
    CHECK(rule["shortDescription"]["text"].is_string());
  }
  for (const auto& result : run["results"]) {
    only(result, {"ruleId", "ruleIndex", "level", "message", "rank", "locations", "properties"});
    CHECK(driver["rules"].at(result["ruleIndex"].get<size_t>())["id"] == result["ruleId"]);
    CHECK((result["level"] == "none" || result["level"] == "note" || result["level"] == "warning" || result["level"] == "error"));
    CHECK_FALSE(result["message"]["text"].get<std::string>().empty());
    CHECK((result["rank"].get<double>() >= 0 && result["rank"].get<double>() <= 100));
    REQUIRE(result["locations"].size() == 1);
    const auto& place = result["locations"][0]["physicalLocation"];
    const auto& artifact = run["artifacts"].at(place["artifactLocation"]["index"].get<size_t>());
    CHECK(artifact["location"]["uri"] == place["artifactLocation"]["uri"]);
    const auto text = artifact["contents"]["text"].get<std::string>();
    const auto line = place["region"]["startLine"].get<int>();
    CHECK((line >= 1 && line <= std::count(text.begin(), text.end(), '\n')));
  }
}

struct slice {
  double begin, end;
  json event;
};

/// What the trace-event format asks of "X" and "M" events; on one track slices do not overlap.
std::vector<slice> check_trace(const json& trace) {
  std::map<std::pair<int, int>, std::vector<slice>> by_track;
  std::vector<slice> all;
  std::map<int, int> named;
  for (const auto& e : trace["traceEvents"]) {
    CHECK(e["name"].is_string());
    CHECK(e["pid"].is_number_integer());
    CHECK(e["tid"].is_number_integer());
    REQUIRE(e["ts"].get<double>() >= 0);
    if (e["ph"] == "M") {
      CHECK((e["name"] == "process_name" || e["name"] == "thread_name"));
      CHECK(e["args"]["name"].is_string());
      ++named[e["pid"]];
      continue;
    }
    REQUIRE(e["ph"] == "X");
    REQUIRE(e["dur"].get<double>() > 0);
    all.push_back({e["ts"], e["ts"].get<double>() + e["dur"].get<double>(), e});
    by_track[{e["pid"], e["tid"]}].push_back(all.back());
  }
  for (auto& [track, slices] : by_track) {
    CHECK(named[track.first] >= 2);
    std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < slices.size(); ++i) CHECK(slices[i].begin >= slices[i - 1].end - 1);
  }
  return all;
}

const slice& named(const std::vector<slice>& all, const std::string& name) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.event["name"] == name; });
  if (at == all.end()) FAIL("no slice " + name);
  return *at;
}

} // namespace

TEST_CASE("sarif: findings with a line are results, one rule a kind, the others are counted") {
  const auto log = as_written(sarif_of(document_of({attempt(1, "", 0)}, 1), "kernels/soft max#1.cpp"));
  check_sarif(log);
  const auto& run = log["runs"][0];
  REQUIRE(run["results"].size() == 3);
  CHECK(run["tool"]["driver"]["rules"].size() == 2);
  CHECK(run["properties"]["findings_without_line"] == 1);
  CHECK(run["artifacts"][0]["location"]["uri"] == "kernels/soft%20max%231.cpp");
  CHECK(run["results"][1]["locations"][0]["physicalLocation"]["region"]["startLine"] == 3);
  const auto none = sarif_of(document_of({attempt(1, "", 0)}, 0), "kernel.cpp");
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ec::not_found);
}

TEST_CASE("timeline: steps follow each other, each on its role's track; the confirmation comes last") {
  const auto all = check_trace(as_written(timeline_of(document_of({attempt(1, "2026-11-22T10:00:08Z", 0), attempt(2, "2026-11-22T10:00:13Z", 0)}, 2))));
  CHECK(named(all, "load the task").begin == 0);
  CHECK(named(all, "write 1").begin == Approx(3e6));
  CHECK(named(all, "build 1").begin == Approx(3.5e6));
  CHECK(named(all, "profile 1").end == Approx(8e6));
  CHECK(named(all, "write 2").begin == Approx(8.2e6)); // 0.2 s of the first attempt went to none of its steps
  CHECK(named(all, "confirm the best version").begin == Approx(13.4e6));
  CHECK(named(all, "time 1").event["cat"] == "Profiler");
  CHECK(named(all, "time 1").event["args"]["speedup"]["low"] == 1.4);
  CHECK_FALSE(timeline_of(document_of({}, 0)));
}

TEST_CASE("timeline: a run that was resumed has its gap, and attempts made side by side have tracks of their own") {
  const auto resumed = check_trace(as_written(timeline_of(document_of({attempt(1, "2026-11-22T10:00:08Z", 0), attempt(2, "2026-11-22T11:00:00Z", 0)}, 2))));
  CHECK(named(resumed, "write 2").begin == Approx(3594.8e6));
  const auto beside = check_trace(as_written(timeline_of(document_of({attempt(1, "2026-11-22T10:00:08Z", 0), attempt(2, "2026-11-22T10:00:08Z", 0)}, 2))));
  CHECK(named(beside, "attempt 1").event["tid"] != named(beside, "attempt 2").event["tid"]);
  CHECK(named(beside, "time 1").event["tid"] != named(beside, "time 2").event["tid"]);
}

TEST_CASE("speedscope: a profile an attempt with lines, its weights their percent, the accepted one shown first") {
  const auto file = as_written(hot_lines_of(document_of({attempt(1, "", 40), attempt(2, "", 0), attempt(3, "", 100)}, 3)));
  CHECK(file["$schema"] == "https://www.speedscope.app/file-format-schema.json");
  const auto& frames = file["shared"]["frames"];
  for (const auto& f : frames) {
    only(f, {"name", "file", "line", "col"});
    CHECK(f["name"].is_string());
  }
  REQUIRE(file["profiles"].size() == 2);
  CHECK(file["activeProfileIndex"] == 1);
  for (const auto& p : file["profiles"]) {
    only(p, {"type", "name", "unit", "startValue", "endValue", "samples", "weights"});
    CHECK(p["type"] == "sampled");
    CHECK(p["unit"] == "none");
    REQUIRE(p["samples"].size() == p["weights"].size());
    double sum = p["startValue"];
    for (const auto& w : p["weights"]) sum += w.get<double>();
    CHECK(sum == Approx(p["endValue"].get<double>()));
    for (const auto& stack : p["samples"])
      for (const auto& frame : stack) CHECK(frame.get<size_t>() < frames.size());
  }
  CHECK(frames[file["profiles"][0]["samples"][0][1].get<size_t>()]["line"] == 2);
  CHECK(hot_lines_of(document_of({attempt(2, "", 0)}, 0)).error().code == ec::not_found);
}

TEST_CASE("documents that lack things, or hold the wrong ones, are refused or give what there is") {
  for (const auto& document : std::vector<json>{json(), json::array({1}), {{"run", 3}, {"iterations", "x"}}, {{"run", {{"best", 1}}}, {"iterations", {json::object(), 5}}},
                                                {{"run", {{"best", 1}, {"started", "yesterday"}, {"totals", 5}}}, {"iterations", {{{"number", 1}, {"stage", "passed"}}}}}})
    for (const auto& made : {sarif_of(document, ""), timeline_of(document), hot_lines_of(document)})
      if (made) CHECK_NOTHROW(json::parse(made->dump()));
}
