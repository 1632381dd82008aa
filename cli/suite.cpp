#include "cli/suite.hpp"

#include "base/files.hpp"
#include "cli/engine.hpp"
#include "cli/html.hpp"
#include "cli/progress.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace pragma::cli {

namespace {

const char* status_of(ec code) {
  if (code == ec::not_found) return "failed"; // a file that went away is no limit of ours
  switch (exit_code(code)) {
    case 0: return "left as it is";
    case 3: return "unsupported";
    case 4: return "invalid";
    case 6: return "not established";
    case 130: return "interrupted";
    default: return "failed";
  }
}

/// 0 of none.
double geometric(const std::vector<double>& values) {
  double logs = 0;
  for (const double v : values) logs += std::log(v);
  return values.empty() ? 0 : std::exp(logs / static_cast<double>(values.size()));
}

} // namespace

task_outcome outcome_of(const std::filesystem::path& path, const expected<run_result>& run) {
  task_outcome t;
  t.name = path.stem().string();
  t.path = path.string();
  if (!run) {
    const auto& e = run.error();
    t.status = status_of(e.code);
    t.reason = e.message;
    return t;
  }
  const auto& h = run->header;
  t.category = h.environment.task.category;
  t.attempts = static_cast<int>(run->iterations.size());
  t.wall_seconds = h.wall_seconds;
  t.run = h.id;
  if (h.state == "interrupted") {
    t.status = "interrupted";
    t.reason = h.stop_reason;
  } else if (h.confirmed) {
    t.status = "ok";
    t.speedup = h.final.time.speedup;
    t.baseline_seconds = h.final.time.baseline_seconds;
    t.candidate_seconds = h.final.time.candidate_seconds;
    t.contended = h.final.time.contended;
    t.as_called = h.final.as_called;
    t.not_called = h.final.not_called;
    t.keeps_torch = !why_no_drop_in(*run).empty();
    t.dispatch_bound = !h.final.as_called && h.final.time.mostly_dispatch(); // as called, what a user gets counts
    t.roofline_share = 100 * std::min(1.0, roofline_as_reported(h).share);
  } else if (auto why = not_established(*run)) {
    t.status = "not established";
    t.reason = std::move(*why);
  } else {
    t.status = "failed";
    t.reason = run->iterations.empty() ? h.stop_reason : run->iterations.back().stage() + ": " + run->iterations.back().verdict.reason;
    for (const auto& r : run->iterations) // a winner that lost its confirmation says more than an attempt that was never measured
      if (r.verdict.stage == verdict_stage::confirm) t.reason = r.verdict.reason;
  }
  return t;
}

expected<task_outcome> outcome_from(const json& value, const std::filesystem::path& file) {
  auto t = from_json_value<task_outcome>(value, file.string());
  if (!t) return t;
  if (!value.contains("as_called")) {
    const auto own = read_file(file.parent_path() / "tasks" / std::filesystem::path(t->path).stem() / "run.json");
    const auto document = own ? parse_json(*own, "run.json") : expected<json>(json());
    const auto run = document ? html::object_at(*document, "run") : json::object();
    if (html::text_at(run, "id") == t->run) t->as_called = html::text_at(html::object_at(run, "final"), "as_called") == "true";
  }
  if (!value.contains("keeps_torch")) t->keeps_torch = t->as_called && t->speedup.value < 1;
  return t;
}

std::optional<double> as_used(const task_outcome& t) {
  if (t.status == "left as it is" || t.keeps_torch) return 1;
  if (t.status == "ok" && t.as_called && t.speedup.value > 0) return t.speedup.value;
  return std::nullopt;
}

bool unsettled(const task_outcome& t) { return t.status == "interrupted" || t.status == "not established"; }

suite_figures figures_of(const std::string& category, const std::vector<task_outcome>& tasks) {
  suite_figures f;
  f.category = category;
  f.as_called = std::any_of(tasks.begin(), tasks.end(), [](const auto& t) { return t.as_called && t.status == "ok"; });
  std::vector<double> ratios, limits_before, limits_after;
  for (const auto& t : tasks) {
    if (category != "all" && t.category != category) continue;
    if (t.status == "interrupted") continue; // it was not tried to its end: no failure
    ++f.n;
    const bool success = t.status == "ok" && t.speedup.value > 0;
    f.success += success;
    if (f.as_called) {
      const auto used = as_used(t);
      if (used) ratios.push_back(*used);
      f.kept += used && (t.keeps_torch || !success);
      f.kernel_alone += success && !used; // what a program gets and what a kernel takes are not averaged
      if (!used || !success) continue;
    } else {
      if (!success) continue;
      // The ratio of kernels says what the kernel gains, not what Python costs: a mean must not be made by the latter.
      if (t.dispatch_bound) ++f.dispatch_bound;
      else ratios.push_back(t.speedup.value);
    }
    if (t.roofline_share > 0 && t.baseline_seconds > 0 && t.candidate_seconds > 0) {
      limits_after.push_back(t.roofline_share);
      limits_before.push_back(t.roofline_share * t.candidate_seconds / t.baseline_seconds);
    }
    const double counted = t.keeps_torch ? 1 : t.speedup.value;
    f.fast_1 += counted > 1;
    f.fast_1_5 += counted > 1.5;
    f.fast_2 += counted > 2;
  }
  if (!ratios.empty()) f.arithmetic_mean = std::accumulate(ratios.begin(), ratios.end(), 0.0) / static_cast<double>(ratios.size());
  f.geometric_mean = geometric(ratios);
  f.limit_before = geometric(limits_before);
  f.limit_after = geometric(limits_after);
  for (double* share : {&f.fast_1, &f.fast_1_5, &f.fast_2}) *share /= std::max(1, f.n);
  return f;
}

suite_change change_between(const std::vector<task_outcome>& before, const std::vector<task_outcome>& after) {
  suite_change change;
  std::vector<double> logs;
  for (const auto& now : after) {
    const auto then = std::find_if(before.begin(), before.end(), [&](const auto& t) { return t.name == now.name; });
    if (then == before.end()) continue;
    const bool was = then->status == "ok" && then->speedup.value > 0, is = now.status == "ok" && now.speedup.value > 0;
    if (was != is) (unsettled(was ? now : *then) ? change.open : was ? change.lost : change.won).push_back(now.name);
    else if (!was && unsettled(now)) change.open.push_back(now.name);
    else if (was && then->as_called != now.as_called) {
      change.other_kind.push_back(now.name);
      continue;
    }
    if (!was || !is || then->speedup.low <= 0 || now.speedup.low <= 0) continue;
    const task_change one{now.name, {now.speedup.value / then->speedup.value, now.speedup.low / then->speedup.high, now.speedup.high / then->speedup.low}};
    logs.push_back(std::log(one.ratio.value));
    change.tasks.push_back(one);
  }
  if (logs.empty()) return change;
  double mean = 0, squares = 0;
  for (const double l : logs) mean += l / static_cast<double>(logs.size());
  for (const double l : logs) squares += (l - mean) * (l - mean);
  change.mean = {std::exp(mean), 0, 0};
  if (logs.size() < 3) return change; // no interval from so few
  const double error = 1.96 * std::sqrt(squares / static_cast<double>(logs.size() - 1) / static_cast<double>(logs.size()));
  change.mean = {std::exp(mean), std::exp(mean - error), std::exp(mean + error)};
  return change;
}

std::vector<suite_figures> suite_table(const std::vector<task_outcome>& tasks) {
  std::vector<std::string> order = {"matmul", "activation", "normalization", "pooling/reduction", "conv", "others"};
  std::set<std::string> known(order.begin(), order.end());
  for (const auto& t : tasks)
    if (known.insert(t.category).second) order.push_back(t.category);
  std::vector<suite_figures> table;
  for (const auto& category : order)
    if (auto f = figures_of(category, tasks); f.n > 0) table.push_back(f);
  table.push_back(figures_of("all", tasks));
  return table;
}

} // namespace pragma::cli
