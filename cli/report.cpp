#include "cli/report.hpp"

#include "base/text.hpp"
#include "actors/messages.hpp"
#include "cli/charts.hpp"
#include "cli/html.hpp"
#include "base/line_diff.hpp"
#include "diagnosis/rules.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace pragma {

namespace {

using namespace html;

constexpr size_t max_diff_lines = 1500, max_log_bytes = 64 << 10;

/// The document with its iterations decoded once.
struct report_data {
  const json& run;
  const json& task;
  std::vector<iteration_record> iterations;
  std::vector<std::string> unreadable;
  const iteration_record *best = nullptr, *first = nullptr; ///< first: the first that passed
  std::optional<machine_limits> limits;
  roofline_work work;
};

/// A measurement that is not finite is none: drawings and ratios would come to nothing.
void keep_finite(timing& t) {
  for (double* value : {&t.candidate_seconds, &t.baseline_seconds, &t.speedup.value, &t.speedup.low, &t.speedup.high})
    if (!std::isfinite(*value)) *value = 0;
  if (t.candidate_seconds <= 0 || t.baseline_seconds <= 0) t.speedup = {};
  if (t.speedup.low <= 0) t.speedup.low = t.speedup.value;
  if (t.speedup.high <= 0) t.speedup.high = t.speedup.value;
}

report_data read_document(const json& document) {
  const auto& run = object_at(document, "run");
  report_data d{run, object_at(run, "task"), {}, {}, nullptr, nullptr, std::nullopt, {}};
  for (const auto& value : array_at(document, "iterations")) {
    auto record = from_json_value<iteration_record>(value, "attempt " + text_at(value, "number"));
    if (record) {
      keep_finite(record->code.measured.time);
      d.iterations.push_back(std::move(*record));
    } else {
      d.unreadable.push_back(record.error().message);
    }
  }
  for (const auto& it : d.iterations) {
    if (it.passed() && !d.first) d.first = &it;
    if (it.number == static_cast<int>(number_at(run, "best"))) d.best = &it;
  }
  if (d.best && !d.best->passed()) d.best = nullptr;
  const auto& limits = object_at(object_at(run, "environment"), "limits");
  if (!limits.empty())
    if (auto decoded = from_json_value<machine_limits>(limits, "limits")) d.limits = *decoded;
  const auto described = from_json_value<task>(d.task, "task");
  const auto options = object_at(run, "options");
  const auto of_before = options.value("allow_tf32", json()) == json(true) ? tf32_use::all : tf32_use::none; // versions that had a flag for all or nothing
  if (described) d.work = work_of(*described, options.contains("tf32") ? options["tf32"].get<tf32_use>() : of_before);
  else d.work = {number_at(d.task, "flops"), number_at(d.task, "bytes")};
  return d;
}

std::optional<timing> final_timing(const report_data& d) {
  const auto& value = object_at(object_at(d.run, "final"), "timing");
  if (value.empty()) return std::nullopt;
  auto decoded = from_json_value<timing>(value, "final");
  if (decoded) keep_finite(*decoded);
  if (!decoded || decoded->speedup.value <= 0) return std::nullopt;
  return *decoded;
}

bool as_called(const report_data& d) { return object_at(d.run, "final").value("as_called", json()) == json(true); }
/// Why the figure is the kernel's alone; empty where it is not, and in records from before there were others.
std::string why_not_called(const report_data& d) { return as_called(d) ? "" : text_at(object_at(d.run, "final"), "not_called"); }

/// The kernel without the call of a program around it: what a roofline can say something of.
std::optional<timing> kernel_timing(const report_data& d) {
  const auto& value = object_at(object_at(d.run, "final"), "kernel");
  auto decoded = from_json_value<timing>(value, "kernel");
  if (value.empty() || !decoded) return final_timing(d);
  keep_finite(*decoded);
  return decoded->speedup.value > 0 ? std::optional(*decoded) : final_timing(d);
}

std::string attempts_text(size_t count) { return std::to_string(count) + (count == 1 ? " attempt" : " attempts"); }

std::string verdict_line(const report_data& d) {
  const auto confirmed = final_timing(d);
  if (!d.best) {
    if (d.iterations.empty()) return "No attempt was made";
    return "No correct kernel in " + attempts_text(d.iterations.size());
  }
  if (!confirmed) return "Not established: attempt " + std::to_string(d.best->number) + " of " + std::to_string(d.iterations.size()) + " was right, and was not confirmed";
  const auto& t = *confirmed;
  const std::string spread = "95% interval " + format_number(t.speedup.low, 2) + "-" + format_number(t.speedup.high, 2);
  const std::string which = ", attempt " + std::to_string(d.best->number) + " of " + std::to_string(d.iterations.size());
  const std::string as = as_called(d) ? " as called" : why_not_called(d).empty() ? "" : " by the kernel alone";
  if (t.speedup.low > 1) return times(t.speedup.value) + " faster than Torch" + as + " (" + spread + ")" + which;
  if (as_called(d)) return "No gain as called: " + times(t.speedup.value) + " of Torch's speed (" + spread + ")" + which;
  if (t.speedup.high < 1) return "Slower than Torch: " + times(t.speedup.value) + " (" + spread + ")" + which;
  return "As fast as Torch: " + times(t.speedup.value) + " (" + spread + ")" + which;
}

std::string header_part(const report_data& d) {
  std::string out = "<h1>" + escape(text_at(d.task, "name").empty() ? "A run of pragma" : text_at(d.task, "name"));
  if (const auto category = text_at(d.task, "category"); !category.empty()) out += " &middot; " + escape(category);
  out += "</h1>\n<p class=\"verdict\">" + escape(verdict_line(d)) + "</p>\n";
  const auto confirmed = final_timing(d);
  if (d.best) {
    const auto& t = confirmed ? *confirmed : d.best->code.measured.time;
    std::string line = (confirmed ? "" : "While searching, ") + format_seconds(t.candidate_seconds) + " a call against " + format_seconds(t.baseline_seconds);
    if (!t.baseline.empty()) line += " for " + t.baseline;
    const bool in_search = confirmed && timed_in_search(*confirmed, d.best->code.measured.time);
    line += !confirmed ? "; not confirmed in a fresh process, " : in_search ? "; right in a fresh process with unseen seeds, timed in the search, " : "; confirmed in a fresh process with unseen seeds, ";
    line += std::to_string(t.blocks_accepted) + " of " + std::to_string(t.blocks_tried) + " pairs of samples accepted, " + t.cache + (t.cache == "warm" ? " caches" : "") + (t.note.empty() ? "" : "; " + t.note) + ".";
    out += "<p>" + escape(line) + "</p>\n";
    if (t.contended) out += "<p class=\"bad\">Other work was running while this was measured: the interval may lie.</p>\n";
    if (const auto why = why_not_called(d); confirmed && !why.empty()) out += "<p>That is the kernel alone. The drop-in was not timed as a Torch program calls it: " + escape(why) + ".</p>\n";
    if (const auto kernel = kernel_timing(d); kernel && as_called(d))
      out += "<p>That is the drop-in as a Torch program calls it, in a fresh process. The kernel alone: " + times(kernel->speedup.value) + ", " +
             format_seconds(kernel->candidate_seconds) + " against " + format_seconds(kernel->baseline_seconds) + ".</p>\n";
    if (d.limits && d.work.bytes > 0 && t.candidate_seconds > 0) {
      const auto point = place_on_roofline(t.candidate_seconds, d.work, *d.limits);
      if (std::isfinite(point.share) && point.share > 0)
        out += "<p>It reaches " + escape(roofline_text(point)) + ": one call cannot take less than " + format_seconds(point.attainable_seconds) +
               " on this machine.</p>\n";
    }
  } else if (!d.iterations.empty()) {
    const auto& last = d.iterations.back();
    out += "<p>The last attempt failed at " + escape(last.stage()) + ": " + escape(last.verdict.reason) + "</p>\n";
  }
  std::string when = "Run " + text_at(d.run, "id");
  if (const auto started = text_at(d.run, "started"); !started.empty()) when += ", started " + started;
  if (const auto finished = text_at(d.run, "finished"); !finished.empty()) when += ", finished " + finished;
  if (const auto state = text_at(d.run, "state"); !state.empty()) when += ", " + state;
  if (const auto why = text_at(d.run, "stop_reason"); !why.empty()) when += "; stopped: " + why;
  return out + "<p class=\"soft\">" + escape(when) + "</p>\n";
}

/// Of a right version that was not kept: the ratio that decided, not the one over Torch, which may look better.
std::string standing(const iteration_record& it) {
  return it.against_best.value > 0 ? times(it.against_best.value) + " of best" : "right";
}

std::string attempts_table(const report_data& d) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& it : d.iterations) {
    const auto& t = it.code.measured.time;
    const bool timed = it.passed() && t.speedup.value > 0;
    std::string says = it.passed() ? (it.findings.empty() ? "" : escape(json(it.findings[0].what).get<std::string>() + (it.findings[0].level.empty() ? "" : " (" + it.findings[0].level + ")")))
                                   : escape(it.verdict.reason.substr(0, 200));
    rows.push_back({"<a href=\"#attempt-" + std::to_string(it.number) + "\">" + std::to_string(it.number) + "</a>",
                    it.passed() ? (it.new_best ? "<span class=\"good\">new best</span>" : escape(standing(it))) : !it.established() ? "not established" : "<span class=\"bad\">failed: " + escape(it.stage()) + "</span>",
                    timed ? escape(with_interval(t.speedup)) + (t.contended ? " *" : "") : "-", timed ? format_seconds(t.candidate_seconds) : "-",
                    it.against_best.value > 0 ? escape(with_interval(it.against_best)) : "-", format_seconds(it.wall_seconds), says});
  }
  auto out = table({"attempt", "state", "over Torch", "one call", "over the best before", "took", "main finding, or why it failed"}, rows, 2, 6);
  for (const auto& it : d.iterations)
    if (it.code.measured.time.contended) return out + "<p class=\"soft\">* measured while other work was running.</p>\n";
  return out;
}

/// What timing alone says of the reference, beside the same metrics of the candidates.
std::optional<double> of_reference(const std::string& metric, const report_data& d) {
  if (!d.best) return std::nullopt;
  const double seconds = d.best->code.measured.time.baseline_seconds;
  if (seconds <= 0) return std::nullopt;
  if (metric == "seconds_per_call") return seconds;
  if (metric == "achieved_gbs" && d.work.bytes > 0) return d.work.bytes / seconds / 1e9;
  if (metric == "achieved_gflops" && d.work.flops > 0) return d.work.flops / seconds / 1e9;
  if (metric == "arithmetic_intensity" && d.work.flops > 0 && d.work.bytes > 0) return d.work.flops / d.work.bytes;
  if (metric == "roofline_share" && d.limits && d.work.bytes > 0) return 100 * place_on_roofline(seconds, d.work, *d.limits).share;
  return std::nullopt;
}

std::string metrics_part(const report_data& d) {
  if (!d.best) return {};
  const auto& best = d.best->code.measured;
  const profile* first = d.first && d.first != d.best ? &d.first->code.measured : nullptr;
  std::vector<std::vector<std::string>> rows;
  auto add = [&](const metric& m, const metric* of_best, const metric* of_first) {
    const auto reference = of_reference(m.name, d);
    std::string change = "-";
    if (of_best && of_first && of_first->value != 0 && m.unit != "line") change = format_number(100 * (of_best->value / of_first->value - 1), 0) + "%";
    if (change[0] != '-') change = "+" + change;
    const auto* meaning = find_meaning(m.name);
    rows.push_back({"<code" + (meaning ? " title=\"" + escape(meaning->meaning + " " + meaning->reading) + "\"" : std::string()) + ">" + escape(m.name) + "</code>",
                    reference ? quantity(*reference, m.unit) : "-", of_first ? quantity(of_first->value, m.unit) : "-",
                    of_best ? quantity(of_best->value, m.unit) : "-", change,
                    escape(json(m.how).get<std::string>() + ", " + m.tool) + (m.note.empty() ? "" : "<br><span class=\"soft\">" + escape(m.note) + "</span>")});
  };
  if (!best.find("seconds_per_call") && best.time.candidate_seconds > 0) {
    const metric now{"seconds_per_call", best.time.candidate_seconds, "s", "timer", provenance::measured, ""};
    metric then = now;
    if (first) then.value = first->time.candidate_seconds;
    add(now, &now, first ? &then : nullptr);
  }
  for (const auto& m : best.metrics) add(m, &m, first ? first->find(m.name) : nullptr);
  if (first)
    for (const auto& m : first->metrics)
      if (!best.find(m.name)) add(m, nullptr, &m);
  auto out = table({"metric", "Torch", first ? "first (" + std::to_string(d.first->number) + ")" : "first", "best (" + std::to_string(d.best->number) + ")", "change", "how it was obtained"},
                   rows, 1, 5);
  out += "<p class=\"soft\">Of the reference only what follows from its time is known. Simulated and static figures come from models of the machine, not from its counters.</p>\n";
  if (!best.missing.empty()) out += "<p class=\"soft\">Not available here:</p>\n" + list(best.missing);
  return out;
}

std::string roofline_part(const report_data& d) {
  if (!d.limits) return {};
  std::vector<roofline_dot> dots;
  if (d.best) dots.push_back({"Torch", d.best->code.measured.time.baseline_seconds, false, true});
  for (const auto& it : d.iterations)
    if (it.passed()) dots.push_back({std::to_string(it.number), it.code.measured.time.candidate_seconds, &it == d.best, false});
  auto plot = roofline_plot(*d.limits, d.work, dots);
  if (plot.empty()) return {};
  return plot + "<p class=\"soft\">" + escape("Ceilings were measured on this machine (" + d.limits->cpu + ", " + std::to_string(d.limits->threads) + (d.limits->threads == 1 ? " thread" : " threads") +
                                              (d.limits->measured_at.empty() ? "" : ", " + d.limits->measured_at) + "): copy bandwidth per level, float32 FMA peak. The task needs " +
                                              quantity(d.work.flops, "FLOP") + " and " + format_bytes(d.work.bytes) + " a call.") + "</p>\n";
}

std::string findings_of(const std::vector<finding>& findings, const profile* p) {
  std::string out;
  for (const auto& f : findings) {
    out += "<h3>" + escape(json(f.what).get<std::string>()) + (f.level.empty() ? "" : " &middot; " + escape(f.level)) + " <span class=\"soft\">confidence " +
           format_number(f.confidence, 2) + escape(place_of(f)) + "</span></h3>\n<p>" + escape(f.why) + "</p>\n";
    std::vector<std::vector<std::string>> rows;
    for (const auto& e : f.proof) {
      const auto* m = p ? p->find(e.metric) : nullptr;
      rows.push_back({"<code>" + escape(e.metric) + "</code>", quantity(e.value, e.unit), e.has_best ? quantity(e.best_value, e.unit) : "-",
                      m ? escape(json(m->how).get<std::string>() + ", " + m->tool) : (e.metric == "remark" || e.metric == "source" ? "static" : "derived"), escape(e.text)});
    }
    out += table({"evidence", "value", "best before", "how", ""}, rows, 1, 3);
    for (const auto& c : f.documentation) {
      const bool web = c.url.rfind("https://", 0) == 0 || c.url.rfind("http://", 0) == 0;
      const auto where = web ? "<a href=\"" + escape(c.url) + "\" rel=\"noreferrer\">" + escape(c.url) + "</a>" : escape(c.url);
      out += "<p class=\"soft\"><code>" + escape(c.metric) + "</code>: " + escape(c.meaning) + (c.reading.empty() ? "" : " " + escape(c.reading)) +
             " [" + escape(c.entry) + "; " + where + "]" + (c.quote.empty() ? "" : " &ldquo;" + escape(c.quote) + "&rdquo;") + "</p>\n";
    }
    if (!f.remedies.empty()) out += "<p class=\"soft\">What to try:</p>\n" + list(f.remedies);
  }
  return out;
}

std::string diff_of(const code_version& before, const code_version& after) {
  const auto lines = line_diff(before.source, after.source);
  std::string out = "<pre class=\"diff\">";
  size_t shown = 0;
  for (const auto& l : lines) {
    if (++shown > max_diff_lines) {
      out += "<span class=\"h\">... (" + std::to_string(lines.size() - max_diff_lines) + " more lines)</span>";
      break;
    }
    switch (l.what) {
      case diff_line::kind::same: out += "<span>  " + escape(l.text) + "</span>"; break;
      case diff_line::kind::added: out += "<span class=\"a\">+ " + escape(l.text) + "</span>"; break;
      case diff_line::kind::removed: out += "<span class=\"d\">- " + escape(l.text) + "</span>"; break;
      case diff_line::kind::gap: out += "<span class=\"h\">  ... " + escape(l.text) + "</span>"; break;
    }
  }
  out += "</pre>\n";
  const auto flags = [](const code_version& v) { return v.compiler + " " + join(v.flags, " "); };
  if (flags(before) != flags(after)) out += "<p>Flags: <code>" + escape(flags(before)) + "</code> became <code>" + escape(flags(after)) + "</code></p>\n";
  return out;
}

std::string attempt_part(const iteration_record& it, const iteration_record* previous, bool open) {
  const auto& t = it.code.measured.time;
  std::string summary = "<b>Attempt " + std::to_string(it.number) + "</b> ";
  if (it.passed()) summary += (it.new_best ? "<span class=\"good\">new best</span> " : "") + (t.speedup.value > 0 ? escape(with_interval(t.speedup)) : "right");
  else if (!it.established()) summary += "not established: " + escape(it.verdict.reason.substr(0, 160));
  else summary += "<span class=\"bad\">failed: " + escape(it.stage()) + "</span> " + escape(it.verdict.reason.substr(0, 160));
  // Inside what is folded: who follows a link to it sees it opened.
  std::string body = "<span id=\"attempt-" + std::to_string(it.number) + "\"></span>\n";
  if (!it.code.rationale.empty()) body += "<p>" + escape(it.code.rationale) + "</p>\n";
  body += "<p class=\"soft\">" + escape("Written by " + (it.code.origin.empty() ? std::string("an unknown coder") : it.code.origin) + "; " + it.code.compiler + " " + join(it.code.flags, " ") +
                                        "; candidate " + it.code.id()) + "</p>\n";
  if (!it.passed() && !it.verdict.reason.empty()) body += "<p class=\"bad\">" + escape(it.verdict.reason) + "</p>\n";
  body += findings_of(it.findings, &it.code.measured);
  if (!it.reasoning.empty()) body += "<h3>The Conductor's reasoning</h3>\n" + pre(join(it.reasoning, "\n"));
  if (!it.actions.empty()) body += "<h3>What to do next</h3>\n" + list(it.actions);
  std::vector<std::vector<std::string>> rows;
  for (const auto& m : it.verdict.mismatches) {
    std::string index;
    for (const auto i : m.index) index += (index.empty() ? "" : ", ") + std::to_string(i);
    rows.push_back({escape(m.input_set), escape(m.output) + "[" + escape(index) + "]", escape(m.expected), escape(m.got),
                    quantity(static_cast<double>(m.wrong_elements), "") + " of " + quantity(static_cast<double>(m.total_elements), "")});
  }
  if (!rows.empty()) body += "<h3>Wrong values</h3>\n" + table({"inputs", "element", "expected", "got", "wrong elements"}, rows, 2, 5);
  if (previous) body += details("Changes since attempt " + std::to_string(previous->number), diff_of(previous->code, it.code));
  if (!it.verdict.log.empty()) body += details("Build and run log", pre(it.verdict.log, max_log_bytes));
  if (!it.code.measured.remarks.empty()) {
    std::string text;
    for (const auto& r : it.code.measured.remarks) text += "line " + std::to_string(r.line) + ": " + r.kind + ": " + r.text + " (static, " + r.compiler + ")\n";
    body += details("Compiler remarks", pre(text));
  }
  if (!it.code.schedule.empty()) body += details("Schedule", pre(it.code.schedule));
  body += details("Source", pre(it.code.source));
  body += "<p class=\"soft\">" + escape("Code " + format_seconds(it.code_seconds) + ", build " + format_seconds(it.build_seconds) + ", verify " + format_seconds(it.verify_seconds) +
                                        ", time " + format_seconds(it.time_seconds) + ", profile " + format_seconds(it.profile_seconds) + (it.finished.empty() ? "" : "; " + it.finished)) + "</p>\n";
  return details(summary, body, open);
}

std::string verified_part(const report_data& d) {
  if (!d.best) return {};
  const auto& final_verdict = object_at(object_at(d.run, "final"), "verdict");
  const json verdict = final_verdict.empty() ? json(d.best->verdict) : final_verdict;
  const auto checked = texts_at(verdict, "checked");
  std::string out;
  if (!checked.empty()) out += "<p>Every output of the kernel was compared with the reference and its float64 oracle, in processes of their own. It passed:</p>\n" + list(checked);
  const double worst = number_at(verdict, "worst_error"), tolerance = number_at(verdict, "tolerance");
  if (tolerance > 0) out += "<p>Tolerance " + escape(json(tolerance).dump()) + " of the output's own scale; the worst element used " + format_number(100 * worst, worst < 0.1 ? 2 : 0) + "% of what is allowed.</p>\n";
  const auto binary = text_at(verdict, "binary");
  if (!binary.empty()) out += "<p class=\"soft\">Verified executable: <code>" + escape(binary) + "</code></p>\n";
  const auto notes = texts_at(d.task, "notes");
  if (!notes.empty()) out += "<p class=\"soft\">About the task:</p>\n" + list(notes);
  return out;
}

std::string time_part(const report_data& d) {
  const auto& totals = object_at(d.run, "totals");
  static const std::pair<const char*, const char*> names[] = {{"load", "load the task"}, {"coder", "write code"}, {"build", "build"}, {"verify", "verify"},
                                                             {"time", "time"}, {"profile", "profile"}, {"confirm", "confirm"}, {"overhead", "overhead of pragma"}};
  std::vector<std::pair<std::string, double>> parts;
  for (const auto& [key, label] : names) parts.emplace_back(label, number_at(totals, key));
  auto out = time_split(parts);
  const double wall = number_at(totals, "wall");
  if (!out.empty() && wall > 0)
    out += "<p class=\"soft\">Wall time " + format_seconds(wall) + "; everything but building, running, measuring and writing code took " +
           format_number(100 * number_at(totals, "overhead") / wall, 1) + "%.</p>\n";
  const auto& usage = object_at(d.run, "usage");
  if (number_at(usage, "prompt_tokens") + number_at(usage, "completion_tokens") > 0) {
    std::string line = "Model: " + quantity(number_at(usage, "prompt_tokens"), "") + " tokens sent, " + quantity(number_at(usage, "completion_tokens"), "") + " received";
    if (number_at(usage, "cost") > 0) line += ", cost " + format_number(number_at(usage, "cost"), 4);
    if (usage.value("estimated", json(false)) == json(true)) line += " (partly estimated: 4 characters a token)";
    out += "<p class=\"soft\">" + escape(line) + "</p>\n";
  }
  return out;
}

std::string value_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array() || value.is_object()) {
    std::string all;
    for (const auto& [key, part] : value.items()) all += (all.empty() ? "" : ", ") + (value.is_object() ? key + " " : "") + value_text(part);
    return all;
  }
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Tensor specs print as themselves where they are texts, else as JSON.
std::string environment_part(const report_data& d) {
  std::vector<std::vector<std::string>> rows;
  auto add = [&](const std::string& what, const json& value) {
    const auto text = value_text(value);
    if (!text.empty() && text != "null") rows.push_back({escape(what), escape(text)});
  };
  const auto& environment = object_at(d.run, "environment");
  for (const auto& [key, value] : environment.items())
    if (key != "limits" && key != "notes") add(key, value);
  for (const auto& [key, value] : object_at(d.run, "options").items()) add("option: " + key, value);
  if (d.best && !d.best->code.measured.device.empty()) add("profiled on", d.best->code.measured.device);
  add("task file", text_at(d.task, "path"));
  add("task hash", text_at(d.task, "id"));
  return table({"", ""}, rows, 9, 9) + list(texts_at(environment, "notes"));
}

/// Of a task that was cut: which part is whose, what its kernel gained, and why not.
std::string parts_table(const report_data& d) {
  const auto cut = from_json_value<cut_record>(d.run.value("cut", json::object()), "the parts").value_or(cut_record{});
  std::vector<std::vector<std::string>> rows;
  for (const auto& p : cut.parts)
    rows.push_back({escape(p.name), escape(p.what), format_number(100 * p.share, 0) + "%", p.speedup.value > 0 ? escape(with_interval(p.speedup)) : "-",
                    p.torch_seconds > 0 ? format_seconds(p.torch_seconds) + " -> " + format_seconds(p.seconds) : "-", p.kept ? "a kernel of its own" + (p.open ? "; " + escape(p.why_not) : std::string()) : "Torch: " + escape(p.why_not)});
  for (size_t i = 0; i < cut.torch.size(); ++i) rows.push_back({"-", escape(cut.torch[i]), "-", "-", "-", "Torch" + (i < cut.why.size() ? ": " + escape(cut.why[i]) : "")});
  return table({"part", "operators", "share of the parts (guessed)", "over Torch", "one call", "whose"}, rows, 2, 5);
}

} // namespace

std::string render_html_report(const json& document) {
  const auto d = read_document(document);
  std::string body = header_part(d);
  const auto confirmed = final_timing(d);
  body += section("story", confirmed && confirmed->speedup.low > 1 ? "Why it is faster" : "What was found", render_story(d.iterations, d.best, confirmed ? &*confirmed : nullptr, d.limits ? &*d.limits : nullptr, d.work, d.task));
  if (const auto parts = parts_table(d); !parts.empty()) body += section("parts", "Its parts", parts);
  body += section("curve", "Speed-up over attempts", speedup_curve(d.iterations) + attempts_table(d));
  if (const auto metrics = metrics_part(d); !metrics.empty()) body += section("metrics", "Metrics", details("Best, first and reference, side by side", metrics));
  body += section("roofline", "Roofline", roofline_part(d));

  std::string attempts;
  if (const auto& graph = array_at(d.run, "graph_findings"); !graph.empty()) {
    std::vector<finding> findings;
    for (const auto& value : graph)
      if (auto f = from_json_value<finding>(value, "finding")) findings.push_back(std::move(*f));
    if (!findings.empty()) attempts += details("What the task itself shows", findings_of(findings, nullptr));
  }
  const iteration_record* previous = nullptr;
  for (const auto& it : d.iterations) {
    attempts += attempt_part(it, previous, &it == d.best);
    previous = &it;
  }
  if (!d.unreadable.empty()) attempts += "<p class=\"bad\">Attempts that could not be read:</p>\n" + list(d.unreadable);
  body += section("attempts", "Attempts: findings, reasoning, changes, logs", attempts);
  if (d.best) {
    std::string kernel = "<p class=\"soft\">" + escape("Attempt " + std::to_string(d.best->number) + ", " + d.best->code.compiler + " " + join(d.best->code.flags, " ")) + "</p>\n";
    body += section("kernel", "The kernel", kernel + pre(d.best->code.source, 2 << 20));
  }
  body += section("verified", "How it was verified", verified_part(d));
  body += section("time", "Where the time went", time_part(d));
  body += section("environment", "Environment", environment_part(d));
  if (const auto source = text_at(d.task, "source"); !source.empty()) body += section("task", "The task", details("Reference in PyTorch", pre(source)));
  return page("PRAGMA: " + text_at(d.task, "name"), body);
}

} // namespace pragma
