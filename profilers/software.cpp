// Software metrics from /proc: exact, free, and without permission or PMU, where perf's software events need both a
// perf that runs and, for context switches, the right to count in the kernel.
#include "execution/contention.hpp"
#include "timing/timing.hpp"
#include "profilers/running.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <sys/random.h>

namespace pragma {

namespace {

constexpr double software_seconds = 0.25; // of calls
constexpr int64_t max_calls = 1'000'000;

/// Counters of one thread.
struct thread_counters {
  double cpu_seconds = 0;
  int64_t switches = 0, faults = 0, migrations = -1; // -1: the kernel does not say
};

std::string slurp(const std::string& path) {
  std::string text;
  if (auto* f = std::fopen(path.c_str(), "re")) {
    char buffer[4096];
    size_t n = 0;
    while ((n = std::fread(buffer, 1, sizeof buffer, f)) > 0) text.append(buffer, n);
    std::fclose(f);
  }
  return text;
}

int64_t value_after(const std::string& text, const std::string& key) {
  const auto at = text.find(key);
  if (at == std::string::npos) return -1;
  const auto digit = text.find_first_of("0123456789", at + key.size());
  return digit == std::string::npos ? -1 : std::atoll(text.c_str() + digit);
}

std::map<int, thread_counters> read_threads(int pid) {
  std::map<int, thread_counters> threads;
  const auto base = "/proc/" + std::to_string(pid) + "/task";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(base, error)) {
    const auto tid = entry.path().filename().string();
    const auto folder = base + "/" + tid + "/";
    thread_counters c;
    c.cpu_seconds = 1e-9 * static_cast<double>(std::atoll(slurp(folder + "schedstat").c_str()));
    const auto status = slurp(folder + "status");
    c.switches = std::max<int64_t>(0, value_after(status, "\nvoluntary_ctxt_switches:")) +
                 std::max<int64_t>(0, value_after(status, "\nnonvoluntary_ctxt_switches:"));
    c.migrations = value_after(slurp(folder + "sched"), "nr_migrations");
    // Fields after the command, which may hold anything, in parentheses: minflt is the 10th, majflt the 12th of all.
    const auto stat = slurp(folder + "stat");
    if (const auto close = stat.rfind(')'); close != std::string::npos) {
      long long minor = 0, major = 0;
      if (std::sscanf(stat.c_str() + close + 1, " %*c %*d %*d %*d %*d %*d %*u %lld %*d %lld", &minor, &major) == 2) c.faults = minor + major;
    }
    threads[std::atoi(tid.c_str())] = c;
  }
  return threads;
}

} // namespace

int64_t running_candidate::calls_for(double seconds) const {
  if (seconds_per_call <= 0) return 1;
  return std::clamp<int64_t>(static_cast<int64_t>(seconds / seconds_per_call), 1, max_calls);
}

expected<int> filled_slots(reference& ref) {
  const auto& layout = ref.inputs_layout();
  const auto filled = [&](int slot) {
    const auto* data = ref.inputs_data() + static_cast<uint64_t>(slot) * layout.slot_bytes;
    for (size_t i = 0; i < layout.specs.size(); ++i) {
      const auto* tensor = data + layout.offsets[i];
      const auto end = std::min<uint64_t>(layout.specs[i].bytes(), 4096);
      if (std::any_of(tensor, tensor + end, [](std::byte b) { return b != std::byte{0}; })) return true;
    }
    return layout.specs.empty();
  };
  int slots = 0;
  while (slots < ref.slots() && filled(slots)) ++slots;
  if (slots > 0) return slots;
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed)) seed = 1;
  if (auto made = ref.make_inputs(0, seed, input_kind::own); !made) return fail(made.error());
  return 1;
}

expected<running_candidate> start_running(const collect_context& context, const run_conditions& conditions, working_team team, double patience) {
  auto slots = filled_slots(context.ref);
  if (!slots) return fail(slots.error());
  runner_options options;
  options.threads = team == working_team::one_thread ? 1 : context.options.threads;
  options.cpus = measuring_cpus(team == working_team::as_measured ? options.threads : 1);
  options.conditions = conditions;
  options.cancel = context.options.cancel;
  auto runner = runner_process::start(context.built, context.ref, options);
  if (!runner) return fail(runner.error());
  running_candidate running{std::move(*runner), context.time.candidate_seconds, *slots};
  running.timeout_seconds = std::max(patience, 100 * running.seconds_per_call);
  // The thread pool and the outputs' pages come into being here.
  if (auto warm = running.call(std::max<int64_t>(running.slots, std::min<int64_t>(running.calls_for(0.05), 5))); !warm) return fail(warm.error());
  return running;
}

void software_metrics(const collect_context& context, running_candidate& running, source_result& out) {
  const auto calls = running.calls_for(std::min(software_seconds, context.watch.left() / 4));
  const auto before = read_threads(running.runner.pid());
  const stopwatch wall(0);
  if (auto ran = running.call(calls); !ran) {
    out.missing.push_back("software events: " + ran.error().message);
    return;
  }
  const double wall_seconds = wall.elapsed();
  const auto after = read_threads(running.runner.pid());
  double cpu = 0, largest = 0;
  int64_t switches = 0, faults = 0, migrations = 0;
  int working = 0;
  bool migrations_known = !after.empty();
  for (const auto& [tid, now] : after) {
    const auto then = before.count(tid) ? before.at(tid) : thread_counters{0, 0, 0, 0};
    const double spent = now.cpu_seconds - then.cpu_seconds;
    cpu += spent;
    largest = std::max(largest, spent);
    if (spent > 0.01 * wall_seconds) ++working;
    switches += now.switches - then.switches;
    faults += now.faults - then.faults;
    migrations_known = migrations_known && now.migrations >= 0;
    migrations += now.migrations - std::max<int64_t>(0, then.migrations);
  }
  if (after.empty() || cpu <= 0) {
    out.missing.push_back("software events: /proc does not say what the candidate's threads did");
    return;
  }
  const auto n = static_cast<double>(calls);
  const std::string note = "mean of " + std::to_string(calls) + " calls";
  const auto add = [&](const char* name, double value, const char* unit) {
    out.metrics.push_back({std::string("software.") + name, value, unit, "proc", provenance::measured, note});
  };
  add("task_clock", cpu / n, "s");
  add("cpus_utilized", cpu / wall_seconds, "CPUs");
  add("context_switches", static_cast<double>(switches) / n, "count");
  add("page_faults", static_cast<double>(faults) / n, "count");
  if (migrations_known) add("cpu_migrations", static_cast<double>(migrations) / n, "count");
  if (context.options.threads > 1 && working > 1) add("thread_imbalance", largest / (cpu / working), "ratio");
}

} // namespace pragma
