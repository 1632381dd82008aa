// pragma export: a result as others take it, a wheel or a library for C++.
#include "cli/commands.hpp"
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
  std::string result, name, out;
  bool wheel = false, cpp = false, json = false;
};

std::string name_of(const std::filesystem::path& folder) {
  std::string name;
  for (const char c : std::filesystem::absolute(folder).lexically_normal().filename().string())
    name += std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '_';
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ? "kernel_" + name : name;
}

int run_export(const export_settings& s) {
  terminal out(s.json);
  if (s.wheel == s.cpp) return report(out, {ec::invalid_argument, "say --wheel or --cpp", "pragma export pragma-out/TASK --wheel"});
  std::filesystem::path folder = s.result;
  if (folder.filename() == "run.json" || folder.filename() == "model_new.py") folder = folder.parent_path();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::string python = find_program("python3");
  if (python.empty()) {
    auto found = find_python();
    if (!found) return report(out, found.error());
    python = found->executable;
  }
  const auto name = s.name.empty() ? name_of(folder) : s.name;
  const std::filesystem::path place = s.out.empty() ? folder / "export" : std::filesystem::path(s.out);
  auto files = export_drop_in(s.wheel ? "wheel" : "cpp", folder, place, name, python);
  if (!files) return report(out, files.error());
  out.result({{"kind", s.wheel ? "wheel" : "cpp"}, {"name", name}, {"files", *files}});
  for (const auto& file : *files) out.line("wrote " + file);
  out.line(s.wheel ? "install: pip install " + files->front() + "; then: from " + name + " import ModelNew"
                   : "use: #include \"" + name + ".hpp\", " + name + "::forward(...); the example's first lines say how to build it");
  return 0;
}

} // namespace

void add_export(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("export", "a result as others take it: an installable wheel, or a library for C++");
  auto s = std::make_shared<export_settings>();
  command->add_option("result", s->result, "folder of a result (pragma-out/TASK)")->required();
  command->add_flag("--wheel", s->wheel, "a wheel: pip install, then `from NAME import ModelNew`");
  command->add_flag("--cpp", s->cpp, "a header, a shared object and an example program");
  command->add_option("--name", s->name, "name of the package or library (default: the folder's)");
  command->add_option("--out", s->out, "folder for the files (default: RESULT/export)");
  command->add_flag("--json", s->json, "print the files as JSON");
  command->footer("Example:\n  pragma export pragma-out/normalization_rms --wheel --name fast_rms");
  command->callback([s, &chosen] { chosen = [s] { return run_export(*s); }; });
}

} // namespace pragma::cli
