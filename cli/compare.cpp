// pragma compare: two recorded runs, or two suites: what changed, with intervals; for people, scripts and CI.
#include "cli/compare.hpp"

#include "cli/commands.hpp"
#include "cli/engine.hpp"
#include "cli/html.hpp"
#include "cli/progress.hpp"
#include "cli/stored_runs.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

namespace pragma::cli {

namespace {

namespace fs = std::filesystem;

struct compare_settings {
  std::string before, after, junit;
  bool json = false, fail_if_slower = false;
};

recorded_results of_run(const json& document) {
  const auto& run = html::object_at(document, "run");
  const auto& task = html::object_at(run, "task");
  task_outcome t;
  t.name = html::text_at(task, "name");
  t.task_hash = html::text_at(task, "id");
  t.run = html::text_at(run, "id");
  const auto state = html::text_at(run, "state");
  if (html::text_at(run, "confirmed") == "true") t.status = "ok";
  else if (state == "interrupted" || state == "left as it is") t.status = state;
  else t.status = html::number_at(run, "best") > 0 ? "not established" : "failed";
  t.reason = html::text_at(run, "stop_reason");
  const auto& speedup = html::object_at(html::object_at(html::object_at(run, "final"), "timing"), "speedup");
  t.as_called = html::text_at(html::object_at(run, "final"), "as_called") == "true";
  t.speedup = {html::number_at(speedup, "value"), html::number_at(speedup, "low"), html::number_at(speedup, "high")};
  const auto& environment = html::object_at(run, "environment");
  return {{t}, html::text_at(environment, "cpu") + "; " + html::text_at(environment, "baseline")};
}

bool slower(const task_change& t) { return t.ratio.high < 1; }

std::string junit_of(const suite_change& change) {
  size_t failures = change.lost.size();
  std::string cases;
  for (const auto& t : change.tasks) {
    failures += slower(t);
    cases += "  <testcase classname=\"pragma\" name=\"" + html::escape(t.name) + "\">" +
             (slower(t) ? "<failure message=\"slower than recorded: " + html::escape(html::with_interval(t.ratio)) + "\"/>" : "<system-out>" + html::escape(html::with_interval(t.ratio)) + "</system-out>") + "</testcase>\n";
  }
  for (const auto& name : change.lost) cases += "  <testcase classname=\"pragma\" name=\"" + html::escape(name) + "\"><failure message=\"was right, and is not now\"/></testcase>\n";
  for (const auto& name : change.won) cases += "  <testcase classname=\"pragma\" name=\"" + html::escape(name) + "\"><system-out>right now, and was not</system-out></testcase>\n";
  for (const auto& name : change.open) cases += "  <testcase classname=\"pragma\" name=\"" + html::escape(name) + "\"><skipped message=\"not established\"/></testcase>\n";
  for (const auto& name : change.other_kind) cases += "  <testcase classname=\"pragma\" name=\"" + html::escape(name) + "\"><skipped message=\"as called in one, the kernel alone in the other\"/></testcase>\n";
  const auto skipped = change.open.size() + change.other_kind.size(), count = change.tasks.size() + change.lost.size() + change.won.size() + skipped;
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"pragma compare\" tests=\"" + std::to_string(count) + "\" failures=\"" + std::to_string(failures) + "\" skipped=\"" + std::to_string(skipped) + "\">\n" + cases + "</testsuite>\n";
}

int compare(const compare_settings& s) {
  terminal out(s.json);
  auto before = read_results(s.before), after = before ? read_results(s.after) : before;
  if (!before || !after) return report(out, before ? after.error() : before.error());
  if (before->tasks.size() == 1 && after->tasks.size() == 1) {
    auto& a = before->tasks[0];
    auto& b = after->tasks[0];
    if (!a.task_hash.empty() && a.task_hash != b.task_hash && a.name != b.name)
      return report(out, {ec::invalid_argument, "these are runs of two tasks: " + a.name + " and " + b.name, "compare runs of one task, or two suites"});
    b.name = a.name;
  }
  const auto change = change_between(before->tasks, after->tasks);
  const bool nothing = change.tasks.empty() && change.won.empty() && change.lost.empty();
  if (nothing && change.open.empty() && !change.other_kind.empty())
    return report(out, {ec::unsupported, "their figures are of two kinds: one is of the drop-in as a Torch program calls it, the other of the kernel alone",
                        "time both the same way (--no-check and --baseline decide it)"});
  if (nothing && change.open.empty()) return report(out, {ec::not_found, s.before + " and " + s.after + " have no task in common that one of them solved", ""});
  const bool elsewhere = before->where != after->where;
  json document = change;
  document["same_machine"] = !elsewhere;
  out.result(document);
  show_change(out, change);
  if (elsewhere && !nothing) out.line(out.red("  careful: ") + "measured on different machines or against different versions of Torch: " + printable(before->where) + " / " + printable(after->where));
  if (!change.tasks.empty()) out.line(out.dim("  both were timed against Torch, apart from each other; side by side: pragma profile TASK NEW/run.json --against OLD/run.json"));
  if (!s.junit.empty())
    if (auto done = write_file_atomic(s.junit, junit_of(change)); !done) return report(out, done.error());
  const bool worse = !change.lost.empty() || std::any_of(change.tasks.begin(), change.tasks.end(), slower);
  if (nothing) return exit_code(ec::measurement_failed);
  return s.fail_if_slower && worse ? exit_code(ec::candidate_failed) : 0;
}

} // namespace

expected<recorded_results> read_results(const std::string& named) {
  std::error_code ignored;
  auto file = fs::path(named);
  if (fs::is_directory(file, ignored)) file /= fs::exists(file / "bench.json", ignored) ? "bench.json" : "run.json";
  if (!fs::exists(file, ignored)) {
    auto run = read_stored_run(named);
    if (!run) return fail(run.error());
    return of_run(run_document(*run));
  }
  auto text = read_file(file);
  if (!text) return fail(text.error());
  auto document = parse_json(*text, file.string());
  if (!document) return fail(document.error());
  if (document->is_object() && document->contains("run")) return of_run(*document);
  if (!document->is_object() || !document->contains("tasks"))
    return fail(ec::parse_error, file.string() + " is neither a run.json nor a bench.json", "name a result folder, a run id, or `last`");
  recorded_results all;
  for (const auto& value : html::array_at(*document, "tasks")) {
    auto t = outcome_from(value, file);
    if (!t) return fail(t.error());
    all.tasks.push_back(std::move(*t));
  }
  return all;
}

void show_change(terminal& out, const suite_change& change) {
  if (change.tasks.empty() && change.won.empty() && change.lost.empty() && change.open.empty() && change.other_kind.empty()) out.line("no task in common that one of them solved");
  for (const auto& t : change.tasks) {
    const auto text = html::with_interval(t.ratio) + " as fast as before";
    const bool faster = t.ratio.low > 1;
    out.line((faster ? out.green(text) : slower(t) ? out.red(text) : text + out.dim("  (no difference established)")) + "  " + printable(t.name));
  }
  for (const auto& name : change.won) out.line(out.green("right now, and was not") + "  " + printable(name));
  for (const auto& name : change.lost) out.line(out.red("was right, and is not now") + "  " + printable(name));
  for (const auto& name : change.open) out.line("not established in one of the two, or in both" + out.dim("  (nothing is said of it)") + "  " + printable(name));
  for (const auto& name : change.other_kind) out.line("as called in one of the two, the kernel alone in the other" + out.dim("  (nothing is said of it)") + "  " + printable(name));
  if (change.tasks.size() > 1)
    out.line("geometric mean over " + std::to_string(change.tasks.size()) + " tasks: " +
             (change.mean.low > 0 ? out.bold(html::with_interval(change.mean)) : html::times(change.mean.value) + ", not established: so few tasks give no interval"));
}

void add_compare(CLI::App& app, action& chosen) {
  auto s = std::make_shared<compare_settings>();
  auto* command = app.add_subcommand("compare", "two recorded runs or suites: what became faster or slower, with intervals");
  command->add_option("before", s->before, "run id, `last`, a task's name (its newest run), a result folder, a run.json or bench.json")->required();
  command->add_option("after", s->after, "the same")->required();
  command->add_flag("--fail-if-slower", s->fail_if_slower, "exit code 5 where a task is slower by more than its interval, or right no more");
  command->add_option("--junit", s->junit, "also write this JUnit file");
  command->add_flag("--json", s->json, "print JSON");
  command->footer("Example:\n  pragma compare /tmp/level1-old /tmp/level1\n  pragma compare recorded/run.json last --fail-if-slower --junit pragma.xml");
  command->callback([s, &chosen] { chosen = [s] { return compare(*s); }; });
}

} // namespace pragma::cli
