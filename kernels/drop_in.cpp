#include "kernels/reference.hpp"

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "kernels/allocator.hpp"

#include <algorithm>
#include <sys/random.h>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr int unseen_seeds = 3;

std::string replaced(std::string text, std::string_view mark, const std::string& with) {
  const auto at = text.find(mark);
  return at == std::string::npos ? text : text.replace(at, mark.size(), with);
}

double tolerance_of(const task& t) {
  if (t.tolerance > 0) return t.tolerance;
  double tolerance = 0;
  for (const auto& out : t.outputs) {
    double own = 0;
    if (out.dtype == dtype::float32) own = defaults::tolerance_float32;
    if (out.dtype == dtype::float64) own = defaults::tolerance_float64;
    if (out.dtype == dtype::float16) own = defaults::tolerance_float16;
    if (out.dtype == dtype::bfloat16) own = defaults::tolerance_bfloat16;
    tolerance = std::max(tolerance, own);
  }
  return tolerance > 0 ? tolerance : defaults::tolerance_float32;
}

expected<void> write_triton_drop_in(const fs::path& folder, const task& t, const code_version& code) {
  auto text = read_file(share_dir() / "python" / "model_new_triton_template.py");
  if (!text) return fail(text.error());
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return fail(ec::io_error, "cannot create " + folder.string() + ": " + failed.message());
  std::string name;
  for (char c : t.name) name += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ? c : '_';
  for (const auto& [file, content] : {std::pair<const char*, std::string>{"kernel.py", code.source},
                                      {"task_reference.py", t.source},
                                      {"model_new.py", replaced(*text, "@TASK@", name)}})
    if (auto written = write_file_atomic(folder / file, content); !written) return written;
  return {};
}

} // namespace

expected<void> write_drop_in(const fs::path& folder, const task& t, const code_version& code, int threads) {
  if (code.language == "triton") return write_triton_drop_in(folder, t, code);
  auto text = read_file(share_dir() / "python" / "model_new_template.py");
  if (!text) return fail(text.error());
  auto header = read_file(share_dir() / "pragma_kernel.h");
  if (!header) return fail(header.error());
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return fail(ec::io_error, "cannot create " + folder.string() + ": " + failed.message());

  const bool clang = code.compiler.rfind("clang", 0) == 0;
  // The same base flags as the verified build (kernels/build.cpp), so that it is the same kernel.
  std::vector<std::string> all = {"-std=c++20", "-O2", clang ? "-fopenmp-simd" : "-fopenmp"};
  all.insert(all.end(), code.flags.begin(), code.flags.end());
  const json settings = {{"task", t.id},       {"inputs", t.inputs},   {"params", t.params}, {"outputs", t.outputs},
                         {"scalars", t.scalars}, {"compiler", clang ? "clang++" : "g++"}, {"flags", all}, {"threads", std::max(threads, 1)}};
  // In a raw triple-quoted Python string: JSON has its own escapes, and a quote run could only come from a name.
  std::string encoded = settings.dump(1, ' ', true);
  for (size_t at = 0; (at = encoded.find("\"\"\"", at)) != std::string::npos;) encoded.replace(at, 3, "\" \"\"");
  const std::string mutated =
    t.mutated.empty() ? "" : "\nUnlike Model it does not update " + join(t.mutated, ", ") + ": they keep the values that they were given.";
  std::string name;
  for (char c : t.name) name += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ? c : '_';
  std::string module = replaced(*text, "@TASK@", name);
  module = replaced(module, " @MUTATED@", mutated);
  module = replaced(module, "@SETTINGS@", encoded);
  for (const auto& [file, content] : {std::pair<const char*, const std::string&>{"pragma_kernel.h", *header},
                                      {"kernel.cpp", code.source},
                                      {"task_reference.py", t.source},
                                      {"model_new.py", module}})
    if (auto written = write_file_atomic(folder / file, content); !written) return written;
  return {};
}

expected<std::string> check_drop_in(const fs::path& folder, const task& t, const device_choice& device, double timeout_seconds) {
  auto python = find_python();
  if (!python) return fail(python.error());
  if (!t.deterministic) return std::string("not compared: the reference draws random numbers");
  process_spec spec;
  spec.argv = {python->executable, (share_dir() / "python" / "check_drop_in.py").string(), t.path, fs::absolute(folder).string(),
               json(tolerance_of(t)).dump()};
  for (int i = 0; i < unseen_seeds; ++i) {
    uint32_t seed = 0;
    if (::getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed)) return fail(ec::io_error, "no random numbers to be had");
    spec.argv.push_back(std::to_string(seed));
  }
  spec.env = {{"OMP_NUM_THREADS", "1"}, {"OPENBLAS_NUM_THREADS", "1"}, {"PYTHONDONTWRITEBYTECODE", "1"},
              {"GLIBC_TUNABLES", allocator_tunables}};
  if (const auto b = find_backend(device.backend); b && b->on_device())
    spec.env.push_back({"PRAGMA_DEVICE", b->torch_device + ":" + std::to_string(device.index)});
  spec.limits.wall_seconds = timeout_seconds;
  auto ran = run_process(spec);
  if (!ran) return fail(ran.error());
  const std::string where = (folder / "model_new.py").string();
  if (ran->timed_out) return fail(ec::timeout, where + ": no result after " + format_seconds(timeout_seconds));
  auto reply = parse_json(trim(ran->out), "the drop-in's check");
  if (!reply)
    return fail(ec::candidate_failed, where + " ended its process (" + describe_end(*ran) + "): " +
                                        trim(cut_lines(printable(ran->err), 2, 6, 2000)));
  const std::string message = reply->value("message", "");
  if (!reply->value("ok", false)) return fail(ec::candidate_failed, where + ": " + message);
  return message;
}

} // namespace pragma
