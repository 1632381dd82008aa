// The table of a suite: per category as in the paper's Fig. 3, overall as in its Table I, and every task with its reason.
#include "cli/report.hpp"

#include "base/text.hpp"
#include "cli/charts.hpp"
#include "cli/html.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace pragma {

namespace {

using namespace html;

/// A click on a column's head sorts by it: by the first number of each cell where all have one, else by the text; again: the other way.
/// A time is compared in seconds. It reads what stands in the page, and writes nothing but the order of rows.
constexpr std::string_view sort_script = R"js("use strict";
const size = { s: 1, ms: 1e-3, us: 1e-6, ns: 1e-9, min: 60, h: 3600 };
const value = (text) => { const m = /^-?[\d.]+/.exec(text); return m ? Number(m[0]) * (size[(/^-?[\d.]+ (\w+)/.exec(text) || [])[1]] || 1) : text === "-" ? -Infinity : NaN; };
for (const table of document.querySelectorAll("#tasks table, #compared table, #failed table"))
  table.querySelectorAll("th").forEach((head, column) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending", body = table.tBodies[0], rows = [...body.rows];
      const key = (row) => row.cells[column].textContent.trim(), numbers = rows.every((r) => !Number.isNaN(value(key(r))));
      rows.sort((a, b) => (numbers ? value(key(a)) - value(key(b)) || 0 : key(a).localeCompare(key(b), undefined, { numeric: true })) * (down ? -1 : 1));
      table.querySelectorAll("th").forEach((h) => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows);
    });
  });
)js";

std::string percent(double share) { return format_number(100 * share, 1) + "%"; }

std::vector<std::string> row_of(const json& f, const std::string& name) {
  const double n = number_at(f, "n"), success = number_at(f, "success");
  auto mean = [&](const char* key) { return number_at(f, key) > 0 ? times(number_at(f, key)) : std::string("-"); };
  return {escape(name), quantity(n, ""), quantity(success, "") + (n > 0 ? " (" + percent(success / n) + ")" : ""), quantity(number_at(f, "kept"), ""), mean("geometric_mean"), mean("arithmetic_mean"),
          percent(number_at(f, "fast_1")), percent(number_at(f, "fast_1_5")), percent(number_at(f, "fast_2")),
          number_at(f, "limit_after") > 0 ? format_number(number_at(f, "limit_before"), 0) + "% to " + format_number(number_at(f, "limit_after"), 0) + "%" : "-"};
}

interval interval_of(const json& task) {
  const auto& s = object_at(task, "speedup");
  return {number_at(s, "value"), number_at(s, "low"), number_at(s, "high")};
}

/// The task's own report lies below the table's folder.
std::string report_link(const json& task) {
  const auto name = text_at(task, "name");
  std::string address;
  for (const unsigned char c : name) {
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X", c);
    address += std::isalnum(c) || c == '-' || c == '_' || c == '.' ? std::string(1, static_cast<char>(c)) : code;
  }
  return text_at(task, "run").empty() ? escape(name) : "<a href=\"tasks/" + address + "/report.html\">" + escape(name) + "</a>";
}

std::string ratio_cell(const interval& i) {
  return "<span class=\"" + std::string(i.low > 1 ? "good" : i.high < 1 ? "bad" : "soft") + "\">" + escape(with_interval(i)) + "</span>";
}

/// Set against earlier results (`pragma bench --compare`).
std::string compared_part(const json& suite) {
  const auto& compared = object_at(suite, "compared");
  const auto& change = object_at(compared, "change");
  if (change.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const auto& t : array_at(change, "tasks")) {
    const auto& r = object_at(t, "ratio");
    const interval ratio{number_at(r, "value"), number_at(r, "low"), number_at(r, "high")};
    rows.push_back({escape(text_at(t, "name")), ratio_cell(ratio), ratio.low > 1 ? "faster" : ratio.high < 1 ? "slower" : "no difference established"});
  }
  for (const auto& [key, words] : {std::pair{"won", "right now, and was not"}, {"lost", "was right, and is not now"}, {"open", "not established in one of the two"}, {"other_kind", "as called in one of the two, the kernel alone in the other"}})
    for (const auto& name : texts_at(change, key)) rows.push_back({escape(name), "-", words});
  const auto& m = object_at(change, "mean");
  const interval mean{number_at(m, "value"), number_at(m, "low"), number_at(m, "high")};
  std::string out = "<p>Against " + escape(text_at(compared, "with")) + ", of the tasks that are right in both: " +
                    (mean.low > 0 ? "<b>" + escape(with_interval(mean)) + "</b> as fast as before (geometric mean)" : std::string("no mean is established, so few are there")) + ".</p>\n";
  return out + table({"task", "as fast as before", ""}, rows, 1, 2) + "<p class=\"soft\">Both were timed against Torch, each at its own time; the interval holds those of both.</p>\n";
}

} // namespace

std::string render_suite_html(const json& suite) {
  const auto& overall = object_at(suite, "overall");
  const auto& tasks = array_at(suite, "tasks");
  const double n = number_at(overall, "n"), success = number_at(overall, "success"), total = number_at(suite, "total_tasks");

  std::string verdict = n <= 0 ? "No task was tried" : quantity(success, "") + " of " + quantity(n, "") + " tasks solved";
  if (success > 0 && number_at(overall, "geometric_mean") > 0) verdict += ", geometric mean " + times(number_at(overall, "geometric_mean")) + " over Torch, fast_1 " + percent(number_at(overall, "fast_1"));
  std::string body = "<h1>" + escape(text_at(suite, "suite").empty() ? "A suite of tasks" : text_at(suite, "suite")) + "</h1>\n<p class=\"verdict\">" + escape(verdict) + "</p>\n";
  if (total > n) body += "<p>" + quantity(total - n, "") + " of " + quantity(total, "") + " tasks have not been tried yet.</p>\n";

  std::vector<bar> bars;
  std::vector<std::vector<std::string>> rows;
  for (const auto& f : array_at(suite, "categories")) {
    const auto name = text_at(f, "category");
    rows.push_back(row_of(f, name));
    const double mean = number_at(f, "geometric_mean"), solved = number_at(f, "success");
    bars.push_back({name, (mean > 0 ? times(mean) : std::string("none solved")) + ", " + quantity(solved, "") + " of " + quantity(number_at(f, "n"), ""), mean});
  }
  if (!overall.empty()) {
    auto all = row_of(overall, "all");
    for (auto& cell : all) cell = "<b>" + cell + "</b>";
    rows.push_back(std::move(all));
  }
  std::string figures = speedup_bars(bars) + table({"category", "n", "success", "kept", "geometric mean", "arithmetic mean", "fast_1", "fast_1.5", "fast_2", "of roofline"}, rows, 1, 10);
  if (!figures.empty())
    figures += std::string("<p class=\"soft\">") + (text_at(overall, "as_called") == "true" ? "Figures are those of drop-ins as a Torch program calls them. " : "Figures are those of kernels alone, without the call from Python. ") +
               "n counts every task that was tried, also those that failed or are unsupported. Means are over the successes and what is kept; the arithmetic one is there for "
               "comparison with the paper. Kept: Torch's model stays, as nothing faster was found; a program has 1.0 of it, and so have the means. fast_p is the share of all n that are right and faster than p times Torch. Of roofline: "
               "geometric means of what Torch and what the kernel reaches of the measured limit.</p>\n";
  body += section("categories", "By category", figures);

  const auto kept = [](const json& t) { return text_at(t, "keeps_torch") == "true"; };
  const auto alone = [&](const json& t) { return text_at(overall, "as_called") == "true" && text_at(t, "status") == "ok" && text_at(t, "as_called") != "true"; };
  std::vector<std::vector<std::string>> solved, failed;
  for (const auto& t : tasks) {
    const auto status = text_at(t, "status");
    const auto hash = "<code>" + escape(text_at(t, "task_hash").substr(0, 12)) + "</code>";
    if (status == "ok") {
      const auto s = interval_of(t);
      const double share = number_at(t, "roofline_share");
      solved.push_back({report_link(t), escape(text_at(t, "category")),
                        ratio_cell(s) + (text_at(t, "contended") == "true" ? " *" : "") + (kept(t) ? " &Dagger;" : alone(t) ? " &dagger;" : ""),
                        quantity(number_at(t, "baseline_seconds"), "s"), quantity(number_at(t, "candidate_seconds"), "s"), share > 0 ? format_number(share, 0) + "%" : "-",
                        quantity(number_at(t, "attempts"), ""), quantity(number_at(t, "wall_seconds"), "s"), hash});
    } else {
      failed.push_back({report_link(t), escape(text_at(t, "category")), escape(status), escape(text_at(t, "reason").empty() ? "no reason was recorded" : text_at(t, "reason")), hash});
    }
  }
  if (!solved.empty())
    body += section("tasks", "Solved tasks", table({"task", "category", "over Torch (95% interval)", "Torch", "kernel", "of roofline", "attempts", "took", "task hash"}, solved, 2, 8) +
                                                 "<p class=\"soft\">Each figure was taken in a fresh process with unseen seeds. * other work was running meanwhile." +
                                                   (std::any_of(tasks.begin(), tasks.end(), alone) ? " &dagger; the kernel's figure alone, which is in no mean: it was not called from a Torch program." : "") +
                                                   (std::any_of(tasks.begin(), tasks.end(), kept) ? " &Dagger; no drop-in is written, as Torch's model is as fast: 1.0 in the means." : "") + "</p>\n");
  body += section("compared", "Compared", compared_part(suite));
  if (!failed.empty()) body += section("failed", "Without a kernel", table({"task", "category", "state", "why", "task hash"}, failed, 9, 9));

  std::vector<std::vector<std::string>> environment;
  for (const char* group : {"options", "environment"})
    for (const auto& [key, value] : object_at(suite, group).items())
      environment.push_back({escape(key), escape(value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, json::error_handler_t::replace))});
  body += section("environment", "How it was run", table({"", ""}, environment, 9, 9));
  return page("PRAGMA: suite", body, sort_script);
}

} // namespace pragma
