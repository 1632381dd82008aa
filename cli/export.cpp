// pragma export: a result as others take it: a wheel, one Python file, a library for C++, or a document of another tool's format.
#include "cli/commands.hpp"
#include "cli/engine.hpp"
#include "cli/interchange.hpp"
#include "cli/stored_runs.hpp"
#include "cli/terminal.hpp"

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "drop_in/drop_in.hpp"
#include "reference/python_search.hpp"

#include <cctype>
#include <memory>

namespace pragma::cli {

namespace {

struct export_settings {
  std::string result, name, out, file;
  bool wheel = false, one_file = false, cpp = false, sarif = false, perfetto = false, speedscope = false, json = false;
  head_choice head;
  int kinds() const { return wheel + one_file + cpp + sarif + perfetto + speedscope; }
};

std::string name_of(const std::filesystem::path& folder) {
  std::string name;
  for (const char c : std::filesystem::absolute(folder).lexically_normal().filename().string())
    name += std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '_';
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ? "kernel_" + name : name;
}

/// The folder, the run.json or model_new.py in it, or a recorded run: its id, `last`, or a task's name.
bool on_disk(const std::string& result) {
  std::error_code ignored;
  return std::filesystem::exists(result, ignored);
}

std::filesystem::path folder_of(const std::string& result) {
  std::filesystem::path folder = result;
  if (folder.filename() == "run.json" || folder.filename() == "model_new.py") folder = folder.parent_path();
  if (folder.empty()) folder = ".";
  return folder.has_filename() ? folder : folder.parent_path();
}

expected<json> record_of(const export_settings& s) {
  if (!on_disk(s.result)) {
    auto run = read_stored_run(s.result, s.head);
    if (!run) return fail(run.error());
    return run_document(*run);
  }
  const auto file = folder_of(s.result) / "run.json";
  auto text = read_file(file);
  if (!text) return fail(text.error());
  return parse_json(*text, file.string());
}

/// A wheel, a Python file or a library: from the folder that the run left.
int export_code(terminal& out, const export_settings& s) {
  auto folder = folder_of(s.result);
  if (!on_disk(s.result)) {
    auto run = read_stored_run(s.result, s.head);
    if (!run) return report(out, run.error());
    folder = run->header.request.out_dir;
  }
  std::string python = find_program("python3");
  if (python.empty()) {
    auto found = find_python();
    if (!found) return report(out, found.error());
    python = found->executable;
  }
  const auto name = s.name.empty() ? name_of(folder) : s.name;
  const std::filesystem::path place = s.out.empty() ? folder / "export" : std::filesystem::path(s.out);
  const char* kind = s.wheel ? "wheel" : s.one_file ? "file" : "cpp";
  auto files = export_drop_in(kind, folder, place, name, python);
  if (!files) return report(out, files.error());
  out.result({{"kind", kind}, {"name", name}, {"files", *files}});
  for (const auto& file : *files) out.line("wrote " + file);
  out.line(s.wheel      ? "install: pip install " + files->front() + "; then: from " + name + " import ModelNew"
           : s.one_file ? "use: from " + name + " import ModelNew, wherever this file lies; evaluators that take a model's text take this one"
                        : "use: #include \"" + name + ".hpp\", " + name + "::forward(...); the example's first lines say how to build it");
  return 0;
}

/// A document of another tool's format: into the file that --out names, else beside run.json, else (of a run by its id) to where we are.
int export_document(terminal& out, const export_settings& s) {
  auto record = record_of(s);
  if (!record) return report(out, record.error());
  const auto document = s.sarif ? sarif_of(*record, s.file) : s.perfetto ? timeline_of(*record) : hot_lines_of(*record);
  if (!document) return report(out, document.error());
  const char* usual = s.sarif ? "findings.sarif" : s.perfetto ? "timeline.json" : "hot-lines.speedscope.json";
  const auto file = !s.out.empty() ? std::filesystem::path(s.out) : on_disk(s.result) ? folder_of(s.result) / usual : std::filesystem::path(usual);
  if (auto written = write_file_atomic(file, document->dump(1, ' ', true, json::error_handler_t::replace) + "\n"); !written) return report(out, written.error());
  out.result({{"kind", s.sarif ? "sarif" : s.perfetto ? "perfetto" : "speedscope"}, {"files", {file.string()}}});
  out.line("wrote " + file.string());
  if (s.sarif) {
    const auto& run = (*document)["runs"][0];
    const int elsewhere = run["properties"]["findings_without_line"];
    out.line(std::to_string(run["results"].size()) + " findings with a line" + (elsewhere ? "; " + std::to_string(elsewhere) + " that name none are left out" : ""));
  } else {
    out.line(s.perfetto ? "open it in https://ui.perfetto.dev or chrome://tracing; nothing is sent anywhere" : "open it in https://www.speedscope.app; nothing is sent anywhere");
  }
  return 0;
}

int run_export(const export_settings& s) {
  terminal out(s.json);
  if (s.kinds() != 1) return report(out, {ec::invalid_argument, "say one of --wheel, --one-file, --cpp, --sarif, --perfetto, --speedscope", "pragma export pragma-out/TASK --wheel"});
  return s.wheel || s.one_file || s.cpp ? export_code(out, s) : export_document(out, s);
}

} // namespace

void add_export(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("export", "a result as others take it: a wheel, one Python file, a library for C++, annotations, a timeline, hot lines");
  auto s = std::make_shared<export_settings>();
  s->file = "kernel.cpp";
  command->add_option("result", s->result, "folder of a result (pragma-out/TASK), or a run: its id, `last`, or a task's name")->required();
  command->add_flag("--wheel", s->wheel, "a wheel: pip install, then `from NAME import ModelNew`");
  command->add_flag("--one-file", s->one_file, "one Python file with all in it: what KernelBench's evaluator takes");
  command->add_flag("--cpp", s->cpp, "a header, a shared object and an example program");
  command->add_flag("--sarif", s->sarif, "SARIF 2.1.0: findings that name a source line, for code review and editors");
  command->add_flag("--perfetto", s->perfetto, "a timeline of the run for Perfetto: who did what, where and when");
  command->add_flag("--speedscope", s->speedscope, "hot lines of the attempts for Speedscope");
  command->add_option("--file", s->file, "with --sarif: the path of the kernel in your repository, as annotations name it")->capture_default_str();
  command->add_option("--name", s->name, "name of the package, file or library (default: the folder's)");
  command->add_option("--out", s->out, "folder for a wheel, Python file or library (default: RESULT/export); file for the others");
  command->add_flag("--json", s->json, "print the files as JSON");
  s->head.add_to(*command);
  command->footer("Example:\n  pragma export pragma-out/normalization_rms --wheel --name fast_rms\n  pragma export last --perfetto --out timeline.json\n  pragma export pragma-out/softmax --sarif --file kernels/softmax.cpp");
  command->callback([s, &chosen] { chosen = [s] { return run_export(*s); }; });
}

} // namespace pragma::cli
