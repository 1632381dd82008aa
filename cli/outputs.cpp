// run.json, the report and the drop-in kernel: what a run leaves in the folder that the user named.
#include "drop_in/drop_in.hpp"
#include "cli/engine.hpp"
#include "cli/options.hpp"

#include "base/files.hpp"
#include "base/language.hpp"
#include "base/text.hpp"
#include "cli/report.hpp"
#include "cli/torch_work.hpp"
#include "kernels/parts.hpp"
#include "reference/reference.hpp"

namespace pragma::cli {

namespace {

constexpr double notable_gain = 1.05; ///< as called; below it a figure whose interval holds 1 is Torch's own speed

/// The end of a run whose result is for another machine: a laptop's that asked a head. Its drop-in is checked where it can run.
std::string not_checked(const std::filesystem::path& folder, const load_request& load, const std::string& why) {
  std::string command = "pragma verify " + (folder / "task_reference.py").string() + " " + (folder / "run.json").string();
  if (load.where().on_device()) command += " --backend " + load.backend;
  if (load.where().on_device() && load.tf32 != backend_options().tf32) command += " --tf32 " + json(load.tf32).get<std::string>();
  if (load.allow_torch) command += " --allow-torch";
  return "not checked on this machine: " + why + "; its kernel is verified, on one that has what it needs, by: " + command;
}

} // namespace

json run_document(const run_result& result) {
  const auto& h = result.header;
  const auto& env = h.environment;
  const auto& t = env.task;
  auto torch = torch_work_of(t.graph);
  torch.times = h.final.torch;
  json options = {{"coder", h.request.coder.kind}, {"attempts", h.request.stop.attempts}, {"threads", h.request.load.threads},
                  {"profile", h.request.profile}, {"seeds", h.request.load.seeds}, {"stop", h.request.stop}};
  options.update(backend_options::of(h.request.load).flags());
  json run = {
      {"id", h.id},
      {"state", h.state},
      {"started", h.started},
      {"finished", h.finished},
      {"stop_reason", h.stop_reason},
      {"owner", h.request.owner},
      {"task",
       {{"name", t.name}, {"id", t.id}, {"path", t.path}, {"category", t.category}, {"source", t.source}, {"inputs", t.inputs},
        {"params", t.params}, {"outputs", t.outputs}, {"flops", t.flops}, {"bytes", t.bytes}, {"notes", t.notes},
        {"mutated", t.mutated}, {"deterministic", t.deterministic}, {"torch", std::move(torch)}}},
      {"options", std::move(options)},
      {"environment",
       {{"cpu", env.cpu}, {"python", env.python}, {"torch", env.torch}, {"baseline", env.baseline}, {"compilers", env.compilers},
        {"limits", env.limits}, {"notes", env.notes}}},
      {"totals",
       {{"wall", h.wall_seconds}, {"load", h.load_seconds}, {"coder", h.code_seconds}, {"build", h.build_seconds},
        {"verify", h.verify_seconds}, {"time", h.time_seconds}, {"profile", h.profile_seconds}, {"confirm", h.confirm_seconds},
        {"overhead", h.overhead_seconds}}},
      {"usage", h.usage},
      {"graph_findings", h.graph_findings},
      {"best", h.best_attempt},
      {"confirmed", h.confirmed},
  };
  if (!h.request.cut.parts.empty()) run["cut"] = h.request.cut;
  if (h.confirmed)
    run["final"] = {{"timing", h.final.time}, {"kernel", h.final.kernel}, {"as_called", h.final.as_called}, {"drop_in", h.final.drop_in}, {"numbers", h.final.numbers},
                    {"not_called", h.final.not_called}, {"verdict", h.final.verdict}};
  return {{"schema", 1}, {"run", std::move(run)}, {"iterations", result.iterations}};
}

std::string why_no_drop_in(const run_result& result) {
  const auto& h = result.header;
  const auto best = std::find_if(result.iterations.begin(), result.iterations.end(), [&](const auto& r) { return r.number == h.best_attempt; });
  if (!h.confirmed || best == result.iterations.end()) return {};
  if (best->code.language == parts_language) return h.final.time.speedup.low <= 1 ? "Model itself is as fast" : "";
  const auto& found = h.final.time.speedup;
  if (h.final.as_called) return found.low <= 1 && found.value < notable_gain ? "Model itself is as fast where a program calls it" : "";
  return h.request.load.call_drop_in && found.high > 0 && found.high < 1 ? "its kernel alone is slower than Model" : ""; // nobody could say how it is when it is called
}

void remove_drop_in(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(folder / "pragma_drop_in.py", ignored)) std::filesystem::remove(folder / "model_new.py", ignored);
}

expected<std::string> write_outputs(const std::filesystem::path& folder, const run_result& result, bool deploy) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) return fail(ec::io_error, "cannot make the folder " + folder.string() + ": " + problem.message());
  const auto document = run_document(result);
  if (auto done = write_file_atomic(folder / "run.json", document.dump(1, ' ', true, json::error_handler_t::replace) + "\n"); !done)
    return fail(done.error());
  if (auto done = write_file_atomic(folder / "report.html", render_html_report(document)); !done) return fail(done.error());
  for (const auto& r : result.iterations) {
    if (r.number != result.header.best_attempt) continue;
    const auto& load = result.header.request.load;
    if (const auto why = why_no_drop_in(result); !why.empty()) {
      remove_drop_in(folder);
      if (r.code.language == parts_language) return "not written: " + why;
      if (auto done = write_file_atomic(folder / (load.where().on_device() ? "kernel.py" : "kernel.cpp"), r.code.source); !done) return fail(done.error());
      return "not written: " + why + "; the kernel's text is kept";
    }
    const auto& t = result.header.environment.task;
    const auto device = find_backend(load.backend);
    if (!device) return fail(device.error());
    if (auto done = write_drop_in(folder, t, r.code, load.threads, {device->torch_device, load.tf32, load.allow_torch}); !done) return fail(done.error());
    std::string built;
    const auto language = language_of_kernels(r.code);
    if (!language) return fail(language.error());
    if (deploy && load.backend == "cuda" && in_python(*language)) {
      drop_in_options on;
      on.language = *language;
      on.device = load.where();
      on.tf32 = load.tf32;
      on.threads = load.threads;
      on.seeds = 1;
      on.cancel = &cancelled();
      const auto kernels = build_kernels(folder, t, on);
      built = kernels ? "; kernels compiled for this GPU lie beside their source" : "; its kernels are compiled where it runs first (" + kernels.error().message + ")";
    } else if (deploy) {
      auto objects = build_objects(folder, r.code);
      if (!objects && objects.error().code == ec::io_error) return fail(objects.error());
      if (!objects) built = "; not built here (" + objects.error().message + "): kernel.cpp is compiled where the drop-in runs first";
      else if (!objects->empty()) built = "; built for " + join(*objects, ", ");
    }
    const auto& final = result.header.final;
    if (!result.header.confirmed) return std::string();
    return (!final.drop_in.empty() ? final.drop_in : load.call_drop_in ? not_checked(folder, load, final.not_called) : "not checked: " + final.not_called) + built;
  }
  if (result.header.state == "finished") remove_drop_in(folder); // this run has found no kernel
  return std::string();
}

} // namespace pragma::cli
