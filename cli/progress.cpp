#include "cli/progress.hpp"

#include "base/text.hpp"
#include "cli/html.hpp"
#include "diagnosis/rules.hpp"
#include "diagnosis/what_limits.hpp"
#include "kernels/parts.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::cli {

std::string speedup_text(const interval& s) {
  return format_number(s.value, 2) + "x (95% " + format_number(s.low, 2) + "-" + format_number(s.high, 2) + ")";
}

std::string checked_text(const std::vector<std::string>& checked) {
  constexpr std::string_view own = "own inputs, seed ";
  const auto seeds = std::count_if(checked.begin(), checked.end(), [&](const std::string& c) { return c.starts_with(own); });
  std::vector<std::string> parts;
  if (seeds > 0) parts.push_back("own inputs of " + std::to_string(seeds) + (seeds == 1 ? " seed" : " seeds"));
  for (const auto& c : checked)
    if (!c.starts_with(own)) parts.push_back(c);
  return join(parts, "; ");
}

std::string step_text(const run_event& e) {
  if (e.what == "confirming") return "confirming " + e.text;
  return "attempt " + std::to_string(e.what == "iteration" ? e.iteration.number : e.attempt) + " " + e.what;
}

void progress::on_event(const run_event& e) {
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const auto head = "attempt " + padded(std::to_string(e.attempt) + "/" + std::to_string(attempts_), 6);
  const auto status = [&](const std::string& what) {
    out_.status(head + what + "  [" + format_number(elapsed, 0) + " s" + (best_ > 0 ? ", best " + format_number(best_, 2) + "x" : "") + "]");
  };
  if (e.what == "loading") {
    out_.line("task     " + e.text);
    out_.status("starting the Torch reference, reading the task, measuring the machine (once) ...");
  } else if (e.what == "loaded") {
    const auto& l = e.loaded;
    std::vector<std::string> shapes;
    for (const auto& i : l.task.inputs) {
      std::vector<std::string> dims;
      for (auto d : i.shape) dims.push_back(std::to_string(d));
      shapes.push_back(i.name + " " + json(i.dtype).get<std::string>() + "[" + join(dims, ",") + "]");
    }
    out_.line("         " + l.task.category + "; " + join(shapes, ", ") + "; " + format_number(l.task.flops / 1e6, 1) + " MFLOP, " +
              format_bytes(l.task.bytes) + " per call");
    out_.line("against  " + l.baseline + " on " + l.cpu);
    out_.line("python   " + l.python);
    for (const auto& n : l.task.notes) out_.line("note     " + n);
    for (const auto& n : l.notes) out_.line("note     " + n);
  } else if (e.what == "coding") {
    status("writing code ...");
  } else if (e.what == "verifying") {
    status("building and verifying: " + e.text);
  } else if (e.what == "measuring") {
    status("timing and profiling ...");
  } else if (e.what == "confirming") {
    out_.status("confirming " + e.text + " in a fresh process with unseen seeds ...");
  } else if (e.what == "note") {
    out_.line("note     " + e.text);
  } else if (e.what == "iteration") {
    const auto& r = e.iteration;
    const auto number = "attempt " + padded(std::to_string(r.number) + "/" + std::to_string(attempts_), 6);
    if (r.passed()) {
      const auto& t = r.code.measured.time;
      if (r.new_best) best_ = t.speedup.value;
      // Ratios against Torch are of different moments: what made it the best is what was timed beside the best until then.
      const auto beside = r.against_best.value > 0 ? format_number(r.against_best.value, 2) + "x of best (" + format_number(r.against_best.low, 2) + "-" + format_number(r.against_best.high, 2) + ")" : "";
      auto text = number + padded(speedup_text(t.speedup), 26) + padded(format_seconds(t.candidate_seconds), 10) +
                  (r.new_best ? out_.green("new best" + (beside.empty() ? "  " : ", " + beside)) : out_.dim(beside.empty() ? "not better" : beside));
      if (!r.findings.empty()) {
        const auto& f = r.findings.front();
        text += "  " + json(f.what).get<std::string>() + (f.level.empty() ? "" : " (" + f.level + ")");
      }
      if (t.contended) text += out_.red("  under contention");
      out_.line(text);
    } else if (!r.established()) {
      out_.line(number + out_.dim("not established") + "  " + r.verdict.reason);
    } else {
      out_.line(number + out_.red("failed at " + r.stage()) + "  " + r.verdict.reason);
    }
    if (!r.code.rationale.empty()) out_.line(out_.dim("              " + r.code.rationale));
  }
}

std::optional<std::string> not_established(const run_result& result) {
  const auto& h = result.header;
  if (h.confirmed) return std::nullopt;
  if (!h.not_confirmed.empty()) return h.not_confirmed;
  if (h.best_attempt > 0) return std::nullopt;
  for (auto r = result.iterations.rbegin(); r != result.iterations.rend(); ++r)
    if (!r->established()) return r->verdict.reason;
  return std::nullopt;
}

int exit_code_of_run(const run_result& result) {
  const auto& h = result.header;
  if (h.state == "interrupted") return exit_code(ec::interrupted);
  if (not_established(result)) return exit_code(ec::measurement_failed);
  return h.confirmed ? 0 : exit_code(ec::candidate_failed);
}

roofline_point roofline_as_reported(const run_header& h) {
  const auto& t = h.environment.task;
  if (!h.confirmed || t.bytes <= 0 || h.final.time.candidate_seconds <= 0) return {};
  const auto point = place_on_roofline(h.final.time.candidate_seconds, work_of(t, h.request.load.tf32), h.environment.limits);
  return std::isfinite(point.share) ? point : roofline_point{};
}

void print_findings(terminal& out, const std::vector<finding>& findings, const profile& measured, const std::vector<rule_score>& scores) {
  if (findings.empty() || findings.front().confidence < explaining_confidence) out.line(what_limits(findings, &measured));
  for (const auto& f : findings) {
    const auto rule = json(f.what).get<std::string>();
    const double weight = weight_of(scores, rule);
    out.line(out.bold(rule) + (f.level.empty() ? "" : " (" + f.level + ")") + ", confidence " + format_number(f.confidence, 2) +
             (weight < 1 ? " (weighted with " + format_number(weight, 2) + " by what following it brought here)" : "") + place_of(f) + ": " + f.why +
             (f.seconds_without > 0 ? " Without it: " + format_seconds(f.seconds_without) + " instead of " + format_seconds(f.seconds) + " (predicted)." : ""));
    for (const auto& e : f.proof) out.line("    evidence: " + (e.text.empty() ? e.metric + " = " + html::quantity(e.value, e.unit) : e.text));
    for (const auto& r : f.remedies) out.line("    try: " + r);
  }
}

static std::string files_of(const run_result& result, const std::filesystem::path& folder) {
  const auto& h = result.header;
  const auto best = std::find_if(result.iterations.begin(), result.iterations.end(), [&](const auto& r) { return r.number == h.best_attempt; });
  const bool parts = best != result.iterations.end() && best->code.language == parts_language, drop_in = why_no_drop_in(result).empty();
  const auto kernel = (folder / (parts ? drop_in ? "parts" : "regions" : h.request.load.where().on_device() ? "kernel.py" : "kernel.cpp")).string();
  return drop_in ? (folder / "model_new.py").string() + " (ModelNew), " + kernel : kernel;
}

void print_summary(terminal& out, const run_result& result, const std::filesystem::path& folder, const std::string& drop_in) {
  const auto& h = result.header;
  out.line("");
  if (h.confirmed) {
    const auto& t = h.final.time;
    const bool faster = t.speedup.low > 1;
    const std::string as = h.final.as_called ? " as called" : " by the kernel alone";
    const auto headline = faster ? format_number(t.speedup.value, 2) + "x faster than Torch" + as : "no gain" + as + ": " + speedup_text(t.speedup) + " of Torch's speed";
    out.line(out.bold(faster ? out.green(headline) : headline) + (faster ? " (95% interval " + format_number(t.speedup.low, 2) + "-" + format_number(t.speedup.high, 2) + ")" : "") +
             ", attempt " + std::to_string(h.best_attempt) + " of " + std::to_string(result.iterations.size()));
    out.line("  " + format_seconds(t.baseline_seconds) + " -> " + format_seconds(t.candidate_seconds) + " per call, " + t.baseline + ", " + t.cache + (t.cache == "warm" ? " caches, " : ", ") + std::to_string(t.blocks_accepted) + " of " + std::to_string(t.blocks_tried) + " paired samples used" +
             (t.contended ? out.red(", UNDER CONTENTION") : ""));
    if (!t.note.empty()) out.line("  " + t.note);
    if (!h.final.as_called && !h.final.not_called.empty()) out.line("  not timed as called: " + h.final.not_called);
    if (h.final.as_called && h.final.kernel.speedup.value > 0) {
      const auto& k = h.final.kernel;
      out.line("  kernel: " + speedup_text(k.speedup) + ", " + format_seconds(k.baseline_seconds) + " -> " + format_seconds(k.candidate_seconds) + " (" +
               (h.request.load.where().on_device() ? "replayed graphs" : "called from C") + ")");
    } else if (!h.final.as_called && t.mostly_dispatch())
      out.line(out.red("  careful: ") + "a call of Torch this short is mostly dispatch from Python" + (h.request.load.where().on_device() ? std::string(", and so may the candidate's be") :
               std::string(", which a call from C does not pay")));
    if (const auto point = roofline_as_reported(h); point.share > 0) out.line("  " + roofline_text(point));
    for (const auto& r : result.iterations)
      if (r.number == h.best_attempt) {
        if (!r.findings.empty()) out.line("  bottleneck now: " + what_limits(r.findings, &r.code.measured));
      }
  } else if (!h.not_confirmed.empty()) {
    out.line(out.bold("not established") + ": attempt " + std::to_string(h.best_attempt) + " of " + std::to_string(result.iterations.size()) +
             " passed, and could not be confirmed: " + h.not_confirmed);
    out.line("  run it again when the machine is quiet; its speed-up is not final");
  } else if (h.best_attempt > 0) {
    out.line(out.bold("stopped before the best version was confirmed") + ": attempt " + std::to_string(h.best_attempt) + " of " +
             std::to_string(result.iterations.size()) + " passed, its speed-up is not final");
  } else if (const auto why = not_established(result)) {
    out.line(out.bold("not established") + ": no attempt of " + std::to_string(result.iterations.size()) + " passed, the last of which nothing was found out because: " + *why);
    out.line("  run it again when the machine is quiet");
  } else {
    out.line(out.bold(out.red("no kernel was accepted")) + " in " + std::to_string(result.iterations.size()) + " attempts");
  }
  for (const auto& p : h.request.cut.parts)
    out.line("  " + p.name + " (" + p.what + "): " + (p.kept ? format_number(p.speedup.value, 2) + "x, " + format_seconds(p.torch_seconds) + " -> " + format_seconds(p.seconds) + (p.open ? ", the kernel alone; " + p.why_not : "") : "Torch's, because: " + p.why_not));
  if (!h.request.cut.parts.empty()) out.line("  Torch keeps " + join(h.request.cut.torch, ", "));
  for (const auto& f : h.graph_findings) out.line("  the task: " + f.why);
  out.line("  stopped: " + h.stop_reason);
  out.line("  time: " + format_number(h.wall_seconds, 1) + " s = load " + format_number(h.load_seconds, 1) + " + coder " + format_number(h.code_seconds, 1) +
           " + build " + format_number(h.build_seconds, 1) + " + verify " + format_number(h.verify_seconds, 1) + " + timing " +
           format_number(h.time_seconds, 1) + " + profile " + format_number(h.profile_seconds, 1) + " + confirm " + format_number(h.confirm_seconds, 1) +
           " + overhead " + format_number(h.overhead_seconds, 2) + " (" +
           format_number(h.wall_seconds > 0 ? 100 * h.overhead_seconds / h.wall_seconds : 0, 1) + "%)");
  if (h.usage.prompt_tokens + h.usage.completion_tokens > 0)
    out.line("  model: " + std::to_string(h.usage.prompt_tokens) + " + " + std::to_string(h.usage.completion_tokens) + " tokens" +
             (h.usage.cost > 0 ? ", cost " + format_number(h.usage.cost, 4) : ""));
  if (!drop_in.empty()) out.line("  drop-in: " + drop_in);
  out.line("  report:  " + (folder / "report.html").string());
  if (h.best_attempt > 0) out.line("  kernel:  " + files_of(result, folder));
  if (h.state != "finished") out.line("  go on:   pragma resume " + h.id);
}

} // namespace pragma::cli
