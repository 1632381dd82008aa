#include "diagnosis/time_table.hpp"

#include "base/text.hpp"
#include "diagnosis/core_model.hpp"
#include "diagnosis/rules.hpp"
#include "diagnosis/source_parts.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace pragma {

namespace {

constexpr double told_unexplained = 0.005; ///< of the time: less is not told
constexpr double least_share = 0.02;      ///< of a phase with a row of its own
constexpr double explains = 0.6;          ///< of a phase's time: from here on the model's figure accounts for it
constexpr double takes_time_away = 93;    ///< %: more is the spread of experiments
constexpr double hardly_waits = 0.75;     ///< of the time, with all data in L1
constexpr double contradiction = 1.3;     ///< times the measured time: a prediction above it rests on wrong trips
constexpr double agree = 8;               ///< trips by outputs and by inputs within this factor: either may be meant
constexpr double inferred_share = 0.25;   ///< a loop with less of the time is seldom the one that does the task's work
constexpr double certain_contraction = 16; ///< the same without a fused multiply-add in the loop: more than any formula for single elements has
constexpr double contraction = 4;         ///< FLOP for each float32 element moved: the FLOPs say how often a loop runs

/// Times of all loops by what is known: shares of the time as they are, shares of instructions weighted by the cycles that each takes.
std::vector<double> loop_seconds(const std::vector<loop_cost>& loops, double seconds) {
  std::vector<double> out(loops.size(), 0);
  double instructions = 0, weighted = 0;
  for (const auto& l : loops)
    if (l.how == provenance::simulated && l.share > 0) {
      instructions += l.share;
      weighted += l.share * (l.cycles > 0 && l.instructions > 0 ? l.cycles / l.instructions : 1);
    }
  for (size_t i = 0; i < loops.size(); ++i) {
    const auto& l = loops[i];
    if (l.share <= 0) continue;
    const double each = l.cycles > 0 && l.instructions > 0 ? l.cycles / l.instructions : 1;
    out[i] = l.how == provenance::simulated ? seconds * std::min(1.0, instructions) * l.share * each / weighted : seconds * l.share;
  }
  if (loops.size() == 1 && loops[0].share <= 0) out[0] = seconds; // one loop, and nothing says that there is more
  return out;
}

bound kind_of_core(const loop_cost& l, const diagnosis_input& in) {
  if (core::divider_share(l, in) >= explains) return bound::divider;
  if (l.calls > 0) return bound::calls;
  if (core::waits_for_itself(l)) return bound::dependency_chain;
  return bound::execution_units;
}

std::string sentence(const time_phase& p, const loop_cost& l, const std::string& level) {
  std::vector<std::string> parts;
  if (p.core_seconds > 0) parts.push_back("llvm-mca predicts " + format_seconds(p.core_seconds) + " as written, with all data in L1");
  if (p.move_seconds > 0) parts.push_back("its bytes need " + format_seconds(p.move_seconds) + " at " + level + "'s bandwidth");
  if (l.vector_bits > 0) parts.push_back(std::to_string(l.vector_bits) + "-bit vectors");
  if (p.by == bound::execution_units && !l.port.empty()) parts.push_back("busiest unit " + l.port);
  if (p.by == bound::dependency_chain && l.chains > 0) parts.push_back(std::to_string(l.chains) + (l.chains == 1 ? " accumulator" : " accumulators"));
  if (l.calls > 0) parts.push_back(std::to_string(l.calls) + " calls, which the prediction leaves out");
  return join(parts, "; ");
}

struct memory_side {
  double seconds = 0;        ///< of all bytes as they really move
  double needed_seconds = 0; ///< of each byte once
  std::string level;
};

memory_side memory_of(const diagnosis_input& in, double seconds) {
  memory_side m;
  if (!in.limits || in.bytes <= 0) return m;
  const auto point = place_on_roofline(seconds, {0, in.bytes, in.written_bytes, in.products}, *in.limits);
  m.needed_seconds = point.attainable_seconds;
  m.level = point.limit.substr(0, point.limit.find(" bandwidth"));
  const auto traffic = in.current->value(m.level == "memory" ? "callgrind.ll_traffic_ratio" : "callgrind.l1_traffic_ratio").value_or(1);
  m.seconds = m.level == "L1" ? 0 : point.likely_seconds * std::max(1.0, traffic); // llvm-mca's figures hold L1's time already
  return m;
}

/// `cached`: time of the call with its data in L1, of the usual time, where an experiment says so: then bytes do not bound what hardly waits for them.
void explain(time_phase& p, const loop_cost& l, const diagnosis_input& in, std::optional<double> cached) {
  const bool moves = p.move_seconds > p.core_seconds && !(cached && *cached > hardly_waits);
  const double model = moves ? p.move_seconds : p.core_seconds;
  if (model < explains * p.seconds) {
    p.by = l.calls > 0 ? bound::calls : bound::unknown;
    return;
  }
  p.by = moves ? bound::bandwidth : kind_of_core(l, in);
  if (p.by != bound::bandwidth) p.level.clear();
}

/// Time that no loop takes: by samples where there are some.
void add_other_phases(const profile& p, double rest, time_table& table) {
  const auto add = [&](const char* name, bound by, double seconds, double explained, const std::string& evidence) {
    if (seconds < least_share * table.seconds) return;
    time_phase phase;
    phase.phase = name;
    phase.seconds = seconds;
    phase.by = by;
    phase.core_seconds = explained;
    phase.evidence = evidence;
    table.phases.push_back(std::move(phase));
  };
  const auto share = [&](const char* name) { return p.value(name).value_or(0) / 100 * table.seconds; };
  const double library = std::min(rest, share("samples.library_share")), system = std::min(rest - library, share("samples.system_share"));
  const auto* named = p.find("samples.library_share");
  add("library functions", bound::calls, library, library, named ? named->note : "");
  const auto faults = p.value("software.page_faults");
  add("operating system", bound::system, system, system, faults && *faults >= 1 ? format_number(*faults, 0) + " page faults in a call" : "time of the call that is not the candidate's own");
  add("rest of the kernel", bound::unknown, rest - library - system, 0, "outside of the loops above: set-up, remainders, outer loops");
}

} // namespace

double trips_of(const loop_cost& l, const diagnosis_input& in, double seconds) {
  if (l.trips > 0) return l.trips;
  const auto possible = [&](double trips) {
    const double core = trips * core::cycles_of(l, in) / core::hertz(in) / std::max(1, in.threads);
    return std::isfinite(core) && core <= contradiction * seconds ? trips : 0;
  };
  if (const double trips = possible(l.twin_trips); trips > 0) return trips;
  if (l.share > 0 && l.share < inferred_share) return 0;
  const double written = std::max(0.0, in.written_bytes), read = std::max(0.0, in.bytes - written);
  const bool contracts = in.flops >= (l.fused > 0 ? contraction : certain_contraction) * in.bytes / 4;
  if (contracts && l.flops > 0) return possible(in.flops / l.flops);
  // It goes over all inputs and all outputs: a sum that is kept in memory stores far more often than there are results.
  const double by_stores = l.stored_bytes > 0 ? written / l.stored_bytes : 0, by_loads = l.loaded_bytes > 0 ? read / l.loaded_bytes : 0;
  const double most = std::max(by_stores, by_loads), other = std::min(by_stores, by_loads);
  if (const double trips = possible(most); trips > 0) return trips;
  return other >= most / agree ? possible(other) : 0; // a count for each line of input and few results: the results do not say how often it runs
}

time_table table_of(const diagnosis_input& in) {
  time_table table;
  if (!in.current || in.current->backend != "cpu" || (in.limits && in.limits->backend != "cpu")) return table;
  const auto& p = *in.current;
  const double seconds = p.time.candidate_seconds > 0 ? p.time.candidate_seconds : p.value("seconds_per_call").value_or(0);
  if (!(seconds > 0)) return table;
  const auto loops = core::loops_of(p);
  if (loops.empty() && !p.value("samples.library_share")) return table;
  table.seconds = seconds;
  const bool sampled = p.value("samples.count").has_value();
  table.shares = sampled ? "samples" : !loops.empty() && loops.front().share > 0 ? "simulated instructions" : "one loop";
  const auto memory = memory_of(in, seconds);
  const auto times = loop_seconds(loops, seconds);
  const auto percent = p.value("experiment.cached_time");
  const auto cached = percent ? std::optional<double>(*percent / 100) : std::nullopt;
  double in_loops = 0;
  for (double t : times) in_loops += t;
  double sum = 0;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (times[i] < least_share * seconds) continue;
    const auto& l = loops[i];
    time_phase phase;
    phase.line = l.line;
    phase.part = part_of(in.source, l.line);
    phase.phase = l.line > 0 ? "loop at line " + std::to_string(l.line) : "a loop";
    phase.seconds = times[i];
    const double trips = trips_of(l, in, times[i]);
    phase.core_seconds = trips * core::cycles_of(l, in) / core::hertz(in) / std::max(1, in.threads);
    const double part = in_loops > 0 ? times[i] / in_loops : 1; // bytes are divided as the time is
    phase.level = memory.level;
    phase.move_seconds = memory.seconds * part;
    const double peak = in.limits && in.limits->peak_gflops > 0 ? trips * l.flops / (in.limits->peak_gflops * 1e9) : 0;
    phase.least_seconds = std::min(phase.seconds, std::max(peak, memory.needed_seconds * part));
    explain(phase, l, in, cached);
    phase.evidence = sentence(phase, l, memory.level);
    sum += phase.seconds;
    table.phases.push_back(std::move(phase));
  }
  add_other_phases(p, std::max(0.0, seconds - sum), table);
  for (const auto& m : p.metrics)
    if (m.name.starts_with("experiment.") && m.value < takes_time_away) table.tried.push_back(m.note);
  std::stable_sort(table.phases.begin(), table.phases.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  for (const auto& phase : table.phases) table.unexplained_seconds += std::max(0.0, phase.seconds - std::max(phase.core_seconds, phase.move_seconds));
  return table;
}

std::vector<std::string> table_lines(const time_table& table) {
  std::vector<std::string> lines;
  if (!(table.seconds > 0)) return lines;
  lines.push_back("Where the " + format_seconds(table.seconds) + " of a call go (shares by " + table.shares + "):");
  for (const auto& p : table.phases) {
    auto line = "  " + format_number(100 * table.share(p), 0) + "% " + (p.part.empty() ? "" : p.part + ", ") + p.phase + ": " + format_seconds(p.seconds) + ", ";
    line += p.by == bound::unknown ? "nothing explains it" : "bound by " + json(p.by).get<std::string>() + (p.by == bound::bandwidth ? " of " + p.level : "");
    if (p.least_seconds > 0) line += ", at the least " + format_seconds(p.least_seconds);
    if (!p.evidence.empty()) line += " (" + p.evidence + ")";
    lines.push_back(std::move(line));
  }
  if (table.unexplained_seconds >= told_unexplained * table.seconds) lines.push_back("  in all, nothing explains " + format_number(100 * table.unexplained_seconds / table.seconds, 0) + "% (" + format_seconds(table.unexplained_seconds) + ")");
  for (const auto& note : table.tried) lines.push_back("  tried (measured): " + note);
  return lines;
}

} // namespace pragma
