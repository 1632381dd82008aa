// pragma bench: a whole suite, resumable; per category as in Fig. 3 of the paper and overall as in its Table I.
#include "cli/parts.hpp"
#include "cli/commands.hpp"
#include "cli/compare.hpp"
#include "cli/engine.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
#include "cli/suite.hpp"
#include "cli/terminal.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "execution/contention.hpp"
#include "reference/reference.hpp"
#include "synthesis/search/builtin.hpp"

#include <algorithm>
#include <cctype>
#include <memory>
#include <mutex>
#include <optional>
#include <regex>
#include <thread>

namespace pragma::cli {

namespace fs = std::filesystem;

namespace {

struct bench_settings {
  std::string suite, out = "pragma-out/bench", only, compare;
  int limit = 0, jobs = 1;
  bool json = false, fresh = false;
  run_options run;
};

/// "9_x" before "10_y".
bool natural_less(const fs::path& a, const fs::path& b) {
  const auto number = [](const std::string& s) { return s.empty() || !std::isdigit(static_cast<unsigned char>(s[0])) ? 1000000000L : std::atol(s.c_str()); };
  const auto x = a.stem().string(), y = b.stem().string();
  return std::pair(number(x), x) < std::pair(number(y), y);
}

expected<std::vector<fs::path>> find_tasks(const bench_settings& s) {
  std::error_code problem;
  std::vector<fs::path> tasks;
  if (fs::is_regular_file(s.suite, problem)) tasks.push_back(s.suite);
  else
    for (const auto& entry : fs::directory_iterator(s.suite, problem))
      if (entry.path().extension() == ".py" && entry.path().filename().string().front() != '_') tasks.push_back(entry.path());
  if (problem) return fail(ec::not_found, "cannot read the suite " + s.suite + ": " + problem.message(), "a suite is a folder of KernelBench-format files");
  std::sort(tasks.begin(), tasks.end(), natural_less);
  if (!s.only.empty()) {
    try {
      const std::regex wanted(s.only);
      std::erase_if(tasks, [&](const fs::path& p) { return !std::regex_search(p.stem().string(), wanted); });
    } catch (const std::regex_error& e) {
      return fail(ec::invalid_argument, "--only is not a regular expression: " + s.only + " (" + e.what() + ")");
    }
  }
  if (s.limit > 0 && tasks.size() > static_cast<size_t>(s.limit)) tasks.resize(static_cast<size_t>(s.limit));
  if (tasks.empty()) return fail(ec::not_found, "no task in " + s.suite + (s.only.empty() ? "" : " matches --only " + s.only));
  return tasks;
}

/// Of a task without a figure; a reason may begin with what it is called.
std::string why_not(const task_outcome& t) { return t.reason.starts_with(t.status) ? t.reason : t.status + ": " + t.reason; }

std::string table_text(const std::vector<suite_figures>& table) {
  char line[160];
  std::string text;
  std::snprintf(line, sizeof line, "%-18s %4s %8s %5s %9s %9s %7s %8s %7s  %s\n", "category", "n", "success", "kept", "arith.", "geom.", "fast_1", "fast_1.5", "fast_2", "of roofline");
  text += line;
  const auto mean = [](double value) { return value > 0 ? format_number(value, 2) + "x" : std::string("-"); }; // no figure is not zero
  for (const auto& f : table) {
    const auto limit = f.limit_after > 0 ? format_number(f.limit_before, 0) + "% -> " + format_number(f.limit_after, 0) + "%" : std::string("-");
    std::snprintf(line, sizeof line, "%-18s %4d %7.1f%% %5d %9s %9s %6.1f%% %7.1f%% %6.1f%%  %s\n", f.category.c_str(), f.n, f.n ? 100.0 * f.success / f.n : 0, f.kept,
                  mean(f.arithmetic_mean).c_str(), mean(f.geometric_mean).c_str(), 100 * f.fast_1, 100 * f.fast_1_5, 100 * f.fast_2, limit.c_str());
    text += line;
  }
  return text;
}

class suite_run {
public:
  /// `before`: results that these are compared with, as they come in; without tasks: none.
  suite_run(const bench_settings& s, terminal& out, engine& machine, std::vector<fs::path> tasks, std::vector<task_outcome> before)
      : s_(s), out_(out), machine_(machine), tasks_(std::move(tasks)), before_(std::move(before)), outcomes_(tasks_.size()) {}

  expected<void> load_earlier() {
    const auto file = fs::path(s_.out) / "bench.json";
    if (s_.fresh || !fs::exists(file)) return {};
    auto text = read_file(file);
    if (!text) return fail(text.error());
    auto document = parse_json(*text, file.string());
    if (!document) return fail(document.error());
    if (!document->is_object() || !document->contains("tasks") || !(*document)["tasks"].is_array() || !document->value("suite", json("")).is_string())
      return fail(ec::parse_error, file.string() + " is not a table of results", "use another --out folder, or --fresh to start anew");
    if (document->value("options", json()) != s_.run.key())
      return fail(ec::invalid_argument, file.string() + " holds results of other options", "use another --out folder, or --fresh to start anew");
    if (document->value("suite", "") != fs::absolute(s_.suite).string())
      return fail(ec::invalid_argument, file.string() + " holds results of the suite " + document->value("suite", ""), "use another --out folder, or --fresh to start anew");
    for (const auto& value : (*document)["tasks"]) {
      auto t = outcome_from(value, file);
      if (!t) return fail(t.error());
      if (unsettled(*t)) continue;
      bool chosen = false;
      for (size_t i = 0; i < tasks_.size(); ++i) {
        if (fs::absolute(tasks_[i]).string() != t->path) continue;
        chosen = true;
        const auto source = read_file(tasks_[i]);
        if (source && sha256_hex(*source) == t->task_hash) {
          outcomes_[i] = *t;
          ++done_;
        }
      }
      if (!chosen) others_.push_back(std::move(*t));
    }
    if (done_ > 0) out_.line("going on with " + file.string() + ": " + std::to_string(done_) + " of " + std::to_string(tasks_.size()) + " tasks are done");
    return {};
  }

  /// No more than leave the machine quiet enough to measure one of them; less than were asked for is said.
  int jobs() const {
    const bool on_device = s_.run.device.backend != "cpu";
    const auto processors = std::max(1u, std::thread::hardware_concurrency());
    const int threads = on_device ? 1 : std::max(1, s_.run.threads), most = tasks_at_once(on_device ? most_others_of_a_device() : most_others(threads), processors, threads);
    if (s_.jobs > most)
      out_.line("--jobs " + std::to_string(s_.jobs) + ": " + std::to_string(most) + " at once, since what more of them compile and verify would keep " + std::to_string(processors) +
                (processors == 1 ? " processor" : " processors") + " too busy to measure another");
    return std::clamp(s_.jobs, 1, most);
  }

  void run() {
    start_ = std::chrono::steady_clock::now();
    std::vector<std::thread> workers;
    const int at_once = jobs();
    for (int j = 0; j < at_once; ++j)
      workers.emplace_back([this] {
        while (!cancelled()) {
          const size_t i = next_++;
          if (i >= tasks_.size()) return;
          if (outcomes_[i].status.empty()) one(i);
        }
      });
    for (auto& w : workers) w.join();
  }

  expected<json> save() {
    const std::lock_guard lock(mutex_);
    return save_locked();
  }

  std::vector<task_outcome> outcomes() const {
    std::vector<task_outcome> all;
    for (const auto& t : outcomes_)
      if (!t.status.empty()) all.push_back(t);
    all.insert(all.end(), others_.begin(), others_.end());
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return natural_less(a.name, b.name); });
    return all;
  }

private:
  void one(size_t i) {
    const auto path = fs::absolute(tasks_[i]);
    const auto folder = fs::path(s_.out) / "tasks" / path.stem();
    const auto started = std::chrono::steady_clock::now();
    expected<run_result> result = fail(ec::internal, "");
    loaded_task loaded;
    auto request = s_.run.request(path.string(), fs::absolute(folder).string());
    if (!request) result = fail(request.error());
    else if (auto refused = refused_by_builtin(path, *request, loaded.task)) result = fail(*refused);
    else
      result = run_whole(machine_, *request, [&](const std::string& title, int) {
        return [&, title](const run_event& e) {
          if (e.what == "loaded" && title.empty()) loaded = e.loaded;
          const std::lock_guard lock(mutex_);
          if (e.what == "iteration" || e.what == "verifying" || e.what == "confirming")
            out_.status("[" + std::to_string(done_) + "/" + std::to_string(tasks_.size()) + "] " + path.stem().string() + "  " + (title.empty() ? "" : title + ": ") + step_text(e));
        };
      });
    note(i, path, result, loaded, started, folder);
  }

  /// What the built-in coder cannot lower is known from the shapes alone: nothing is allocated or run for it.
  std::optional<error> refused_by_builtin(const fs::path& path, const run_request& request, task& described) {
    if (request.coder.kind != "builtin") return std::nullopt;
    const std::lock_guard lock(describer_mutex_);
    if (!describer_) {
      reference_options options;
      options.cancel = &cancelled();
      auto started = reference::start(options);
      if (!started) return started.error();
      describer_.emplace(std::move(*started));
    }
    auto found = describer_->describe(path);
    if (!found) {
      describer_.reset(); // it may have died of this task
      return for_optimizing(found.error());
    }
    described = std::move(*found);
    builtin_options options;
    options.algebra = !s_.run.no_algebra;
    if (const auto chosen = find_backend(s_.run.device.backend)) options.language = chosen->language;
    auto coder = builtin_coder::create(described, options);
    if (coder) return std::nullopt;
    const auto cut = can_be_cut(described, request.load, coder.error());
    return cut ? std::nullopt : std::optional(cut.error());
  }

  void note(size_t i, const fs::path& path, const expected<run_result>& result, const loaded_task& loaded,
            std::chrono::steady_clock::time_point started, const fs::path& folder) {
    auto t = outcome_of(path, result);
    if (t.category.empty()) t.category = loaded.task.category.empty() ? "others" : loaded.task.category;
    t.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (const auto source = read_file(path)) t.task_hash = sha256_hex(*source);
    if (result) (void)write_outputs(folder, *result, false);
    else if (t.status == "left as it is") remove_drop_in(folder);
    const std::lock_guard lock(mutex_);
    outcomes_[i] = t;
    ++done_;
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    out_.line("[" + std::to_string(done_) + "/" + std::to_string(tasks_.size()) + ", " + format_seconds(elapsed) + "] " + t.name + "  " +
              (t.status == "ok" ? speedup_text(t.speedup) + (t.keeps_torch ? "  Torch's model stays" : t.as_called ? "" : "  the kernel alone: " + t.not_called) + (t.contended ? "  under contention" : "") : why_not(t)));
    if (auto saved = save_locked(); !saved) out_.line(out_.red("cannot save: ") + saved.error().message);
  }

  expected<json> save_locked() {
    const auto all = outcomes();
    json left_out = json::array();
    for (const auto& t : all)
      if (t.status != "ok") left_out.push_back({{"name", t.name}, {"status", t.status}, {"reason", t.reason}});
    const auto table = suite_table(all);
    json document = {{"schema", 1}, {"suite", fs::absolute(s_.suite).string()}, {"options", s_.run.key()}, {"tasks", all},
                     {"categories", std::vector<suite_figures>(table.begin(), table.end() - 1)}, {"overall", table.back()},
                     {"left_out", left_out}, {"total_tasks", tasks_.size() + others_.size()}};
    if (!before_.empty()) document["compared"] = {{"with", s_.compare}, {"change", change_between(before_, all)}};
    std::error_code ignored;
    fs::create_directories(s_.out, ignored);
    const fs::path folder = s_.out;
    if (auto done = write_file_atomic(folder / "bench.json", document.dump(1, ' ', true, json::error_handler_t::replace)); !done) return fail(done.error());
    if (auto done = write_file_atomic(folder / "bench.html", render_suite_html(document)); !done) return fail(done.error());
    return document;
  }

  const bench_settings& s_;
  terminal& out_;
  engine& machine_;
  std::vector<fs::path> tasks_;
  std::vector<task_outcome> before_;
  std::vector<task_outcome> outcomes_;
  std::vector<task_outcome> others_;  ///< of an earlier call with another --only: they stay in the table
  std::atomic<size_t> next_ = 0;
  size_t done_ = 0;
  std::mutex mutex_, describer_mutex_;
  std::optional<reference> describer_;
  std::chrono::steady_clock::time_point start_;
};

int bench(const bench_settings& s) {
  terminal out(s.json);
  auto tasks = find_tasks(s);
  if (!tasks) return report(out, tasks.error());
  recorded_results before;
  if (!s.compare.empty()) { // said before hours of work, not after
    auto read = read_results(s.compare);
    if (!read) return report(out, read.error());
    before = std::move(*read);
  }
  auto machine = engine::open();
  if (!machine) return report(out, machine.error());
  suite_run suite(s, out, **machine, *tasks, before.tasks);
  if (auto earlier = suite.load_earlier(); !earlier) return report(out, earlier.error());
  suite.run();
  auto document = suite.save();
  if (!document) return report(out, document.error());
  const auto outcomes = suite.outcomes();
  out.result(*document);
  out.line("\n" + table_text(suite_table(outcomes)));
  out.line("n counts every task of the suite that was tried; means are over the successes and what is kept; fast_p is the share of all n that is right and faster than p x Torch.");
  const auto all = figures_of("all", outcomes);
  if (all.success > 0) out.line(all.as_called ? "Figures are those of drop-ins as a Torch program calls them." : "Figures are those of kernels alone, without the call from Python.");
  if (all.kept > 0) out.line("kept: Torch's model stays, as nothing faster was found; a program has 1.0 of it, and so have the means.");
  for (const auto& t : outcomes)
    if (t.keeps_torch) out.line("  " + t.name + ": no drop-in is written, as it would be " + speedup_text(t.speedup));
  for (const auto& t : outcomes)
    if (all.as_called && t.status == "ok" && !t.as_called) out.line("  in no mean, since it has the kernel's figure only: " + t.name + ": " + t.not_called);
  for (const auto& t : outcomes)
    if (t.status == "ok" && t.dispatch_bound && !all.as_called)
      out.line("  not in the means: " + t.name + ": Torch needs " + format_seconds(t.baseline_seconds) + ", mostly dispatch from Python, which a call from C does not pay");
  for (const auto& t : outcomes)
    if (t.status != "ok") out.line("  " + t.name + ": " + why_not(t));
  if (!s.compare.empty()) {
    out.line("\nagainst " + printable(s.compare) + ", each timed against Torch at its own time:");
    show_change(out, change_between(before.tasks, outcomes));
  }
  out.line("report: " + (fs::path(s.out) / "bench.html").string());
  if (cancelled()) {
    out.line("interrupted: the same command goes on where it stopped");
    return exit_code(ec::interrupted);
  }
  return 0;
}

} // namespace

void add_bench(CLI::App& app, action& chosen) {
  auto s = std::make_shared<bench_settings>();
  auto* command = app.add_subcommand("bench", "optimise every task of a folder and print the table; resumable");
  command->add_option("suite", s->suite, "folder of KernelBench-format files")->required();
  command->add_option("--out", s->out, "folder for bench.json, bench.html and a report per task")->capture_default_str();
  command->add_option("--limit", s->limit, "only the first N tasks");
  command->add_option("--only", s->only, "only tasks whose name matches this regular expression");
  command->add_option("--jobs", s->jobs, "tasks at once: building and verifying overlap, measuring never does; no more than leave the machine quiet enough for that")->check(CLI::Range(1, 64))->capture_default_str();
  command->add_option("--compare", s->compare, "also compare with earlier results, with intervals: a folder, a bench.json");
  command->add_flag("--fresh", s->fresh, "ignore earlier results in --out");
  command->add_flag("--json", s->json, "print the table as JSON");
  s->run.add_to(*command);
  command->footer("Example:\n  pragma bench KernelBench/level1 --attempts 8 --out /tmp/level1\n  pragma bench KernelBench/level1 --out /tmp/level1-new --compare /tmp/level1");
  command->callback([s, &chosen] { chosen = [s] { return bench(*s); }; });
}

} // namespace pragma::cli
