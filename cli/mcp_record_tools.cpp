// The tools of `pragma mcp` that read: diagnose, ask, show_metric, hardware, runs.
#include "cli/mcp_tools.hpp"
#include "cli/progress.hpp"
#include "cli/stored_runs.hpp"

#include "base/text.hpp"
#include "knowledge/library.hpp"
#include "profilers/hardware.hpp"

#include <algorithm>

namespace pragma::cli {

namespace {

using mcp::kind;

json listed(const run_summary& h) {
  return {{"id", h.id}, {"task", h.task}, {"state", h.state}, {"started", h.started}, {"best_attempt", h.best_attempt},
          {"speedup", figure_of(h)}, {"stop_reason", h.stop_reason}};
}

std::string line_of(const run_summary& h) {
  return h.id + "  " + h.state + "  " + figure_text(h) + "  " + h.task + "\n";
}

expected<mcp::answer> recorded_runs(const mcp::call& call) {
  auto all = list_stored_runs();
  if (!all) return fail(all.error());
  const auto wanted = call.arguments.value("task", std::string());
  const auto limit = call.arguments["limit"].get<size_t>();
  mcp::answer answer;
  auto& list = answer.data["runs"] = json::array();
  for (const auto& h : *all) {
    if (list.size() == limit) break;
    if (!wanted.empty() && h.task.find(wanted) == std::string::npos) continue;
    list.push_back(listed(h));
    answer.text += line_of(h);
  }
  if (list.empty()) answer.text = "no runs recorded" + (wanted.empty() ? std::string() : " of a task whose name has \"" + wanted + "\"");
  return answer;
}

/// The stored attempt diagnosed anew, by today's rules.
expected<mcp::answer> diagnose_attempt(const mcp::call& call) {
  auto run = read_stored_run(call.arguments["run"]);
  if (!run) return fail(run.error());
  const auto& h = run->header;
  const int wanted = call.arguments.value("attempt", h.best_attempt);
  const auto it = std::find_if(run->iterations.begin(), run->iterations.end(), [&](const auto& r) { return r.number == wanted; });
  if (it == run->iterations.end())
    return fail(ec::not_found, "run " + h.id + " has no attempt " + std::to_string(wanted), "it has " + std::to_string(run->iterations.size()) + "; the best is " + std::to_string(h.best_attempt));
  mcp::answer answer;
  answer.data = {{"run", h.id}, {"attempt", it->number}, {"stage", it->stage()}, {"reason", it->verdict.reason}, {"rationale", it->code.rationale}, {"source", it->code.source}};
  for (const auto& line : it->reasoning) answer.text += line + "\n";
  if (!it->passed()) {
    answer.text += it->verdict.log;
    for (const auto& hint : repairs_for(it->verdict, it->code.language)) answer.text += "try: " + hint.remedy + " (" + hint.cause + ")\n";
    return answer;
  }
  if (!it->code.has_profile || it->code.measured.metrics.empty()) {
    answer.text += "This attempt was not profiled: use the tool profile on its source.\n";
    return answer;
  }
  const auto found = diagnose(diagnosis_of(h.environment, h.request.load, it->code.measured, nullptr, it->code.source, it->code.flags));
  answer.data["findings"] = found;
  answer.data["timing"] = it->code.measured.time;
  answer.data["metrics"] = it->code.measured.metrics;
  answer.text += findings_text(found);
  return answer;
}

std::string entry_text(const entry& e) {
  std::string text = e.name + (e.profiler.empty() ? " (concept)" : " (" + e.profiler + ")") + (e.unit.empty() ? "" : " [" + e.unit + "]") + "\n";
  for (const auto* part : {&e.meaning, &e.measurement, &e.reading})
    if (!part->empty()) text += "  " + *part + "\n";
  for (const auto& s : e.sources) text += "  source: " + s.url + "\n";
  return text;
}

expected<mcp::answer> ask_compendium(const mcp::call& call) {
  auto compendium = library::open(library_paths::usual(), {}, true);
  if (!compendium) return fail(compendium.error());
  auto found = compendium->ask({call.arguments["question"], call.arguments["count"].get<size_t>(), call.arguments.value("profiler", ""), call.arguments.value("hardware", "")});
  if (!found) return fail(found.error());
  mcp::answer answer;
  if (!found->found.in_scope) answer.text = "The compendium does not cover this" + (found->found.why_not.empty() ? std::string() : ": " + found->found.why_not) + ". Nearest all the same:\n";
  for (const auto& e : found->entries) answer.text += entry_text(e);
  answer.data = {{"covered", found->found.in_scope}, {"entries", found->entries}};
  return answer;
}

expected<mcp::answer> show_metric(const mcp::call& call) {
  auto compendium = library::open(library_paths::usual(), {}, true);
  if (!compendium) return fail(compendium.error());
  bool exact = false;
  auto found = compendium->show(call.arguments["name"], call.arguments.value("profiler", ""), 5, &exact);
  if (!found) return fail(found.error());
  if (found->empty()) return fail(ec::not_found, "the compendium has no metric like '" + call.arguments["name"].get<std::string>() + "'", "ask in your own words with the tool ask");
  mcp::answer answer;
  if (!exact) answer.text = "There is none of that name; the nearest:\n";
  for (const auto& e : *found) answer.text += entry_text(e);
  answer.data = {{"exact", exact}, {"entries", *found}};
  return answer;
}

expected<mcp::answer> hardware_limits(const mcp::call& call) {
  auto facts = read_cpu_facts();
  if (!facts) return fail(facts.error());
  auto limits = machine_roofline(call.arguments["threads"], false, [&](int done, int total, const std::string& what) { call.progress(done, total, "measuring " + what); });
  if (!limits) return fail(limits.error());
  std::string text = facts->model + ", " + std::to_string(facts->cores) + " cores, SIMD " + std::to_string(facts->simd_bits) + " bits, hardware counters: " + (facts->has_pmu ? "yes" : "no") + "\n";
  static constexpr const char* levels[] = {"L1", "L2", "L3", "memory"};
  for (size_t i = 0; i < limits->copy_gbs.size() && i < 4; ++i) text += std::string(levels[i]) + " copy " + format_number(limits->copy_gbs[i], 1) + " GB/s; ";
  text += "peak " + format_number(limits->peak_gflops, 1) + " GFLOP/s float32 with " + std::to_string(limits->threads) + (limits->threads == 1 ? " thread, measured " : " threads, measured ") + (limits->measured_at.empty() ? "while other work ran (too low, perhaps; not kept)" : limits->measured_at);
  return mcp::answer{std::move(text), {{"cpu", *facts}, {"limits", *limits}}};
}

} // namespace

std::vector<mcp::tool> record_tools() {
  return {
      {"diagnose", "What limits an attempt of a run?", "The findings of a recorded attempt: what limits it, the evidence, what to try; of a failed one, why it failed and how to repair it.",
       {{"run", kind::text, "run id (tool runs), `last`, or a task's name: its newest run", true}, {"attempt", kind::whole, "number of the attempt (default: the best one)", false, nullptr, {}, 1, 100000}}, true, diagnose_attempt},
      {"ask", "Ask the compendium", "Which profiler metric shows something, or what one means: entries with their sources, or that it is not covered.",
       {{"question", kind::text, "in your own words", true},
        {"count", kind::whole, "most entries", false, 5, {}, 1, 50},
        {"profiler", kind::text, "only of this profiler", false},
        {"hardware", kind::text, "for this hardware, e.g. zen 3 or sm_90", false}},
       true, ask_compendium},
      {"show_metric", "What does this metric mean?", "One metric by its name: meaning, measurement, reading, sources.",
       {{"name", kind::text, "as the profiler writes it", true}, {"profiler", kind::text, "of this profiler", false}}, true, show_metric},
      {"hardware", "What can this machine do at most?", "The processor and its measured bandwidths and peak: the roofline that figures are placed on.",
       {{"threads", kind::whole, "threads of the measurement", false, 1, {}, 1, 1024}}, true, hardware_limits},
      {"runs", "Recorded runs", "The runs on this machine, newest first, with what each established.",
       {{"limit", kind::whole, "most runs", false, 20, {}, 1, 1000}, {"task", kind::text, "only of tasks whose name has this in it", false}}, true, recorded_runs},
  };
}

} // namespace pragma::cli
