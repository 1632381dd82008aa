// The tools of `pragma mcp` that run kernels: verify, profile, compare on a resident task; optimize with the agents.
#include "cli/parts.hpp"
#include "cli/candidate_file.hpp"
#include "cli/html.hpp"
#include "cli/mcp_tools.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"

#include "base/text.hpp"
#include "profilers/collect.hpp"

namespace pragma::cli {

namespace {

using mcp::kind;
using mcp::parameter;

std::vector<parameter> task_parameters() {
  return {{"task", kind::text, "path of a KernelBench-format file: Model, get_inputs, get_init_inputs", true},
          {"threads", kind::whole, "threads of the kernel and of Torch", false, defaults::threads, {}, 1, 1024},
          {"backend", kind::text, "where candidates run: cpu (C++), cuda, rocm, ascend (Triton)", false, "cpu"},
          {"device", kind::whole, "number of the device of that backend", false, 0, {}, 0, 1023},
          {"baseline", kind::text, "what Torch is: torch.compile with its defaults or in the mode max-autotune; best: the quickest of all here", false, "eager", {"eager", "compile", "max-autotune", "best"}},
          {"tf32", kind::text, "on a device: which products of float32 may round their factors to TF32, Torch's and ours; in convolutions Torch does unless a program says otherwise", false, "convolutions", {"none", "convolutions", "all"}},
          {"allow_torch", kind::flag, "on a device: a candidate may leave operators to Torch", false, false}};
}

std::vector<parameter> with(std::vector<parameter> all, std::vector<parameter> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return all;
}

std::vector<parameter> candidate_parameters(const std::string& prefix = {}, const std::string& what = "the candidate") {
  return {{prefix + "source", kind::text, what + " itself: C++ that defines pragma_kernel (resource pragma://pragma_kernel.h), or on a device a Triton module with ModelNew", false},
          {prefix + "file", kind::text, what + " as a file: .cpp, .py, or a run.json (its best version)", false}};
}

std::vector<parameter> build_parameters() {
  return {{"compiler", kind::text, "of C++", false, "gcc", {"gcc", "clang"}},
          {"flags", kind::texts, "compiler flags of C++", false, json::array({"-O3", "-march=native"})},
          {"seeds", kind::whole, "fresh input seeds", false, defaults::verify_seeds, {}, 1, 100}};
}

expected<load_request> load_of(const json& arguments) {
  load_request load;
  std::error_code problem;
  const auto task = arguments["task"].get<std::string>();
  load.path = std::filesystem::absolute(task, problem).string();
  if (problem || !std::filesystem::exists(load.path, problem))
    return fail(ec::not_found, "no such task file: " + task, "a task is a Python file with Model, get_inputs and get_init_inputs; relative paths count from where the server was started");
  load.threads = arguments["threads"];
  load.seeds = arguments.value("seeds", defaults::verify_seeds);
  const backend_options device{arguments["backend"], arguments["device"], arguments["baseline"], arguments["tf32"].get<tf32_use>(), arguments["allow_torch"]};
  if (auto applied = device.apply(load); !applied) return fail(applied.error());
  (void)hand_over_collectors(load); // without the user's own profilers the shipped ones measure
  return load;
}

expected<candidate> candidate_of(const json& arguments, const std::string& prefix, const load_request& load) {
  const auto source = arguments.find(prefix + "source"), file = arguments.find(prefix + "file");
  if ((source == arguments.end()) == (file == arguments.end()))
    return fail(ec::invalid_argument, "give either '" + prefix + "source' or '" + prefix + "file'");
  const auto flags = arguments["flags"].get<std::vector<std::string>>();
  expected<candidate> c = candidate{};
  if (file != arguments.end()) c = read_candidate(*file, arguments["compiler"], flags);
  else {
    c->source = *source;
    if (c->source.size() > defaults::max_candidate_source)
      return fail(ec::limit_exceeded, "'" + prefix + "source' is longer than " + format_bytes(static_cast<double>(defaults::max_candidate_source)));
    c->origin = "user";
    const auto chosen = find_backend(load.backend);
    if (chosen && chosen->language != "c++") {
      c->language = chosen->language;
      c->compiler.clear();
    } else {
      c->compiler = arguments["compiler"];
      c->flags = flags;
    }
  }
  if (!c) return c;
  if (auto right = check_language(*c, load.backend); !right) return fail(right.error());
  return c;
}

std::string verdict_text(const examination& e) {
  const auto& v = e.verdict;
  if (v.passed())
    return "RIGHT: " + (v.tolerance > 0 ? "worst error " + format_number(v.worst_error, 3) + " of what is allowed (tolerance " + json(v.tolerance).dump() + "); " : "") + "checked: " + checked_text(v.checked) + "\n";
  if (!v.established()) return "NOT ESTABLISHED: " + v.reason + ". This says nothing of the kernel" + (v.why_not == doubt::machine_busy ? "; call again when the machine is quiet" : "") + ".\n" + v.log;
  std::string text = "NOT ACCEPTED at " + json(v.stage).get<std::string>() + ": " + v.reason + "\n";
  for (const auto& m : v.mismatches)
    text += "  " + m.input_set + ": " + m.output + json(m.index).dump() + " expected " + m.expected + ", got " + m.got + " (" + std::to_string(m.wrong_elements) + " of " +
            std::to_string(m.total_elements) + " wrong)\n";
  if (!v.log.empty()) text += v.log + "\n";
  for (const auto& hint : repairs_for(v, e.language)) text += "  try: " + hint.remedy + " (" + hint.cause + ")\n";
  return text;
}

std::string timing_text(const timing& t, const std::string& against) {
  if (t.speedup.value <= 0) return "not established against " + against + (t.note.empty() ? "" : ": " + t.note) + "\n";
  const bool none = t.speedup.low <= 1 && t.speedup.high >= 1;
  return speedup_text(t.speedup) + (none ? ", no difference established," : "") + " against " + against + ": " + format_seconds(t.baseline_seconds) + " -> " + format_seconds(t.candidate_seconds) + " a call" +
         (t.contended ? "; measured while other work was running: the interval may lie" : "") + (t.note.empty() ? "" : "; " + t.note) + "\n";
}

expected<mcp::answer> examined(mcp_state& state, const mcp::call& call, bool measure, bool profile, const std::string& other) {
  auto load = load_of(call.arguments);
  if (!load) return fail(load.error());
  auto c = candidate_of(call.arguments, "", *load);
  if (!c) return fail(c.error());
  examine_request request;
  request.candidate = std::move(*c);
  request.measure = measure;
  request.profile = profile;
  if (profile) {
    request.profile_seconds = call.arguments["profile_seconds"];
    request.extra_metrics = call.arguments.value("metrics", std::vector<std::string>{});
    if (auto known = load->where().on_device() ? expected<void>() : check_metric_names(request.extra_metrics); !known) return fail(known.error());
  }
  if (!other.empty()) {
    auto second = candidate_of(call.arguments, other, *load);
    if (!second) return fail(second.error());
    request.against = std::move(*second);
  }
  int steps = 0;
  auto found = state.tasks.examine(*load, request, call.cancelled, [&](const std::string& step) { call.progress(steps++, measure ? 4 : 2, step); });
  if (!found) return fail(found.error());
  auto data = document(found->found);
  data["warm"] = found->warm;
  data["seconds"] = found->seconds;
  return mcp::answer{examination_text(found->found) + "(" + format_seconds(found->seconds) + (found->warm ? ", task warm)" : ", task loaded)"), std::move(data)};
}

} // namespace

std::string examination_text(const examination& e) {
  auto text = verdict_text(e);
  if (!e.measured || !e.verdict.passed()) return text;
  text += timing_text(e.profile.time, e.profile.time.baseline);
  if (e.compared) text += "Side by side: " + timing_text(e.side_by_side, "the other candidate");
  else if (!e.against.empty()) text += "Not compared side by side: " + e.side_by_side.note + "\n";
  for (const auto& m : e.profile.metrics) text += "  " + m.name + " = " + html::quantity(m.value, m.unit) + " [" + json(m.how).get<std::string>() + "]\n";
  for (const auto& line : e.profile.missing) text += "  not had: " + line + "\n";
  for (const auto& line : table_lines(e.table)) text += line + "\n";
  return text + findings_text(e.findings);
}

std::string findings_text(const std::vector<finding>& findings) {
  std::string text;
  for (const auto& f : findings) {
    text += json(f.what).get<std::string>() + (f.level.empty() ? "" : " (" + f.level + ")") + ", confidence " + format_number(f.confidence, 2) + place_of(f) + ": " + f.why + "\n";
    for (const auto& e : f.proof) text += "    evidence: " + (e.text.empty() ? e.metric + " = " + html::quantity(e.value, e.unit) : e.text) + "\n";
    for (const auto& r : f.remedies) text += "    try: " + r + "\n";
  }
  return text;
}

std::vector<mcp::tool> kernel_tools(const std::shared_ptr<mcp_state>& state) {
  const auto one = with(with(task_parameters(), candidate_parameters()), build_parameters());
  return {
      {"verify", "Is this kernel right?",
       "Builds a kernel and compares it with Torch on fresh inputs, edge cases and a float64 oracle, in a sandbox. The first call on a task loads it (some seconds); later ones cost "
       "a build and a check.",
       one, true, [state](const mcp::call& call) { return examined(*state, call, false, false, ""); }},
      {"profile", "How fast is it, and why?",
       "Verifies a kernel, times it in alternation with Torch, reads the profilers, and says what limits it, with evidence and what to try. Other work on the machine makes the interval wide.",
       with(one, {{"profile_seconds", kind::number, "budget of all profiling tools together; on a device 60 at the least", false, 3, {}, 0.1, 3600},
                  {"metrics", kind::texts, "further metrics by name", false}}),
       true, [state](const mcp::call& call) { return examined(*state, call, true, true, ""); }},
      {"compare", "Which of two kernels is faster?",
       "Verifies two kernels and times them in alternation: the ratio of their times with its 95% interval. Above 1 the first (source, file) is faster than the other one.",
       with(with(with(task_parameters(), candidate_parameters()), candidate_parameters("other_", "the other candidate")), build_parameters()), true,
       [state](const mcp::call& call) { return examined(*state, call, true, false, "other_"); }},
  };
}

namespace {

expected<std::shared_ptr<engine>> engine_of(mcp_state& state) {
  const std::lock_guard lock(state.engine_mutex);
  if (auto open = state.running.lock()) return open;
  auto opened = engine::open(state.head);
  if (!opened) return fail(opened.error());
  std::shared_ptr<engine> shared = std::move(*opened);
  state.running = shared;
  return shared;
}

std::string event_text(const run_event& e) {
  if (e.what == "iteration") {
    const auto& r = e.iteration;
    if (!r.established()) return "attempt " + std::to_string(r.number) + " was not established: " + r.verdict.reason;
    if (!r.passed()) return "attempt " + std::to_string(r.number) + " failed at " + r.stage() + ": " + r.verdict.reason;
    return "attempt " + std::to_string(r.number) + ": " + speedup_text(r.code.measured.time.speedup) + (r.new_best ? ", new best" : ", not better") +
           (r.code.rationale.empty() ? "" : " (" + r.code.rationale + ")");
  }
  return e.what + (e.text.empty() ? "" : ": " + e.text);
}

mcp::answer answer_of(const run_result& run, const std::filesystem::path& folder, const expected<std::string>& checked) {
  const auto& h = run.header;
  const auto& t = h.final.time;
  json data = {{"run", h.id}, {"state", h.state}, {"stop_reason", h.stop_reason}, {"attempts", run.iterations.size()}, {"best_attempt", h.best_attempt},
               {"confirmed", h.confirmed}, {"folder", folder.string()}, {"report", (folder / "report.html").string()}};
  std::string text = "Run " + h.id + " " + h.state + " (" + h.stop_reason + ") after " + std::to_string(run.iterations.size()) + " attempts.\n";
  if (h.confirmed) {
    data["timing"] = t;
    text += "Confirmed in a fresh process with unseen seeds: " + timing_text(t, t.baseline);
  } else {
    text += "No speed-up was established: the best version was not confirmed.\n";
  }
  for (const auto& it : run.iterations) {
    if (it.number != h.best_attempt) continue;
    data["kernel"] = {{"source", it.code.source}, {"language", it.code.language}, {"compiler", it.code.compiler}, {"flags", it.code.flags}};
    text += findings_text(it.findings);
  }
  if (checked) text += checked->empty() ? "" : "Drop-in: " + *checked + "\n";
  else text += "The drop-in failed its check: " + checked.error().message + "\n";
  return {text + (why_no_drop_in(run).empty() ? "Report, kernel and model_new.py: " : "Report and kernel: ") + folder.string() + "; resource pragma://runs/" + h.id + "/record", std::move(data)};
}

expected<mcp::answer> optimize(mcp_state& state, const mcp::call& call) {
  const auto& a = call.arguments;
  run_options options;
  options.attempts = a["attempts"];
  options.threads = a["threads"];
  options.max_minutes = a["max_minutes"];
  options.cold = a["cold"];
  options.no_check = !a["check"].get<bool>();
  options.device = {a["backend"], a["device"], a["baseline"], a["tf32"].get<tf32_use>(), a["allow_torch"]};
  const auto task = a["task"].get<std::string>();
  std::error_code problem;
  const auto folder = std::filesystem::absolute(a.value("out", (std::filesystem::path("pragma-out") / std::filesystem::path(task).stem()).string()), problem);
  auto request = options.request(task, folder.string());
  if (!request) return fail(request.error());
  std::filesystem::create_directories(folder, problem);
  if (problem) return fail(ec::io_error, "cannot make the folder " + folder.string() + ": " + problem.message(), "choose another with 'out'");
  auto machine = engine_of(state);
  if (!machine) return fail(machine.error());
  double done = 0;
  const double total = options.attempts + 1; // the confirmation
  const auto watch = [&](const std::string& title, int) {
    return [&, title](const run_event& e) {
      if (e.what == "iteration" && title.empty()) done = e.iteration.number;
      call.progress(done, total, (title.empty() ? "" : title + ": ") + event_text(e));
    };
  };
  auto result = run_whole(**machine, *request, watch, call.cancelled);
  if (!result) return fail(result.error());
  return answer_of(*result, folder, write_outputs(folder, *result, true));
}

} // namespace

mcp::tool optimize_tool(const std::shared_ptr<mcp_state>& state) {
  return {"optimize", "Make this task's kernel faster",
          "PRAGMA's own loop with its built-in coder: writes kernels, verifies, measures and diagnoses them, keeps the best, confirms it in a fresh process. Takes minutes; reports each "
          "attempt as progress; may be cancelled, and what was found until then stays in the run store.",
          with(task_parameters(), {{"attempts", kind::whole, "most attempts", false, 8, {}, 1, 1000},
                                   {"max_minutes", kind::number, "stop after this much time; 0: no limit", false, 0, {}, 0, 100000},
                                   {"cold", kind::flag, "ignore schedules that won on tasks like this one", false, false},
                                   {"check", kind::flag, "try the drop-in in a fresh Torch process at the end", false, true},
                                   {"out", kind::text, "folder for kernel, drop-in and report (default: pragma-out/TASK)", false}}),
          false, [state](const mcp::call& call) { return optimize(*state, call); }};
}

} // namespace pragma::cli
