// The files of a drop-in, as a result folder has them.
#include "drop_in/drop_in.hpp"

#include "base/files.hpp"
#include "base/language.hpp"
#include "base/text.hpp"
#include "kernels/parts.hpp"
#include "kernels/task_types.hpp"

#include <algorithm>

namespace pragma {

namespace fs = std::filesystem;

namespace {

std::string tf32_note(const task& t, tf32_use allowed) {
  if (!rounds_to_tf32(t, allowed)) return "";
  return allowed == tf32_use::all ? "\nProducts of float32 may round their factors to TF32, as it was allowed (--tf32 all)."
                                  : "\nConvolutions round their factors to TF32 where Torch's own do; a program that switches that off (torch.backends.cudnn.allow_tf32 = False) has Torch's.";
}
/// What is the same in every drop-in: from the shared folder, and its name in the drop-in.
constexpr std::pair<const char*, const char*> shared_parts[] = {
  {"python/pragma_device.py", "pragma_device.py"},   {"python/pragma_built.py", "pragma_built.py"},
  {"python/pragma_drop_in.py", "pragma_drop_in.py"}, {"python/pragma_native.py", "pragma_native.py"},
  {"python/pragma_gradients.py", "pragma_gradients.py"}, {"python/pragma_operator.py", "pragma_operator.py"}, {"python/pragma_shell.py", "pragma_shell.py"},   {"python/pragma_watch.py", "pragma_watch.py"}, {"python/constants.py", "constants.py"},
  {"pragma_kernel.h", "pragma_kernel.h"},            {"drop_in/pragma_call.c", "pragma_call.c"},        {"drop_in/pragma_call_make.h", "pragma_call_make.h"}, {"drop_in/pragma_launch.h", "pragma_launch.h"},
  {"drop_in/pragma_call.abi3.so", "built/pragma_call.abi3.so"}};

/// ... and in one of parts.
constexpr std::pair<const char*, const char*> parts_files[] = {{"python/pragma_parts.py", "pragma_parts.py"}, {"python/replay.py", "replay.py"}};

std::string replaced(std::string text, std::string_view mark, const std::string& with) {
  const auto at = text.find(mark);
  return at == std::string::npos ? text : text.replace(at, mark.size(), with);
}

std::string plain(const std::string& text) {
  std::string name;
  for (char c : text) name += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ? c : '_';
  return name;
}

using contents = std::vector<std::pair<std::string, std::string>>;

expected<void> write_all(const fs::path& folder, const contents& files) {
  for (const auto& [file, content] : files) {
    std::error_code failed;
    fs::create_directories((folder / file).parent_path(), failed);
    if (failed) return fail(ec::io_error, "cannot create " + (folder / file).parent_path().string() + ": " + failed.message());
    if (auto written = write_file_atomic(folder / file, content); !written) return written;
  }
  return {};
}

/// In a raw triple-quoted Python string: JSON has its own escapes, and a quote run could only come from a name.
std::string settings_of(const task& t, const candidate& code, int threads, const device_rules& rules) {
  const std::string& device = rules.torch_device;
  json settings = {{"task", t.id},           {"inputs", t.inputs},         {"params", t.params},     {"outputs", t.outputs},
                         {"scalars", t.scalars},   {"constants", t.constants},   {"mutated", t.mutated},   {"updates", t.updates}, {"foreign", t.foreign}, {"deterministic", t.deterministic},
                         {"compiler", driver_name(code)}, {"flags", kernel_flags(code)}, {"device", device},
                         {"threads", device == "cpu" ? std::max(threads, 1) : 0},
                         {"by_handle", device != "cpu" && !rules.allow_torch},
                         {"rounds_convolutions", rules.tf32 == tf32_use::convolutions && rounds_to_tf32(t, rules.tf32)}};
  if (code.language == parts_language)
    for (const char* key : {"compiler", "flags", "by_handle"}) settings.erase(key);
  std::string encoded = settings.dump(1, ' ', true);
  for (size_t at = 0; (at = encoded.find("\"\"\"", at)) != std::string::npos;) encoded.replace(at, 3, "\" \"\"");
  return encoded;
}

} // namespace

std::string driver_name(const candidate& code) { return code.compiler.rfind("clang", 0) == 0 ? "clang++" : "g++"; }

std::vector<std::string> kernel_flags(const candidate& code) {
  // The same base flags as the verified build (execution/build.cpp), so that it is the same kernel.
  std::vector<std::string> all = {"-std=c++20", "-O2", driver_name(code) == "clang++" ? "-fopenmp-simd" : "-fopenmp"};
  const auto sets_level = [](const std::string& flag) { return flag.starts_with("-O"); };
  if (std::any_of(code.flags.begin(), code.flags.end(), sets_level)) std::erase_if(all, sets_level); // the last one counts: say that one only
  all.insert(all.end(), code.flags.begin(), code.flags.end());
  return all;
}

namespace {

std::string mutated_note(const task& t) {
  if (t.mutated.empty()) return {};
  if (!t.updates.empty()) return "\nModel.forward updates " + join(t.mutated, ", ") + ", and so does ModelNew; with ModelNew(..., keep_buffers=True) they keep their values.";
  return "\nModel.forward updates " + join(t.mutated, ", ") + ", which the kernel does not: Torch computes, unless ModelNew(..., keep_buffers=True) lets them keep their values.";
}

template <size_t n> expected<void> add_shared(contents& files, const std::pair<const char*, const char*> (&parts)[n]) {
  for (const auto& [from, to] : parts) {
    auto part = read_file(share_dir() / from);
    if (!part) return fail(part.error());
    files.emplace_back(to, std::move(*part));
  }
  return {};
}

/// Each kernel is a drop-in of its own; what is done between them is parts.json.
expected<void> write_parts(const fs::path& folder, const parts& p, int threads, const device_rules& rules, contents& files) {
  json names = json::array();
  for (size_t i = 0; i < p.regions.size(); ++i) {
    const auto& r = p.regions[i];
    if (auto written = write_drop_in(folder / "parts" / std::to_string(i + 1), r.task, r.code, threads, rules); !written) return written;
    json params = json::array();
    for (size_t k = 0; k < r.params.size() && k < r.task.params.size(); ++k) params.push_back({r.task.params[k].name, r.params[k]});
    names.push_back(std::move(params));
  }
  const json told = {{"inputs", p.inputs}, {"params", p.params}, {"foreign", p.foreign}, {"constants", p.constants}, {"outputs", p.outputs}, {"steps", p.steps}, {"regions", names}};
  files.emplace_back("parts.json", told.dump() + "\n");
  return add_shared(files, parts_files);
}

} // namespace

expected<void> write_drop_in(const fs::path& folder, const task& t, const candidate& code, int threads, const device_rules& rules) {
  const bool of_parts = code.language == parts_language, native = !of_parts && !in_python(code.language);
  bool on_processor = native;
  auto text = read_file(share_dir() / "python" / (of_parts ? "model_new_parts_template.py" : native ? "model_new_template.py" : "model_new_triton_template.py"));
  if (!text) return fail(text.error());
  contents files = {{"task_reference.py", t.source}};
  if (of_parts) {
    auto p = parts_of(code);
    if (!p) return fail(p.error());
    on_processor = !in_python(language_of(*p));
    if (auto written = write_parts(folder, *p, threads, rules, files); !written) return written;
  } else {
    files.emplace_back(native ? "kernel.cpp" : "kernel.py", code.source);
  }
  if (auto added = add_shared(files, shared_parts); !added) return added;
  std::string module = replaced(*text, "@TASK@", plain(t.name));
  for (size_t id = 0; (id = module.find("@ID@", id)) != std::string::npos;) module = replaced(module, "@ID@", plain(t.id.substr(0, 12)));
  module = replaced(module, " @MUTATED@", mutated_note(t));
  module = replaced(module, " @TF32@", tf32_note(t, rules.tf32));
  module = replaced(module, "@SETTINGS@", settings_of(t, code, threads, on_processor ? device_rules{"cpu"} : rules)); // last: it holds the user's text
  files.emplace_back("model_new.py", std::move(module));
  std::error_code ignored;
  fs::remove(folder / "built" / "kernels.json", ignored); // an earlier kernel's
  const bool ours = fs::exists(folder / "pragma_drop_in.py", ignored);
  if (auto written = write_all(folder, files); !written) return written;
  for (const char* kernel : {"kernel.cpp", "kernel.py"}) // an earlier one of another language, where this was a drop-in before
    if (ours && std::none_of(files.begin(), files.end(), [&](const auto& file) { return file.first == kernel; })) fs::remove(folder / kernel, ignored);
  return {};
}

std::vector<std::string> drop_in_files(const fs::path& folder) {
  std::vector<std::string> found;
  const auto add = [&](const char* name) {
    if (std::error_code ignored; fs::is_regular_file(folder / name, ignored)) found.emplace_back(name);
  };
  for (const char* name : {"model_new.py", "task_reference.py", "kernel.cpp", "kernel.py"}) add(name);
  for (const auto& [from, to] : shared_parts) add(to); // one of an earlier version has not all of today's
  if (std::error_code none; fs::is_regular_file(folder / "parts.json", none)) {
    found.emplace_back("parts.json");
    for (const auto& [from, to] : parts_files) found.emplace_back(to);
    for (int part = 1; fs::is_regular_file(folder / "parts" / std::to_string(part) / "model_new.py", none); ++part)
      for (const auto& file : drop_in_files(folder / "parts" / std::to_string(part))) found.push_back("parts/" + std::to_string(part) + "/" + file);
  }
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder / "built", ignored)) {
    const auto name = entry.path().filename().string();
    const auto kind = entry.path().extension();
    if (name == "objects.json" || (name.rfind("kernel-", 0) == 0 && kind == ".so") || name == "kernels.json" || kind == ".cubin") found.push_back("built/" + name);
  }
  return found;
}

} // namespace pragma
