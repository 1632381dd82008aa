// A run as a timeline: the trace-event format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#include "cli/interchange.hpp"

#include "base/text.hpp"
#include "cli/html.hpp"
#include "diagnosis/conductor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <optional>
#include <tuple>

namespace pragma {

namespace {

enum class worker { conductor, coder, verifier, profiler };
constexpr std::array<const char*, 4> worker_names = {"Conductor", "Coder", "Verifier", "Profiler"};

std::optional<double> seconds_of(const std::string& utc) {
  std::tm parts{};
  if (!::strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts)) return std::nullopt;
  return static_cast<double>(::timegm(&parts));
}

/// Slices of one role that would lie on each other go to tracks of their own: attempts are made side by side with --parallel.
class tracks {
public:
  json events = json::array();

  void add(const std::string& machine, worker who, const std::string& name, double begin, double seconds, json arguments) {
    if (!(seconds > 0) || begin < 0) return;
    auto& lanes = ends_[{machine, who}];
    constexpr double touching = 1e-7;
    auto lane = std::find_if(lanes.begin(), lanes.end(), [&](double end) { return end <= begin + touching; });
    if (lane == lanes.end()) lane = lanes.insert(lanes.end(), 0);
    *lane = begin + seconds;
    const auto number = static_cast<size_t>(lane - lanes.begin());
    events.push_back({{"name", name}, {"cat", worker_names[static_cast<size_t>(who)]}, {"ph", "X"}, {"ts", begin * 1e6}, {"dur", seconds * 1e6}, {"pid", process_of(machine)},
                      {"tid", thread_of(machine, who, number)}, {"args", std::move(arguments)}});
  }

private:
  int process_of(const std::string& machine) {
    const auto [at, is_new] = processes_.try_emplace(machine, static_cast<int>(processes_.size()) + 1);
    if (is_new) events.push_back({{"name", "process_name"}, {"ph", "M"}, {"ts", 0}, {"pid", at->second}, {"tid", 0}, {"args", {{"name", machine}}}});
    return at->second;
  }
  int thread_of(const std::string& machine, worker who, size_t lane) {
    const auto key = std::tuple(machine, who, lane);
    const auto number = 1 + static_cast<int>(who) + static_cast<int>(worker_names.size() * lane);
    if (threads_.try_emplace(key, number).second)
      events.push_back({{"name", "thread_name"}, {"ph", "M"}, {"ts", 0}, {"pid", process_of(machine)}, {"tid", number},
                        {"args", {{"name", worker_names[static_cast<size_t>(who)] + (lane ? " " + std::to_string(lane + 1) : std::string())}}}});
    return number;
  }

  std::map<std::pair<std::string, worker>, std::vector<double>> ends_;
  std::map<std::string, int> processes_;
  std::map<std::tuple<std::string, worker, size_t>, int> threads_;
};

json arguments_of(const iteration_record& it) {
  json all = {{"attempt", it.number}, {"stage", it.stage()}, {"new_best", it.new_best}};
  if (!it.verdict.reason.empty()) all["reason"] = printable(it.verdict.reason);
  if (!it.code.rationale.empty()) all["rationale"] = printable(it.code.rationale);
  if (it.passed()) all["speedup"] = it.code.measured.time.speedup;
  return all;
}

} // namespace

expected<json> timeline_of(const json& document) {
  const auto& run = html::object_at(document, "run");
  const auto& totals = html::object_at(run, "totals");
  const auto started = seconds_of(html::text_at(run, "started"));
  const auto cpu = html::text_at(html::object_at(run, "environment"), "cpu");
  const std::string home = cpu.empty() ? "this machine" : printable(cpu);
  tracks all;
  double now = html::number_at(totals, "load"), latest = now;
  all.add(home, worker::verifier, "load the task", 0, now, json::object());
  size_t attempts = 0;
  for (const auto& value : html::array_at(document, "iterations")) {
    auto it = from_json_value<iteration_record>(value, "an attempt of the run");
    if (!it) return fail(it.error());
    ++attempts;
    const std::pair<worker, std::pair<const char*, double>> steps[] = {{worker::coder, {"write", it->code_seconds}}, {worker::verifier, {"build", it->build_seconds}}, {worker::verifier, {"verify", it->verify_seconds}},
                                                                    {worker::profiler, {"time", it->time_seconds}}, {worker::profiler, {"profile", it->profile_seconds}}};
    double took = 0;
    for (const auto& [who, step] : steps) took += std::max(0.0, step.second);
    took = std::max(took, it->wall_seconds);
    const auto ended = seconds_of(it->finished);
    // The record says to the second when an attempt ended. Where that is not where the one before leaves off, the run was resumed, or
    // attempts were made side by side.
    constexpr double a_second = 1.5; // both ends are cut to seconds
    double begin = now;
    if (started && ended && std::abs(*ended - *started - (now + took)) > a_second) begin = std::max(0.0, *ended - *started - took);
    const auto where = it->code.measured.device.empty() ? home : printable(it->code.measured.device);
    const auto arguments = arguments_of(*it);
    all.add(home, worker::conductor, "attempt " + std::to_string(it->number), begin, took, arguments);
    double at = begin;
    for (const auto& [who, step] : steps) {
      all.add(who == worker::coder ? home : where, who, std::string(step.first) + " " + std::to_string(it->number), at, step.second, arguments);
      at += std::max(0.0, step.second);
    }
    now = begin + took;
    latest = std::max(latest, now);
  }
  if (attempts == 0) return fail(ec::not_found, "the run made no attempt, so there is no timeline", "`pragma show RUN` says how it ended");
  all.add(home, worker::profiler, "confirm the best version", latest, html::number_at(totals, "confirm"), {{"attempt", html::number_at(run, "best")}});
  return json{{"traceEvents", std::move(all.events)},
              {"displayTimeUnit", "ms"},
              {"otherData", {{"run", printable(html::text_at(run, "id"))}, {"task", printable(html::text_at(html::object_at(run, "task"), "name"))}, {"started", printable(html::text_at(run, "started"))}}}};
}

} // namespace pragma
