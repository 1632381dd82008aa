// Differential profiling: the candidate runs once more under conditions that take one possible cause away, and the time that is gone was that cause's.
// Needs no counter. The runner changes what lies round the code (execution/run_conditions.hpp), never the code; both runs alternate, and the
// shortest time of each counts once a second one confirms it. Nothing of this enters the candidate's own time.
#include "base/files.hpp"
#include "base/text.hpp"
#include "profilers/running.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

namespace pragma {

namespace {

constexpr int fewest_rounds = 5, most_rounds = 20; ///< of each of the two, alternating
constexpr double settled = 1.03;              ///< second shortest over shortest time: from here on another round would change nothing
constexpr double most_of_usual = 1.3;         ///< the experiment's usual time over the measured one: above the spread of runs
constexpr double of_the_effect = 0.2;         ///< the same, where both times lie far apart: of their difference
constexpr auto teams_sleep = std::chrono::milliseconds(15); ///< threads of the other process wait actively for some milliseconds after its last call
constexpr double round_seconds = 0.012;       ///< at least one call
constexpr double longest_call = 0.15;         ///< longer calls would cost seconds
constexpr uint64_t page = 4096;
constexpr uint64_t most_pieces = 16'384;      ///< mappings of one process: the kernel allows 65,530 in all
constexpr double least_for_huge_pages = 1 << 20; ///< bytes; fewer pages than the first-level TLB has entries cost nothing

struct experiment {
  const char* name;                           ///< of the metric, which is the time in % of the time without
  run_conditions how;
  std::string changed;                        ///< for the note
  int threads = 0;                            ///< 0: as many as always
};

bool floats(const tensor_spec& s) { return s.dtype == dtype::float32 || s.dtype == dtype::float64 || s.dtype == dtype::float16 || s.dtype == dtype::bfloat16; }

/// Bytes of each tensor, so that all of them lie in the first-level cache, else in the second; 0 where neither can be.
uint64_t fold_for(const collect_context& context, std::string& level) {
  uint64_t tensors = 0, bytes = 0;
  for (const auto* layout : {&context.ref.inputs_layout(), &context.ref.params_layout(), &context.ref.outputs_layout()})
    for (const auto& s : layout->specs)
      if (floats(s)) {
        ++tensors;
        bytes += s.bytes() * static_cast<uint64_t>(std::max(1, layout->slots));
      }
  if (tensors == 0) return 0;
  const uint64_t least = (bytes / most_pieces + page) / page * page;
  // AMD's first level finds a line by its linear address: pages that are one in memory push each other out of it, and only the second level holds them.
  const int64_t first_level = context.facts.vendor == "AuthenticAMD" ? 0 : context.facts.l1d_bytes;
  for (const auto& [name, size] : {std::pair<const char*, int64_t>{"L1", first_level}, {"L2", context.facts.l2_bytes}}) {
    const uint64_t room = static_cast<uint64_t>(std::max<int64_t>(0, size)) / 2 / tensors / page * page, fold = std::max(room, page);
    if (fold < least || fold * tensors * 4 > static_cast<uint64_t>(std::max<int64_t>(0, size)) * 3) continue;
    level = name;
    return std::min<uint64_t>(fold, 16 * page);
  }
  return 0;
}

std::vector<experiment> experiments_for(const collect_context& context) {
  std::vector<experiment> all;
  std::string level;
  if (const auto fold = fold_for(context, level); fold > 0) {
    run_conditions c;
    c.fold_bytes = fold;
    c.fold_reads = c.fold_writes = true;
    // Of several threads the outputs would share lines, which go back and forth between their cores.
    if (context.options.threads <= 1) all.push_back({"cached_time", c, "all tensors folded onto " + format_bytes(static_cast<double>(fold)) + " each, which " + level + " holds"});
    c.fold_writes = false;
    all.push_back({"cached_reads_time", c, "inputs folded onto " + format_bytes(static_cast<double>(fold)) + " each, which " + level + " holds"});
  }
  run_conditions flush, ones, huge;
  flush.flush_denormals = true;
  all.push_back({"flushed_time", flush, "denormals flushed to zero"});
  ones.ones = true;
  all.push_back({"ones_time", ones, "every input is 1"});
  huge.huge_pages = true;
  if (context.the_task.bytes >= least_for_huge_pages) all.push_back({"huge_pages_time", huge, "tensors on pages of 2 MiB"});
  if (context.options.threads > 1 && !splits_for_a_fixed_team(context.the_candidate.source)) all.push_back({"one_thread_time", {}, "one thread instead of " + std::to_string(context.options.threads), 1});
  return all;
}

/// The two shortest times of a call so far.
struct shortest {
  double first = std::numeric_limits<double>::infinity(), second = first;
  double spread() const { return second / first - 1; }
};
/// Another round of either would change little: of the times, or of what lies between them.
bool both_stand(const shortest& before, const shortest& after) {
  const double allowed = std::max(settled - 1, of_the_effect * std::abs(after.first / before.first - 1));
  return before.spread() <= allowed && after.spread() <= allowed;
}

/// One round more; false when the candidate failed.
bool run_round(running_candidate& running, shortest& times, bool in_a_team) {
  if (in_a_team) {
    std::this_thread::sleep_for(teams_sleep);
    if (!running.call(1)) return false; // wakes its own team
  }
  const auto calls = running.calls_for(round_seconds);
  if (!running.call(calls)) return false;
  const double seconds = running.runner.last_call().seconds / static_cast<double>(calls);
  times.second = std::min(times.second, std::max(times.first, seconds));
  times.first = std::min(times.first, seconds);
  return seconds > 0;
}

/// kB of anonymous huge pages that a process has; the kernel need not give any.
bool has_huge_pages(int pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  const auto at = text ? text->find("AnonHugePages:") : std::string::npos;
  return at != std::string::npos && std::atoll(text->c_str() + at + 14) > 0;
}

} // namespace

bool splits_for_a_fixed_team(const std::string& source) {
  const auto has = [&](const char* word) { return source.find(word) != std::string::npos; };
  return has("omp_get_thread_num") && !has("omp_get_num_threads") && !has("->threads") && !has(".threads");
}

bool under_usual_conditions(double usual_seconds, double measured_seconds) { return usual_seconds <= most_of_usual * measured_seconds; }

void experiment_metrics(const collect_context& context, source_result& out) {
  const auto leave_out = [&](const std::string& why) { out.missing.push_back("experiments: " + why); };
  if (!(context.time.candidate_seconds > 0) || context.time.candidate_seconds > longest_call) return leave_out("a call takes longer than " + format_seconds(longest_call));
  auto usual = start_running(context);
  if (!usual) return leave_out("cannot run the candidate: " + usual.error().message);
  const bool in_a_team = context.options.threads > 1;
  for (const auto& one : experiments_for(context)) {
    if (context.options.cancel && context.options.cancel->load()) return;
    auto changed = start_running(context, one.how, one.threads);
    if (!changed) { // a kernel may rely on what was changed: that says nothing of it
      leave_out(std::string(one.name) + ": " + changed.error().message);
      continue;
    }
    if (one.how.fold_bytes > 0) changed->slots = 1;
    if (one.how.huge_pages && !has_huge_pages(changed->runner.pid())) {
      leave_out("the system gave no pages of 2 MiB");
      continue;
    }
    shortest before, after;
    bool came_back = true;
    for (int round = 0; came_back && round < most_rounds && (round < fewest_rounds || !both_stand(before, after)); ++round) {
      if (!run_round(*usual, before, in_a_team)) return leave_out("the candidate did not come back");
      came_back = run_round(*changed, after, in_a_team);
    }
    if (!came_back || !both_stand(before, after)) {
      leave_out(std::string(one.name) + (came_back ? ": times differ from round to round: other work was running" : ": the candidate did not come back"));
      continue;
    }
    if (!under_usual_conditions(before.first, context.time.candidate_seconds)) {
      leave_out(std::string(one.name) + ": the usual run took " + format_seconds(before.first) + ", and " + format_seconds(context.time.candidate_seconds) + " where it was measured");
      continue;
    }
    out.metrics.push_back({std::string("experiment.") + one.name, 100 * after.first / before.first, "%", "experiment", provenance::measured,
                           one.changed + ": " + format_seconds(after.first) + " instead of " + format_seconds(before.first)});
  }
}

} // namespace pragma
