// What `pragma mcp` offers besides tools: records of runs and entries of the compendium as resources, and the prompts.
#include "cli/mcp_tools.hpp"
#include "cli/report.hpp"
#include "cli/stored_runs.hpp"

#include "base/files.hpp"
#include "knowledge/library.hpp"

namespace pragma::cli {

namespace {

using mcp::kind;

constexpr size_t listed_runs = 50;
constexpr const char* header_uri = "pragma://pragma_kernel.h";

constexpr const char* instructions =
    "PRAGMA makes compute kernels faster from hardware counters. To do its loop yourself: read " 
    "pragma://pragma_kernel.h, write a kernel, `verify` it, `profile` it, do what the findings say, and `compare` the new version with the last one; "
    "trust a ratio only when its whole interval is above 1. `optimize` runs PRAGMA's own coder instead. `ask` and `show_metric` say what a metric means.";

constexpr const char* faster_prompt =
    "Make the kernel of the task file {task} faster than Torch, and prove it.\n\n"
    "1. Call `hardware` for what this machine can do at most, and read the resource pragma://pragma_kernel.h for the interface of a kernel.\n"
    "2. Write a first kernel and call `verify` with it until it is right. A mismatch names the element, the expected value and yours.\n"
    "3. Call `profile`. Work on the finding with the highest confidence; look a metric up with `show_metric` or `ask` before you reason from it.\n"
    "4. Change one thing, `verify`, then `compare` the new version with the best so far (source against other_source). Keep it only when the whole interval is above 1; "
    "an interval that contains 1 means that nothing was established.\n"
    "5. Stop when roofline_share is near 100%, or when three changes in a row did not help.\n\n"
    "Report the ratio with its interval, what each kept change gained, and what now limits the kernel. Do not report a figure that no tool gave you.";

constexpr const char* explain_prompt =
    "Explain the result of the PRAGMA run {run} to a performance engineer. Read the resource pragma://runs/{run}/record and call `diagnose` for its best attempt. "
    "Say what was established (the ratio with its interval, against what), what each accepted attempt gained, what did not help and why, and what limits the kernel now. "
    "Use only figures that stand in the record.";

std::string filled(std::string text, const std::string& key, const std::string& value) {
  const auto place = "{" + key + "}";
  for (size_t at = 0; (at = text.find(place, at)) != std::string::npos; at += value.size()) text.replace(at, place.size(), value);
  return text;
}

/// "report" of "pragma://runs/ID/report"; the id goes to `run`.
std::string part_of_run(const std::string& uri, std::string& run) {
  constexpr std::string_view start = "pragma://runs/";
  if (!uri.starts_with(start)) return {};
  const auto slash = uri.find('/', start.size());
  if (slash == std::string::npos) return {};
  run = uri.substr(start.size(), slash - start.size());
  return uri.substr(slash + 1);
}

expected<mcp::resource_text> read_metric(const std::string& name) {
  auto compendium = library::open(library_paths::usual(), {}, true);
  if (!compendium) return fail(compendium.error());
  auto found = compendium->show(name);
  if (!found) return fail(found.error());
  if (found->empty()) return fail(ec::not_found, "the compendium has no metric like that");
  return mcp::resource_text{"application/json", json(*found).dump(1, ' ', false, json::error_handler_t::replace)};
}

} // namespace

expected<std::vector<mcp::resource>> list_resources() {
  std::vector<mcp::resource> all = {{header_uri, "pragma_kernel.h", "the interface of a C++ kernel", "text/x-chdr"}};
  auto runs = list_stored_runs();
  if (!runs) return fail(runs.error());
  if (runs->size() > listed_runs) runs->resize(listed_runs);
  for (const auto& h : *runs) {
    const auto about = h.task + ", " + h.state + ", started " + h.started;
    all.push_back({"pragma://runs/" + h.id + "/record", "run " + h.id, "the whole record: " + about, "application/json"});
    if (h.best_attempt > 0) all.push_back({"pragma://runs/" + h.id + "/kernel", "kernel of " + h.id, "the best version: " + about, "text/plain"});
    all.push_back({"pragma://runs/" + h.id + "/report", "report of " + h.id, "for people: " + about, "text/html"});
  }
  return all;
}

expected<mcp::resource_text> read_resource(const std::string& uri) {
  if (uri == header_uri) {
    auto text = read_file(share_dir() / "pragma_kernel.h");
    if (!text) return fail(text.error());
    return mcp::resource_text{"text/x-chdr", std::move(*text)};
  }
  if (uri.starts_with("pragma://metrics/")) return read_metric(uri.substr(17));
  std::string id;
  const auto part = part_of_run(uri, id);
  if (part != "record" && part != "kernel" && part != "report")
    return fail(ec::not_found, "there is no such resource; there are pragma://runs/RUN/record, kernel and report, pragma://metrics/NAME, " + std::string(header_uri));
  auto run = read_stored_run(id);
  if (!run) return fail(run.error());
  if (part == "report") return mcp::resource_text{"text/html", render_html_report(run_document(*run))};
  if (part == "record") return mcp::resource_text{"application/json", run_document(*run).dump(1, ' ', false, json::error_handler_t::replace)};
  for (const auto& it : run->iterations)
    if (it.number == run->header.best_attempt) return mcp::resource_text{"text/plain", it.code.source};
  return fail(ec::not_found, "run " + id + " has no accepted version");
}

mcp::features mcp_features(const std::shared_ptr<mcp_state>& state) {
  mcp::features all;
  all.instructions = instructions;
  all.tools = kernel_tools(state);
  all.tools.push_back(optimize_tool(state));
  for (auto& t : record_tools()) all.tools.push_back(std::move(t));
  all.prompts = {{"make_kernel_faster", "Make this kernel faster", "PRAGMA's loop, done by you with its tools",
                  {{"task", kind::text, "path of the task file", true}},
                  [](const json& a) -> expected<std::string> { return filled(faster_prompt, "task", a["task"]); }},
                 {"explain_run", "Explain a run", "What a recorded run established, for a performance engineer",
                  {{"run", kind::text, "run id", true}},
                  [](const json& a) -> expected<std::string> { return filled(explain_prompt, "run", a["run"]); }}};
  all.templates = {{"pragma://runs/{run}/record", "record of a run", "run.json: task, environment, every attempt", "application/json"},
                   {"pragma://runs/{run}/kernel", "kernel of a run", "the source of its best version", "text/plain"},
                   {"pragma://runs/{run}/report", "report of a run", "self-contained HTML", "text/html"},
                   {"pragma://metrics/{name}", "a metric", "its entry in the compendium, with sources", "application/json"}};
  all.resources = list_resources;
  all.read = read_resource;
  return all;
}

} // namespace pragma::cli
