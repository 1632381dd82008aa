// The story on top of a report: why the kernel is faster, from facts that stand in the record.
#include "cli/report.hpp"

#include "base/text.hpp"
#include "cli/html.hpp"
#include "cli/torch_work.hpp"
#include "diagnosis/what_limits.hpp"

#include <algorithm>
#include <cmath>

namespace pragma {

namespace {

using namespace html;

constexpr size_t most_failed_ideas = 8, most_moves = 8, most_operators = 8, most_timed = 5;
constexpr double least_share = 0.01; ///< of the time: smaller operators are told together

struct step {
  std::string name, note;
  double seconds = 0;
  const char* kind = "";   ///< class of its bar: "torch", "", "final", "limit"
};

std::string bars(const std::vector<step>& steps) {
  double longest = 0;
  for (const auto& s : steps) longest = std::max(longest, s.seconds);
  if (longest <= 0) return {};
  std::string out = "<div class=\"steps\">\n";
  for (const auto& s : steps)
    out += "<span>" + escape(s.name) + "</span><i class=\"" + s.kind + "\" style=\"width:" + format_number(100 * s.seconds / longest, 2) + "%\"></i><span>" +
           format_seconds(s.seconds) + (s.note.empty() ? "" : " <span class=\"soft\">" + escape(s.note) + "</span>") + "</span>\n";
  return out + "</div>\n";
}

std::string rate(double bytes, double seconds) { return bytes > 0 && seconds > 0 ? ", " + quantity(bytes / seconds / 1e9, "GB/s") + " of the task's own traffic" : std::string(); }

std::string gain(const interval& i) { return format_number(i.value, 2) + "x (" + format_number(i.low, 2) + " to " + format_number(i.high, 2) + ")"; }

/// How much more than necessary Torch moves, operator by operator.
std::string of_torch(const torch_work& work, double bytes) {
  if (work.operators.empty() || bytes <= 0) return {};
  auto names = work.operators;
  const size_t more = names.size() > most_operators ? names.size() - most_operators : 0;
  names.resize(names.size() - more);
  const auto count = work.operators.size();
  return "The task is " + std::to_string(count) + (count == 1 ? " operator (" : " operators (") + join(names, ", ") + (more > 0 ? ", " + std::to_string(more) + " more" : "") + "), which eager Torch runs " + (count == 1 ? "" : "one after the other: they ") +
         (count == 1 ? "by reading and writing " : "read and write ") + format_bytes(work.bytes) + "; the task's own inputs and outputs are " + format_bytes(bytes);
}

/// "pow 57%, mul 27% (2 calls), 3 more 1%"
std::string of_operators(const std::vector<operator_time>& operators) {
  std::vector<std::string> parts;
  double rest = 1;
  for (const auto& o : operators) {
    if (parts.size() == most_timed || o.share < least_share) break;
    rest -= o.share;
    parts.push_back(o.name + " " + format_number(100 * o.share, 0) + "%" + (o.calls > 1 ? " (" + std::to_string(o.calls) + " calls)" : ""));
  }
  if (const auto more = operators.size() - parts.size(); more > 0) parts.push_back(std::to_string(more) + " more " + (rest < least_share ? "under 1%" : format_number(100 * rest, 0) + "%"));
  return join(parts, ", ");
}

/// Where eager Torch's time goes, as its own profiler has it, and on a device how many kernels it launches beside ours.
std::vector<std::string> of_time(const std::vector<operator_time>& operators, const iteration_record& best) {
  int64_t launches = 0;
  for (const auto& o : operators) {
    if (!(o.share >= 0 && o.share <= 1)) return {};
    launches += o.launches;
  }
  if (operators.empty()) return {};
  std::vector<std::string> lines = {"Eager Torch's time by operator, by its own profiler: " + of_operators(operators)};
  const auto own = best.code.measured.kernels.size();
  if (launches > 0)
    lines.push_back("Eager Torch launches " + std::to_string(launches) + (launches == 1 ? " kernel" : " kernels") + " a call" +
                    (own > 0 ? "; this one has " + std::to_string(own) + (own == 1 ? " kernel" : " different kernels") : ""));
  return lines;
}

/// What stands of it in the schedule of the built-in coder: regions of fused loops.
std::string in_regions(const iteration_record& best) {
  const auto schedule = parse_if_json(best.code.schedule);
  const auto regions = schedule.is_object() ? schedule.value("regions", json::array()).size() : 0;
  return regions == 0 ? std::string() : ", in " + std::to_string(regions) + (regions == 1 ? " fused pass" : " fused passes");
}

struct kept_moves {
  std::vector<const iteration_record*> told; ///< in order; of many those that gained most, the first and the last
  size_t smaller = 0;                        ///< how many are not told
};

kept_moves moves_of(const std::vector<iteration_record>& iterations) {
  kept_moves moves;
  for (const auto& it : iterations)
    if (it.passed() && it.new_best) moves.told.push_back(&it);
  if (moves.told.size() <= most_moves) return moves;
  auto by_gain = std::vector(moves.told.begin() + 1, moves.told.end() - 1);
  std::stable_sort(by_gain.begin(), by_gain.end(), [](auto* a, auto* b) { return a->against_best.value > b->against_best.value; });
  by_gain.resize(most_moves - 2);
  moves.smaller = moves.told.size() - most_moves;
  std::erase_if(moves.told, [&](auto* it) { return it != moves.told.front() && it != moves.told.back() && std::find(by_gain.begin(), by_gain.end(), it) == by_gain.end(); });
  return moves;
}

/// What each version that was kept gained over the one before.
std::vector<std::string> lines_of(const kept_moves& moves) {
  std::vector<std::string> lines;
  for (const auto* it : moves.told) {
    const auto what = it->code.rationale.empty() ? "attempt " + std::to_string(it->number) : it->code.rationale;
    lines.push_back("Attempt " + std::to_string(it->number) + (it->against_best.value > 0 ? ", " + gain(it->against_best) + " of the best before" : ", the first that was right") + ": " + what);
  }
  return lines;
}

std::vector<std::string> no_help(const std::vector<iteration_record>& iterations) {
  std::vector<std::string> lines;
  for (const auto& it : iterations) {
    if (it.new_best) continue;
    const auto what = it.code.rationale.empty() ? "attempt " + std::to_string(it.number) : it.code.rationale;
    if (!it.established()) lines.push_back("Attempt " + std::to_string(it.number) + " was not established (" + it.verdict.reason.substr(0, 160) + "): " + what);
    else if (!it.passed()) lines.push_back("Attempt " + std::to_string(it.number) + " failed at " + it.stage() + " (" + it.verdict.reason.substr(0, 160) + "): " + what);
    else if (it.against_best.value > 0)
      lines.push_back("Attempt " + std::to_string(it.number) + ", " + gain(it.against_best) + " of best" + (it.against_best.low <= 1 && it.against_best.high >= 1 ? ", no difference established" : "") + ": " + what);
  }
  return lines;
}

} // namespace

std::string render_story(const std::vector<iteration_record>& iterations, const iteration_record* best, const timing* confirmed, const machine_limits* limits,
                         const roofline_work& work, const json& task) {
  if (!best || best->code.measured.time.candidate_seconds <= 0) return {};
  const auto& t = confirmed ? *confirmed : best->code.measured.time;
  const double bytes = work.bytes;
  std::vector<step> steps = {{"Torch", "", t.baseline_seconds, "torch"}};
  const auto moves = moves_of(iterations);
  for (const auto* it : moves.told)
    if (it->code.measured.time.candidate_seconds > 0)
      steps.push_back({"attempt " + std::to_string(it->number), it->against_best.value > 0 ? gain(it->against_best) : "", it->code.measured.time.candidate_seconds, ""});
  if (confirmed && !timed_in_search(t, best->code.measured.time)) steps.push_back({"confirmed", "fresh process, unseen seeds", t.candidate_seconds, "final"});
  std::vector<std::string> facts = {"Torch: " + format_seconds(t.baseline_seconds) + " a call" + rate(bytes, t.baseline_seconds) + (t.baseline.empty() ? "" : " (" + t.baseline + ")")};
  const auto torch = from_json_value<torch_work>(task.is_object() ? task.value("torch", json::object()) : json::object(), "torch").value_or(torch_work{});
  if (auto text = of_torch(torch, bytes); !text.empty()) facts.push_back(std::move(text));
  for (auto& line : of_time(torch.times, *best)) facts.push_back(std::move(line));
  facts.push_back("This kernel: " + format_seconds(t.candidate_seconds) + " a call" + rate(bytes, t.candidate_seconds) + in_regions(*best));
  if (limits && bytes > 0) {
    const auto point = place_on_roofline(t.candidate_seconds, work, *limits);
    if (std::isfinite(point.attainable_seconds) && point.attainable_seconds > 0) {
      steps.push_back({"limit", point.limit, point.attainable_seconds, "limit"});
      facts.push_back("The machine's limit for this task is " + point.limit + ": " + format_seconds(point.attainable_seconds) + " a call; it reaches " + roofline_text(point));
    }
  }
  if (!best->findings.empty()) facts.push_back("What limits it now: " + what_limits(best->findings, &best->code.measured));
  if (t.mostly_dispatch()) facts.push_back("Careful: so short a call of Torch is mostly dispatch from Python, which a call from C does not pay");
  std::string out = list(facts) + bars(steps);
  if (auto lines = table_lines(best->table); lines.size() > 1) {
    lines.erase(lines.begin());
    out += "<h3>Where the time goes</h3>\n" + list(lines);
  }
  if (const auto kept = lines_of(moves); !kept.empty()) out += "<h3>What helped</h3>\n" + list(kept);
  if (moves.smaller > 0) out += "<p class=\"soft\">" + std::to_string(moves.smaller) + " smaller steps below.</p>\n";
  if (auto tried = no_help(iterations); !tried.empty()) {
    const auto more = tried.size() > most_failed_ideas ? tried.size() - most_failed_ideas : 0;
    tried.resize(tried.size() - more);
    out += "<h3>What did not help</h3>\n" + list(tried);
    if (more > 0) out += "<p class=\"soft\">" + std::to_string(more) + " more below.</p>\n";
  }
  return out;
}

} // namespace pragma
