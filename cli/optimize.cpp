// pragma optimize, pragma resume: the loop with live progress, then the summary and the files.
#include "cli/commands.hpp"
#include "cli/engine.hpp"
#include "cli/options.hpp"
#include "cli/parts.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "cli/stored_runs.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <memory>
#include <thread>

namespace pragma::cli {

namespace {

int finish(terminal& out, const run_result& result, const std::filesystem::path& folder) {
  const auto said = write_outputs(folder, result, true);
  if (!said) {
    auto e = said.error();
    e.hint += (e.hint.empty() ? "" : "; ") + ("nothing is lost: `pragma resume " + result.header.id + "` writes the result again");
    return report(out, e);
  }
  out.result(run_document(result));
  print_summary(out, result, folder, *said);
  return exit_code_of_run(result);
}

int run_loop(const run_request& request, const std::filesystem::path& folder, bool json_output, const head_choice& head,
             const std::string& prefix = {}) {
  terminal out(json_output, prefix);
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem)
    return report(out, {ec::io_error, "cannot make the folder " + folder.string() + ": " + problem.message(), "choose another with --out DIR"});
  auto machine = engine::open(head);
  if (!machine) return report(out, machine.error());
  const bool together = (*machine)->side_by_side(request.load) > 1;
  const auto watch = [&](const std::string& title, int attempts) {
    if (!title.empty()) out.line(out.bold(title));
    const bool part = title.starts_with("part ");
    const auto own = part && together ? std::make_shared<terminal>(json_output, prefix + "[" + title.substr(0, title.find(" of ")) + "] ") : std::shared_ptr<terminal>(&out, [](terminal*) {});
    return [own, shown = std::make_shared<progress>(*own, attempts)](const run_event& e) { shown->on_event(e); };
  };
  auto result = run_whole(**machine, request, watch);
  if (!result) {
    if (result.error().code == ec::left_as_it_is) remove_drop_in(folder); // this task has none
    return report(out, result.error());
  }
  return finish(out, *result, folder);
}

struct optimize_settings {
  std::vector<std::string> tasks;
  std::string out;
  bool json = false;
  run_options run;
  head_choice head;
};

/// All at once through a head, whose cluster they share; else one after the other, because a measurement wants the machine for itself.
/// Gives the first exit code that is not 0.
int run_all(const optimize_settings& s) {
  terminal out(s.json);
  const auto through = s.head.chosen();
  if (!through) return report(out, through.error());
  std::vector<run_request> requests;
  std::vector<std::filesystem::path> folders;
  for (const auto& task : s.tasks) {
    const auto name = std::filesystem::path(task).stem().string();
    const auto folder = s.out.empty() ? std::filesystem::path("pragma-out") / name : s.tasks.size() == 1 ? std::filesystem::path(s.out) : std::filesystem::path(s.out) / name;
    if (std::find(folders.begin(), folders.end(), folder) != folders.end())
      return report(out, {ec::invalid_argument, "two tasks are called " + name, "their results would lie in one folder: run them apart, with --out"});
    auto request = s.run.request(task, std::filesystem::absolute(folder).string());
    if (!request) return report(out, request.error());
    requests.push_back(std::move(*request));
    folders.push_back(folder);
  }
  std::vector<int> codes(requests.size(), 0);
  const auto one = [&](size_t i) {
    codes[i] = run_loop(requests[i], folders[i], s.json, s.head, requests.size() == 1 ? std::string() : "[" + folders[i].filename().string() + "] ");
  };
  if (!through->empty()) {
    std::vector<std::thread> all;
    for (size_t i = 0; i < requests.size(); ++i) all.emplace_back(one, i);
    for (auto& t : all) t.join();
  } else {
    for (size_t i = 0; i < requests.size() && !cancelled(); ++i) one(i);
  }
  const auto bad = std::find_if(codes.begin(), codes.end(), [](int c) { return c != 0; });
  return bad == codes.end() ? 0 : *bad;
}

} // namespace

void add_optimize(CLI::App& app, action& chosen) {
  {
    auto* command = app.add_subcommand("optimize", "make a task's kernel faster, and prove it right");
    auto s = std::make_shared<optimize_settings>();
    command->add_option("task", s->tasks, "KernelBench-format files: Model, get_inputs, get_init_inputs; several at once share a cluster (--head)")->required();
    command->add_option("--out", s->out, "folder for kernel, drop-in, report (default: pragma-out/TASK; of several tasks: each below it)");
    command->add_flag("--json", s->json, "print the whole run as JSON (of several tasks: one document after the other)");
    s->run.add_to(*command);
    s->head.add_to(*command);
    command->footer("Example:\n  pragma optimize examples/normalization_rms.py --attempts 10 --out /tmp/rms\n  pragma optimize task.py --model qwen2.5-coder --base-url http://127.0.0.1:11434/v1");
    command->callback([s, &chosen] { chosen = [s] { return run_all(*s); }; });
  }
  {
    auto* command = app.add_subcommand("resume", "go on with a run that was stopped or killed");
    struct settings {
      std::string id;
      int attempts = 0;
      bool json = false;
      head_choice head;
    };
    auto s = std::make_shared<settings>();
    command->add_option("run", s->id, "run id, `last`, or a task's name (its newest run)")->required();
    command->add_option("--attempts", s->attempts, "new limit for all attempts of the run (default: as before)");
    command->add_flag("--json", s->json, "print the whole run as JSON");
    s->head.add_to(*command);
    command->footer("Example:\n  pragma resume 20261121-101502-3fa9c1");
    command->callback([s, &chosen] {
      chosen = [s] {
        terminal out(s->json);
        auto stored = read_stored_run(s->id, s->head);
        if (!stored) return report(out, stored.error());
        auto request = stored->header.request;
        request.id = stored->header.id;
        if (s->attempts > 0) request.stop.attempts = s->attempts;
        return run_loop(request, request.out_dir, s->json, s->head);
      };
    });
  }
}

} // namespace pragma::cli
