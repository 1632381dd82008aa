#include "cli/options.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "execution/contention.hpp"
#include "profilers/collect.hpp"

namespace pragma::cli {

void backend_options::add_to(CLI::App& app) {
  app.add_option("--backend", backend, "where candidates run: cpu (C++), cuda, rocm, ascend (Triton)")->capture_default_str();
  app.add_option("--device", index, "number of the device of that backend")->check(CLI::Range(0, 1023))->capture_default_str();
  app.add_option("--baseline", baseline, "what Torch is: eager, compile (torch.compile), max-autotune (its mode), or best: the quickest of them here")->check(CLI::IsMember({"eager", "compile", "max-autotune", "best"}))->capture_default_str();
  app.add_option_function<std::string>("--tf32", [this](const std::string& where) { tf32 = json(where).get<tf32_use>(); },
                                       "on a device: which products of float32 may round their factors to TF32, Torch's and ours: none, convolutions (what Torch does unless a program says otherwise), all")
      ->check(CLI::IsMember({"none", "convolutions", "all"}))
      ->default_str("convolutions");
  app.add_flag("--allow-torch", allow_torch, "on a device: a candidate may leave operators to Torch");
}

expected<void> backend_options::apply(load_request& load) const {
  auto chosen = find_backend(backend);
  if (!chosen) return fail(chosen.error());
  if (!chosen->on_device() && (index != 0 || tf32 == tf32_use::all || allow_torch))
    return fail(ec::invalid_argument, "--device, --tf32 all and --allow-torch are for devices, and the backend is " + backend, "add --backend cuda");
  load.backend = backend;
  load.device = index;
  load.baseline = baseline;
  load.tf32 = chosen->on_device() ? tf32 : tf32_use::none;
  load.allow_torch = allow_torch;
  return {};
}

backend_options backend_options::of(const load_request& load) {
  return {load.backend, load.device, load.baseline, load.tf32, load.allow_torch};
}

json backend_options::flags() const {
  return {{"backend", backend}, {"device", index}, {"baseline", baseline}, {"tf32", tf32}, {"allow_torch", allow_torch}};
}

json run_options::key() const {
  json all = {{"coder", coder}, {"model", model}, {"attempts", attempts}, {"threads", threads}, {"profile", !no_profile},
              {"algebra", !no_algebra}, {"cold", cold}, {"search_seed", no_profile ? search_seed : 0}};
  if (no_check) all["check"] = false; // what is timed is the kernel, not the drop-in as it is called
  all.update(device.flags());
  return all;
}

void add_threads(CLI::App& command, int& threads, const std::string& help) {
  command.add_option("--threads", threads, help + "; all: the cores of one socket")
      ->transform([](const std::string& text) { return text == "all" ? std::to_string(measuring_cores()) : text; })
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
}

void run_options::add_to(CLI::App& app) {
  device.add_to(app);
  app.add_option("--coder", coder, "who writes the kernels: builtin (default without a model), llm, command")
      ->check(CLI::IsMember({"builtin", "llm", "command"}));
  app.add_option("--command", command, "coder command: prompt on stdin, answer on stdout, e.g. \"my-agent --print\"");
  app.add_option("--llm", llm_config, "file with the model's settings (configs/llm.json.example)");
  app.add_option("--model", model, "model name for an OpenAI-compatible endpoint");
  app.add_option("--base-url", base_url, "its URL, e.g. http://127.0.0.1:11434/v1 (key: environment, OPENAI_API_KEY by default)");
  app.add_option("--attempts", attempts, "most attempts per task")->check(CLI::Range(1, 1000))->capture_default_str();
  add_threads(app, threads, "threads of the kernel and of Torch");
  app.add_option("--seeds", seeds, "fresh input seeds per verification")->check(CLI::Range(1, 100))->capture_default_str();
  app.add_option("--parallel", parallel, "candidates that are made and verified side by side; pays with a cluster's nodes (--head)")->check(CLI::Range(1, 256))->capture_default_str();
  app.add_option("--priority", priority, "of a run through a head: higher first; above 0 for admins only")->check(CLI::Range(-100, 100))->capture_default_str();
  app.add_option("--needs", needs, "of a run through a head: what its nodes must have, as in avx512,mem>=64G or cuda>=9.0");
  app.add_option("--patience", patience, "stop after this many attempts without a new best (0: never)")->capture_default_str();
  app.add_flag("--no-profile", no_profile, "no metrics and no findings (N-PRAGMA of the paper): --search unguided");
  app.add_flag("--no-check", no_check, "do not try and time the drop-in in a fresh Torch process (sandboxed) at the end");
  app.add_option("--profile-seconds", profile_seconds, "budget of all profiling tools per attempt; on a device 60 at the least, and from 8 on with the tool's own rules")
      ->check(CLI::Range(0.1, 3600.0))->capture_default_str();
  app.add_option("--metrics", metrics, "further metrics to collect, by name, comma separated")->delimiter(',')->allow_extra_args(false);
  app.add_option("--max-minutes", max_minutes, "stop after this much wall-clock time (one attempt is always made)");
  app.add_option("--target", target, "stop when the speed-up is certainly above this");
  app.add_option("--budget-tokens", budget_tokens, "most tokens of the model per run");
  app.add_option("--budget-cost", budget_cost, "most money per run, by the prices in the model's settings");
  app.add_option("--seed", seed, "what a model starts from: builtin (our best first kernel) or none")->check(CLI::IsMember({"builtin", "none"}))->capture_default_str();
  app.add_flag("--no-algebra", no_algebra, "built-in coder: compute what the reference computes, even where algebra shows a shorter way");
  app.add_flag("--cold", cold, "built-in coder: ignore schedules that won on tasks like this one");
  app.add_option("--search", search, "built-in coder: by findings; unguided (the same moves from the best so far, in random order); random (schedules drawn blindly)")
      ->check(CLI::IsMember({"findings", "unguided", "random"}))->capture_default_str();
  app.add_option("--search-seed", search_seed, "seed of the searches without findings")->capture_default_str();
}

expected<run_request> run_options::request(const std::string& task, const std::string& out_dir) const {
  run_request r;
  std::error_code problem;
  const auto path = std::filesystem::absolute(task, problem);
  if (!std::filesystem::is_regular_file(path, problem))
    return fail(ec::not_found, (std::filesystem::exists(path, problem) ? "not a task file: " : "no such task file: ") + task, "a task is a Python file with Model, get_inputs and get_init_inputs; see examples/");
  r.load.path = path.string();
  r.load.threads = threads;
  r.load.seeds = seeds;
  r.load.call_drop_in = !no_check;
  if (auto applied = device.apply(r.load); !applied) return fail(applied.error());
  if (!command.empty() && (!model.empty() || !base_url.empty() || !llm_config.empty()))
    return fail(ec::invalid_argument, "--command and a model (--model, --base-url, --llm) are two coders", "give one of them");
  auto& llm = r.coder.llm;
  if (!llm_config.empty()) {
    auto text = read_file(llm_config);
    if (!text) return fail(text.error());
    auto parsed = parse_llm_config(*text, llm_config);
    if (!parsed) return fail(parsed.error());
    llm = std::move(*parsed);
  }
  if (!model.empty()) llm.model = model;
  if (!base_url.empty()) llm.base_url = base_url;
  if (budget_tokens > 0) llm.budget_tokens = budget_tokens;
  if (budget_cost > 0) llm.budget_cost = budget_cost;
  if (!command.empty()) {
    llm.kind = "command";
    llm.command = {"/bin/sh", "-c", command};
  }
  auto kind = coder;
  if (kind.empty()) kind = !command.empty() ? "command" : !model.empty() || !llm_config.empty() ? "llm" : "builtin";
  if (kind == "command" && llm.command.empty())
    return fail(ec::invalid_argument, "--coder command needs the command", "add --command \"my-agent --print\"");
  if (kind == "llm" && llm.kind == "openai" && llm.model.empty())
    return fail(ec::invalid_argument, "--coder llm needs a model", "add --model NAME (and --base-url URL), or --llm FILE");
  r.coder.kind = kind == "builtin" ? "builtin" : "llm";
  r.coder.threads = threads;
  r.coder.tf32 = r.load.tf32;
  r.coder.allow_torch = device.allow_torch;
  r.coder.seed_builtin = seed == "builtin";
  r.coder.seed = search_seed;
  r.coder.algebra = !no_algebra;
  r.coder.cold = cold;
  r.coder.search = search;
  if (!out_dir.empty() && r.coder.kind == "llm") r.coder.transcript = (std::filesystem::path(out_dir) / "transcript.jsonl").string();
  r.stop.attempts = attempts;
  r.parallel = parallel;
  r.priority = priority;
  r.needs = needs;
  r.stop.max_seconds = max_minutes * 60;
  r.stop.target_speedup = target;
  r.stop.patience = patience;
  r.profile = !no_profile && search == "findings";
  r.profile_seconds = profile_seconds;
  r.extra_metrics = metrics;
  if (auto known = r.load.where().on_device() ? expected<void>() : check_metric_names(metrics); !known) return fail(known.error());
  r.out_dir = out_dir;
  return r;
}

} // namespace pragma::cli
