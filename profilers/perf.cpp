// perf stat on the running candidate. perf's exit status means nothing here: on a virtual machine without a PMU it says
// "<not supported>" with rc 0, and unknown metric groups fall back to other events with rc 0. What counts is the metric.
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "timing/timing.hpp"
#include "profilers/running.hpp"
#include "profilers/sources.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace pragma {

namespace formats {

namespace {

/// perf 6.1 prints some numbers as strings, 6.12 others; "<not supported>" is no number.
bool number_of(const json& object, const char* key, double& value) {
  if (!object.contains(key)) return false;
  const auto& v = object[key];
  if (v.is_number()) {
    value = v.get<double>();
    return true;
  }
  if (!v.is_string()) return false;
  const auto text = v.get<std::string>();
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return end != text.c_str() && std::isfinite(value);
}

/// "cpu_core/cycles/u" -> "cycles", "cycles:u" -> "cycles".
std::string plain_event(std::string name) {
  if (const auto slash = name.find('/'); slash != std::string::npos && name.rfind("cpu", 0) == 0) {
    name = name.substr(slash + 1);
    name = name.substr(0, name.find('/'));
  }
  if (const auto colon = name.rfind(':'); colon != std::string::npos && colon + 1 < name.size() &&
                                          name.find_first_not_of("ukhpPGHIWSDeb", colon + 1) == std::string::npos)
    name.resize(colon);
  return name;
}

/// Intel's (with and without "tma_"), AMD's and Arm's names of the same shares -> ours.
std::string topdown_name(std::string unit) {
  std::string name;
  for (char c : unit) {
    if (c == '%' || (c == ' ' && name.empty())) continue;
    name += c == ' ' || c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  name = trim(name);
  if (name.rfind("tma_", 0) == 0) name = name.substr(4);
  static const std::map<std::string, std::string> names{
      {"retiring", "retiring"}, {"bad_speculation", "bad_speculation"}, {"bad_spec", "bad_speculation"},
      {"frontend_bound", "frontend_bound"}, {"fe_bound", "frontend_bound"}, {"front_end_bound", "frontend_bound"},
      {"backend_bound", "backend_bound"}, {"be_bound", "backend_bound"}, {"back_end_bound", "backend_bound"},
      {"memory_bound", "memory_bound"}, {"backend_bound_memory", "memory_bound"}, {"backend_memory_bound", "memory_bound"},
      {"core_bound", "core_bound"}, {"backend_bound_cpu", "core_bound"}, {"backend_core_bound", "core_bound"},
      {"fetch_latency", "fetch_latency"}, {"frontend_bound_latency", "fetch_latency"},
      {"fetch_bandwidth", "fetch_bandwidth"}, {"frontend_bound_bandwidth", "fetch_bandwidth"},
      {"branch_mispredicts", "branch_mispredicts"}, {"bad_speculation_mispredicts", "branch_mispredicts"},
      {"machine_clears", "machine_clears"}, {"bad_speculation_pipeline_restarts", "machine_clears"},
      {"light_operations", "light_operations"}, {"retiring_fastpath", "light_operations"},
      {"heavy_operations", "heavy_operations"}, {"retiring_microcode", "heavy_operations"}};
  const auto found = names.find(name);
  return found == names.end() ? "" : found->second;
}

/// Intel's fixed top-down counters asked for as events: shares are counts / slots.
void topdown_from_events(perf_output& out) {
  std::map<std::string, double> counts;
  for (const auto& e : out.events)
    if (e.counted) counts[e.event] += e.value;
  const auto have = [&](const char* event) { return counts.count(event) != 0; };
  if (!have("topdown-retiring") || !have("topdown-bad-spec") || !have("topdown-fe-bound") || !have("topdown-be-bound")) return;
  const double slots = counts["topdown-retiring"] + counts["topdown-bad-spec"] + counts["topdown-fe-bound"] + counts["topdown-be-bound"];
  if (slots <= 0) return;
  const auto set = [&](const char* name, double count) { out.topdown.emplace(name, std::max(0.0, 100 * count / slots)); };
  set("retiring", counts["topdown-retiring"]);
  set("bad_speculation", counts["topdown-bad-spec"]);
  set("frontend_bound", counts["topdown-fe-bound"]);
  set("backend_bound", counts["topdown-be-bound"]);
  const auto split_level = [&](const char* whole, const char* event, const char* part, const char* rest) {
    if (!have(event)) return;
    set(part, counts[event]);
    set(rest, counts[whole] - counts[event]);
  };
  split_level("topdown-retiring", "topdown-heavy-ops", "heavy_operations", "light_operations");
  split_level("topdown-bad-spec", "topdown-br-mispredict", "branch_mispredicts", "machine_clears");
  split_level("topdown-fe-bound", "topdown-fetch-lat", "fetch_latency", "fetch_bandwidth");
  split_level("topdown-be-bound", "topdown-mem-bound", "memory_bound", "core_bound");
}

} // namespace

perf_output parse_perf_json(std::string_view text) {
  perf_output out;
  for (auto line : split(text, '\n')) {
    line = trim(line);
    if (line.empty()) continue;
    const auto parsed = line[0] == '{' ? parse_if_json(line) : json();
    if (!parsed.is_object()) {
      out.messages.push_back(line);
      continue;
    }
    if (parsed.contains("event") && parsed["event"].is_string() && !parsed["event"].get<std::string>().empty()) {
      perf_value v;
      v.event = plain_event(parsed["event"].get<std::string>());
      v.counted = number_of(parsed, "counter-value", v.value);
      if (parsed.contains("unit") && parsed["unit"].is_string()) v.unit = parsed["unit"].get<std::string>();
      number_of(parsed, "pcnt-running", v.percent_running);
      if (v.percent_running <= 0) v.counted = false;
      out.events.push_back(v);
    }
    double value = 0;
    if (parsed.contains("metric-unit") && parsed["metric-unit"].is_string() && number_of(parsed, "metric-value", value)) {
      const auto unit = parsed["metric-unit"].get<std::string>();
      const auto name = topdown_name(unit);
      if (name.empty()) continue;
      const bool percent = unit.find('%') != std::string::npos;
      out.topdown[name] = percent ? value : 100 * value;
    }
  }
  topdown_from_events(out);
  return out;
}

} // namespace formats

std::vector<std::string> formats::parse_perf_list(std::string_view text) {
  std::vector<std::string> names;
  for (const auto& line : split(text, '\n')) {
    if (line.size() < 3 || line[0] != ' ' || line[1] != ' ' || line[2] == ' ') continue;
    if (line.find("Tracepoint event") != std::string::npos || line.find("event descriptor") != std::string::npos ||
        line.find("breakpoint") != std::string::npos || line.find("Tool event") != std::string::npos)
      continue;
    auto rest = trim(line.substr(0, line.find('[')));
    for (size_t at = 0; !rest.empty(); rest = at == std::string::npos ? "" : rest.substr(at + 4)) {
      at = rest.find(" OR ");
      const auto name = trim(rest.substr(0, at));
      if (!name.empty() && name.find_first_of(" =<>") == std::string::npos) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

namespace {

constexpr double pass_seconds = 0.3;      // of kernel calls per pass of perf
constexpr double perf_start_seconds = 5;  // perf reads its event tables first
const std::vector<std::string> base_events{"cycles", "instructions", "branches", "branch-misses", "cache-references", "cache-misses"};
const std::vector<std::string> memory_events{"L1-dcache-loads", "L1-dcache-load-misses", "dTLB-load-misses"};

/// Two pipes for perf's --control: commands there, acknowledgements back.
struct control_pipes {
  std::array<int, 2> commands{-1, -1}, acks{-1, -1};
  bool open() { return pipe2(commands.data(), O_CLOEXEC) == 0 && pipe2(acks.data(), O_CLOEXEC) == 0; }
  ~control_pipes() {
    for (int fd : {commands[0], commands[1], acks[0], acks[1]})
      if (fd >= 0) close(fd);
  }
  /// Sends a command and waits until perf has done it.
  bool tell(const std::string& command, double timeout_seconds) {
    if (write(commands[1], command.data(), command.size()) != static_cast<ssize_t>(command.size())) return false;
    pollfd p{acks[0], POLLIN, 0};
    if (poll(&p, 1, static_cast<int>(timeout_seconds * 1000)) != 1 || !(p.revents & POLLIN)) return false;
    char buffer[16];
    return read(acks[0], buffer, sizeof buffer) > 0;
  }
};

/// One pass: perf attached to all threads of the candidate, counting only while `calls` calls run.
expected<formats::perf_output> one_pass(const std::vector<std::string>& what, running_candidate& running, int64_t calls) {
  control_pipes pipes;
  if (!pipes.open()) return fail(ec::io_error, "perf: cannot make pipes");
  constexpr int command_fd = 8, ack_fd = 9; // any numbers that are free in the child
  process_spec spec;
  spec.argv = {"perf", "stat", "-j", "--log-fd", "1", "--delay=-1", "--control", "fd:" + std::to_string(command_fd) + "," + std::to_string(ack_fd),
               "-p", std::to_string(running.runner.pid())};
  spec.argv.insert(spec.argv.end(), what.begin(), what.end());
  spec.env = {{"LC_ALL", "C"}};
  spec.inherit_fds = {{pipes.commands[0], command_fd}, {pipes.acks[1], ack_fd}};
  auto perf = child_process::start(spec);
  if (!perf) return fail(perf.error());
  // An acknowledged "enable" says that all counters are open.
  const bool started = pipes.tell("enable\n", perf_start_seconds);
  expected<void> ran;
  if (started) {
    ran = running.call(calls);
    pipes.tell("disable\n", perf_start_seconds);
  }
  perf->signal(SIGINT); // its way to end and print
  std::string text;
  while (auto line = perf->read_line(perf_start_seconds)) text += *line + "\n";
  text += perf->stderr_text();
  perf->kill();
  if (!ran) return fail(ran.error());
  return formats::parse_perf_json(text);
}

/// User mode: what an ordinary user may count, and the kernel's part is not the candidate's.
std::string in_user_mode(const std::string& event) {
  return event.find(':') != std::string::npos ? event : event.back() == '/' ? event + "u" : event + ":u";
}

std::string events_argument(const std::vector<std::string>& events) {
  std::vector<std::string> user;
  for (const auto& e : events) user.push_back(in_user_mode(e));
  return join(user, ",");
}

void add_ratio(source_result& out, const std::map<std::string, double>& counts, const char* name, const char* part, const char* whole,
               double factor, const char* unit, const std::string& tool) {
  const auto a = counts.find(part), b = counts.find(whole);
  if (a == counts.end() || b == counts.end() || b->second <= 0) return;
  out.metrics.push_back({name, factor * a->second / b->second, unit, tool, provenance::measured, std::string(part) + " / " + whole});
}

} // namespace

std::string perf_version() {
  static const std::string version = [] {
    process_spec spec;
    spec.argv = {"perf", "--version"};
    spec.limits.wall_seconds = 10;
    const auto run = run_process(spec);
    if (!run || !run->ok()) return std::string();
    const auto text = trim(run->out);
    return trim(text.substr(text.rfind(' ') + 1));
  }();
  return version;
}

std::string perf_obstacle(const cpu_facts& facts) {
  if (find_program("perf").empty()) return "perf: not installed (apt install linux-perf)";
  if (perf_version().empty()) return "perf: installed, but it does not run (on Ubuntu: apt install linux-tools-$(uname -r))";
  if (!facts.has_pmu)
    return "perf: no PMU on this machine" +
           (facts.virtualization.empty() ? std::string() : " (" + facts.virtualization + " virtual machine that does not pass it on)") +
           ": no hardware counters, no top-down";
  return "";
}

std::vector<std::string> perf_events() {
  static const std::vector<std::string> events = [] {
    process_spec spec;
    spec.argv = {"perf", "list", "--no-desc"};
    spec.env = {{"LC_ALL", "C"}, {"PAGER", "cat"}};
    spec.limits.wall_seconds = 20;
    spec.max_output = 8 << 20;
    const auto run = find_program("perf").empty() ? expected<process_result>(fail(ec::not_found, "")) : run_process(spec);
    return run ? formats::parse_perf_list(run->out) : std::vector<std::string>();
  }();
  return events;
}

void perf_extra_metrics(const collect_context& context, const std::vector<std::string>& events, running_candidate& running, source_result& out) {
  // One at a time: an event that this kernel refuses must not take the others with it.
  const auto calls = running.calls_for(std::min(pass_seconds, context.watch.left() / 4));
  for (const auto& event : events) {
    auto pass = one_pass({"-e", in_user_mode(event)}, running, calls);
    double value = 0;
    bool counted = false;
    if (pass)
      for (const auto& e : pass->events)
        if (e.counted) {
          value += e.value;
          counted = true;
        }
    if (!counted) {
      out.missing.push_back("perf: " + event + " could not be counted on this machine");
      continue;
    }
    const bool clock = pass->events[0].unit == "msec";
    out.metrics.push_back({event, value / static_cast<double>(calls) * (clock ? 1e-3 : 1), clock ? "s" : "count", "perf " + perf_version(),
                           provenance::measured, "mean of " + std::to_string(calls) + " calls"});
  }
}

void perf_metrics(const collect_context& context, running_candidate& running, source_result& out) {
  if (auto why = perf_obstacle(context.facts); !why.empty()) {
    out.missing.push_back(why);
    return;
  }
  const auto tool = "perf " + perf_version();
  const auto calls = running.calls_for(std::min(pass_seconds, context.watch.left() / 4));
  std::map<std::string, double> counts; // per call
  std::vector<std::string> complaints;
  for (const auto& events : {base_events, memory_events}) {
    auto pass = one_pass({"-e", events_argument(events)}, running, calls);
    if (!pass) {
      out.missing.push_back("perf: " + pass.error().message);
      return;
    }
    std::map<std::string, double> running_share;
    for (const auto& e : pass->events)
      if (e.counted) {
        counts[e.event] += e.value / static_cast<double>(calls); // a hybrid CPU reports each kind of core
        running_share[e.event] = std::max(running_share[e.event], e.percent_running);
      }
    for (const auto& name : events) {
      if (counts.count(name) == 0) {
        complaints.push_back(name);
        continue;
      }
      std::string note = "user mode, mean of " + std::to_string(calls) + " calls";
      if (running_share[name] < 99) note += ", counted " + format_number(running_share[name], 0) + "% of the time and scaled";
      out.metrics.push_back({name, counts[name], "count", tool, provenance::measured, note});
    }
    if (counts.empty()) break;
  }
  if (counts.empty()) {
    const auto paranoid = read_file("/proc/sys/kernel/perf_event_paranoid");
    out.missing.push_back("perf: there is a PMU, but no event could be counted (kernel.perf_event_paranoid is " +
                          (paranoid ? trim(*paranoid) : "unknown") + "; `sysctl kernel.perf_event_paranoid=2` or less allows it)");
    return;
  }
  if (!complaints.empty()) out.missing.push_back("perf: not supported by this CPU: " + join(complaints, ", "));
  add_ratio(out, counts, "ipc", "instructions", "cycles", 1, "1/cycle", tool);
  add_ratio(out, counts, "branch_miss_rate", "branch-misses", "branches", 100, "%", tool);
  add_ratio(out, counts, "cache_miss_rate", "cache-misses", "cache-references", 100, "%", tool);
  add_ratio(out, counts, "l1d_miss_rate", "L1-dcache-load-misses", "L1-dcache-loads", 100, "%", tool);

  // Intel and Arm name the groups TopdownL1/2, AMD PipelineL1/2; older perf has Intel's fixed counters only as events.
  std::map<std::string, double> topdown;
  const bool amd = context.facts.vendor == "AuthenticAMD";
  const std::vector<std::vector<std::string>> attempts{
      {"-M", amd ? "PipelineL1" : "TopdownL1"},
      {"-M", amd ? "PipelineL2" : "TopdownL2"},
      {"-e", "{slots:u,topdown-retiring:u,topdown-bad-spec:u,topdown-fe-bound:u,topdown-be-bound:u}"}};
  for (size_t i = 0; i < attempts.size(); ++i) {
    if (context.watch.left() <= 0 || (i == 2 && !topdown.empty())) break;
    if (auto pass = one_pass(attempts[i], running, calls)) topdown.insert(pass->topdown.begin(), pass->topdown.end());
  }
  if (topdown.count("retiring") == 0) {
    out.missing.push_back("perf: no top-down on this CPU with " + tool);
    return;
  }
  for (const auto& [name, value] : topdown)
    out.metrics.push_back({"topdown." + name, value, "%", tool, provenance::measured, "share of pipeline slots"});
}

} // namespace pragma
