// Runs that never ran, for tests of the page: ordinary, going on, with 10,000 attempts, and full of markup.
#pragma once

#include "dashboard/dashboard.hpp"

#include <map>
#include <memory>
#include <mutex>

namespace pragma::test {

inline const std::string hostile = "</pre></script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">'\"&amp;\x1b[31m";

inline json made_up_attempt(int number, double speedup, bool new_best, const std::string& words) {
  const json ratio = {{"value", speedup}, {"low", speedup * 0.97}, {"high", speedup * 1.03}};
  return {{"number", number},
          {"stage", "passed"},
          {"reason", ""},
          {"new_best", new_best},
          {"origin", "builtin"},
          {"verdict", {{"stage", "passed"}, {"log", words}}},
          {"against_best", {{"value", new_best ? 1.1 : 0.99}, {"low", 0.97}, {"high", 1.12}}},
          {"reasoning", {words}},
          {"findings", {{{"what", "memory_bandwidth_bound"}, {"level", "memory"}, {"confidence", 0.8}, {"why", words}, {"remedies", {words}}, {"proof", {{{"metric", "achieved_gbs"}, {"value", 11.8}, {"unit", "GB/s"}, {"text", words}}}}, {"documentation", json::array()}}}},
          {"code",
           {{"source", "int unroll = " + std::to_string(number) + ";\n" + words + "\n"},
            {"rationale", words},
            {"measured",
             {{"time", {{"speedup", ratio}, {"candidate_seconds", 4e-3 / speedup}, {"baseline_seconds", 4e-3}, {"contended", false}}},
              {"metrics", {{{"name", "seconds_per_call"}, {"value", 4e-3 / speedup}, {"unit", "s"}, {"how", "measured"}, {"tool", words}}}}}}}}};
}

class made_up {
public:
  made_up() {
    add("ordinary", 8, "plain words");
    add("live", 2, "plain words");
    add("big", 10000, "one of many");
    add("hostile", 4, hostile);
    documents_["hostile"]["run"]["task"]["name"] = hostile;
    documents_["live"]["run"]["state"] = "running";
    documents_["live"]["run"]["confirmed"] = false;
    documents_["live"]["run"]["owner"] = "me";
    documents_["ordinary"]["run"]["owner"] = "somebody";
    log("loaded", 0, hostile);
  }

  /// One attempt more of the run that goes on, and what is done for it.
  void go_on() {
    const std::lock_guard lock(mutex_);
    auto& all = documents_["live"]["iterations"];
    log("verifying", static_cast<int>(all.size()) + 1, "about to come");
    all.push_back(made_up_attempt(static_cast<int>(all.size()) + 1, 3.5, true, "came later"));
  }

  dashboard::source source() {
    return {[this]() -> expected<json> { return list(); },
            [this](const std::string& id) -> expected<json> {
              const std::lock_guard lock(mutex_);
              const auto it = documents_.find(id);
              if (it == documents_.end()) return fail(ec::not_found, "there is no run " + id);
              return it->second;
            },
            [this](const std::string& id, uint64_t from) {
              const std::lock_guard lock(mutex_);
              json lines = json::array();
              for (const auto& line : lines_)
                if (id == "live" && line["n"] >= from) lines.push_back(line);
              return lines;
            },
            [](const std::string& before, const std::string& after) { return json::array({{{"kind", "removed"}, {"text", before}}, {{"kind", "added"}, {"text", after}}}); },
            []() -> expected<json> { return cluster(); },
            [](const std::string& text) -> expected<json> { return json{{"covered", true}, {"entries", {{{"name", text}, {"profiler", "perf"}, {"meaning", hostile}, {"reading", ""}, {"sources", json::array()}}}}}; },
            []() -> expected<json> {
              const auto suite = [](const char* name, double gain) {
                return json{{"name", name}, {"tasks", {{{"name", "9_a"}, {"status", "ok"}, {"speedup", {{"value", gain}, {"low", gain}, {"high", gain}}}, {"candidate_seconds", 1e-3}}, {{"name", "10_b"}, {"status", "failed"}, {"reason", hostile}}}}};
              };
              return json::array({suite("monday", 1.5), suite("tuesday", 2.5)});
            }};
  }

  /// As a head's status is (cluster_status): one node that measures and checks.
  static json cluster() {
    const json cpu = {{"id", "cpu"}, {"model", hostile}, {"tools", {"perf", "callgrind"}}}, gpu = {{"id", "cuda:0"}, {"model", "a device"}, {"tools", json::array()}};
    const json node = {{"facts", {{"name", "gpu1"}, {"version", "1"}, {"devices", {cpu, gpu}}}}, {"state", "ready"}, {"done", 41}, {"failed", 2}, {"jobs", {"h/20261122-1/7 measure", "h/20261122-1/8 verify"}},
                       {"leases", {{{"device", "cpu"}, {"job", "h/20261122-1/7 measure"}, {"since", 90.0}}}}};
    return {{"listen", "127.0.0.1:7447"}, {"version", "1"}, {"up_seconds", 100.0}, {"in_flight", 2}, {"queued", 3}, {"assigned", 50}, {"requeued", 1}, {"mean_queue_seconds", 0.2},
            {"members", {{{"node", node}, {"missing", {hostile}}, {"round_trip_ms", 0.4}, {"silent_seconds", 0.5}}}},
            {"runs", {{{"id", "live"}, {"task", hostile}, {"state", "running"}, {"attempts", 2}, {"owner", "me"}, {"priority", 0}}, {{"id", "old"}, {"task", "t"}, {"state", "finished"}, {"attempts", 2}, {"owner", "somebody"}, {"priority", 0}}}}};
  }

private:
  void add(const std::string& id, int attempts, const std::string& words) {
    json iterations = json::array();
    for (int i = 1; i <= attempts; ++i) iterations.push_back(made_up_attempt(i, 1 + 0.2 * (i % 7), i <= 5 && i % 2 == 1, words));
    const json ratio = {{"value", 1.8}, {"low", 1.7}, {"high", 1.9}};
    documents_[id] = {{"schema", 1},
                      {"run",
                       {{"id", id}, {"state", "finished"}, {"started", "2026-11-22T10:00:00Z"}, {"confirmed", true}, {"best", 5}, {"final", {{"timing", {{"speedup", ratio}}}}},
                        {"task", {{"name", "task of " + id}, {"flops", 1e6}, {"bytes", 4e6}}}, {"environment", {{"cpu", "made up"}, {"limits", {{"copy_gbs", {100, 60, 30, 12}}, {"peak_gflops", 50}}}}}}},
                      {"iterations", std::move(iterations)}};
  }

  void log(const char* stage, int attempt, const std::string& text) {
    lines_.push_back({{"n", lines_.size() + 1}, {"time", "2026-11-22T10:00:00Z"}, {"attempt", attempt}, {"stage", stage}, {"text", text}});
  }

  json list() {
    const std::lock_guard lock(mutex_);
    json all = json::array();
    for (const auto& [id, d] : documents_)
      all.push_back({{"id", id}, {"task", d["run"]["task"]["name"]}, {"state", d["run"]["state"]}, {"owner", d["run"].value("owner", "")}, {"started", d["run"]["started"]},
                     {"speedup", d["run"]["confirmed"] == true ? d["run"]["final"]["timing"]["speedup"] : json(nullptr)}, {"stamp", std::to_string(d["iterations"].size())}});
    return all;
  }

  std::mutex mutex_;
  std::map<std::string, json> documents_;
  json lines_ = json::array();
};

} // namespace pragma::test
