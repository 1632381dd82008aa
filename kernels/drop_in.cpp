#include "kernels/reference.hpp"

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "kernels/allocator.hpp"
#include "kernels/landlock.hpp"
#include "kernels/python_process.hpp"

#include <algorithm>
#include <cstdlib>
#include <sys/random.h>
#include <thread>
#include <unistd.h>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr int unseen_seeds = 3;
constexpr uint64_t torch_address_space = 16ull << 30; ///< what its libraries reserve, beyond the memory that there is
constexpr uint64_t thread_address_space = 1ull << 30; ///< stacks and arenas of a core's threads
constexpr const char* tf32_note = "\nProducts of float32 may round their operands to TF32, as it was allowed (--allow-tf32).";

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

expected<void> write_triton_drop_in(const fs::path& folder, const task& t, const code_version& code, bool allow_tf32) {
  auto text = read_file(share_dir() / "python" / "model_new_triton_template.py");
  if (!text) return fail(text.error());
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return fail(ec::io_error, "cannot create " + folder.string() + ": " + failed.message());
  std::string name;
  for (char c : t.name) name += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ? c : '_';
  for (const auto& [file, content] : {std::pair<const char*, std::string>{"kernel.py", code.source},
                                      {"task_reference.py", t.source},
                                      {"model_new.py", replaced(replaced(*text, "@TASK@", name), " @TF32@", allow_tf32 ? tf32_note : "")}})
    if (auto written = write_file_atomic(folder / file, content); !written) return written;
  return {};
}

} // namespace

expected<void> write_drop_in(const fs::path& folder, const task& t, const code_version& code, int threads, bool allow_tf32) {
  if (code.language == "triton") return write_triton_drop_in(folder, t, code, allow_tf32);
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

namespace {

/// What belongs to the drop-in and nothing else of the user's folder.
expected<void> copy_drop_in(const fs::path& from, const fs::path& to, bool native) {
  std::vector<std::string> files = {"model_new.py", "task_reference.py", native ? "kernel.cpp" : "kernel.py"};
  if (native) files.push_back("pragma_kernel.h");
  for (const auto& file : files) {
    auto text = read_file(from / file);
    if (!text) return fail(text.error());
    if (auto written = put_readable(to / file, *text); !written) return written;
  }
  return {};
}

/// A winner in C++ lives in Torch's process here, with a compiler: more rights than the candidate had, and no more than a compiler has.
void confine_native(process_spec& spec, sandbox_options& sandbox) {
  sandbox.policy = sandbox_policy::compiler;
  for (const char* path : {"/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system"}) sandbox.readable.emplace_back(path); // Torch and OpenMP ask what the CPU is
  const uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
  spec.limits.processes = 2 * cores;
  spec.limits.memory_bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + torch_address_space + cores * thread_address_space;
}

/// A line of the check's, once the module has had a say: anything.
std::string text_of(const json& reply, const char* key) {
  return reply.is_object() && reply.contains(key) && reply[key].is_string() ? trim(cut_lines(printable(reply[key].get<std::string>()), 2, 6, 2000)) : "";
}

} // namespace

expected<std::string> check_drop_in(const fs::path& folder, const task& t, const drop_in_options& options) {
  const auto not_here = [](const std::string& why) { return fail(ec::unsupported, why); };
  auto device = find_backend(options.device.backend);
  if (!device) return fail(device.error());
  if (const auto why = why_absent(*device); !why.empty()) return not_here(why);
  const bool native = options.language != "triton";
  if (native && landlock::abi() == 0) return not_here("without Landlock (Linux 5.13) nothing would keep a kernel in Torch's process from this user's files");
  auto python = find_python();
  if (!python) return not_here(python.error().message);
  if (!t.deterministic) return std::string("not compared: the reference draws random numbers");

  auto place = temp_dir::create("pragma-drop-in-", 0711); // the sandbox's uid may not be able to read the user's folder
  if (!place) return fail(place.error());
  const auto files = place->path() / "files", task_file = place->path() / "task" / "task.py";
  const auto scratch = native ? files : place->path() / "scratch"; // kernel.cpp is compiled beside model_new.py
  if (auto copied = copy_drop_in(folder, files, native); !copied) return fail(copied.error());
  if (auto written = put_readable(task_file, t.source); !written) return fail(written.error());
  std::error_code failed;
  fs::create_directory(scratch, failed);
  if (failed) return fail(ec::io_error, "cannot prepare " + scratch.string() + ": " + failed.message());

  process_spec spec;
  sandbox_options sandbox;
  confine_python(*device, python->executable, scratch, 1, spec, sandbox);
  if (native) confine_native(spec, sandbox);
  for (const auto& path : {files, task_file.parent_path()}) sandbox.readable.push_back(path);
  spec.argv = {python->executable, "-B", (share_dir() / "python" / "check_drop_in.py").string(), task_file.string(), files.string(), json(tolerance_of(t)).dump()};
  for (int i = 0; i < unseen_seeds; ++i) {
    uint32_t seed = 0;
    if (::getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed)) return fail(ec::io_error, "no random numbers to be had");
    spec.argv.push_back(std::to_string(seed));
  }
  spec.env.push_back({"OPENBLAS_NUM_THREADS", "1"});
  spec.env.push_back({"GLIBC_TUNABLES", allocator_tunables});
  // find_python() imported Torch from wherever this user has it.
  if (const char* own = std::getenv("PYTHONUSERBASE")) spec.env.push_back({"PYTHONUSERBASE", own});
  else if (const char* home = std::getenv("HOME")) spec.env.push_back({"PYTHONUSERBASE", (fs::path(home) / ".local").string()});
  if (device->on_device()) spec.env.push_back({"PRAGMA_DEVICE", device->torch_device + ":" + std::to_string(options.device.index)});
  spec.env.push_back({"PRAGMA_TF32", options.allow_tf32 ? "1" : "0"});
  spec.limits.wall_seconds = options.timeout_seconds;
  spec.limits.cpu_seconds = static_cast<uint64_t>(options.timeout_seconds) * std::max(1u, std::thread::hardware_concurrency()) + 1;
  if (auto done = apply_sandbox(spec, sandbox); !done) return fail(done.error());
  auto ran = run_process(spec);
  if (!ran) return not_here("in the sandbox, " + ran.error().message); // as root: a Python that only root can reach

  const auto said = trim(cut_lines(printable(ran->err), 2, 6, 2000));
  const auto lines = split(ran->out, '\n');
  const auto begun = parse_json(lines.front(), "the drop-in's check");
  if (!begun || !begun->is_object() || !begun->contains("begun")) { // nothing of the winner has run yet
    const auto why = begun ? text_of(*begun, "absent") : "";
    return not_here(!why.empty() ? why : "Torch did not start in the sandbox (" + describe_end(*ran, options.timeout_seconds) + "): " + said);
  }
  const std::string where = (folder / "model_new.py").string();
  if (ran->timed_out) return fail(ec::timeout, where + ": no result after " + format_seconds(options.timeout_seconds));
  const auto reply = parse_json(lines.size() > 1 ? lines[1] : "", "the drop-in's check");
  if (!reply) return fail(ec::candidate_failed, where + " ended its process (" + describe_end(*ran) + "): " + said);
  const auto message = text_of(*reply, "message");
  const bool right = reply->is_object() && reply->value("ok", json()) == json(true);
  if (!right) return fail(ec::candidate_failed, where + ": " + (message.empty() ? "something else than the check's answer came back" : message));
  return message;
}

} // namespace pragma
