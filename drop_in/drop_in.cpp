#include "drop_in/drop_in.hpp"

#include "base/defaults.hpp"
#include "base/files.hpp"
#include "base/language.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "devices/device_lease.hpp"
#include "drop_in/turn.hpp"
#include "sandbox/allocator.hpp"
#include "sandbox/landlock.hpp"
#include "sandbox/torch_threads.hpp"
#include "execution/python_process.hpp"

#include <algorithm>
#include <cstdlib>
#include <sys/random.h>
#include <thread>
#include <unistd.h>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr double seconds_a_byte = 180.0 / (1u << 30); ///< of a task, on top of its time limit: Torch in float64, other batches and types, all slow on a busy machine
constexpr double seconds_an_operation = 1e-9;
constexpr double torch_compile_seconds = 600;         ///< for torch.compile and its autotuning, on a busy machine
constexpr uint64_t torch_address_space = 16ull << 30; ///< what its libraries reserve, beyond the memory that there is
constexpr uint64_t thread_address_space = 1ull << 30; ///< stacks and arenas of a core's threads
constexpr const char* without_gradients = " under no_grad"; ///< behind a protocol's name, where memory did not suffice
constexpr size_t lines_of_ours = 2; ///< of its output: before anything of the winner is loaded

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

std::vector<double> seconds_of(const json& reply, const char* key) {
  std::vector<double> found;
  if (reply.is_object() && reply.contains(key) && reply[key].is_array())
    for (const auto& value : reply[key])
      if (value.is_number() && value.get<double>() > 0) found.push_back(value.get<double>());
  return found;
}

std::string text_of(const json& reply, const char* key) {
  return reply.is_object() && reply.contains(key) && reply[key].is_string() ? trim(cut_lines(printable(reply[key].get<std::string>()), 2, 6, 2000)) : "";
}

/// Of all protocols; nothing where one of them lacks either side. `alone`: what was said of each before the winner was loaded.
std::vector<called_times> times_of(const json& reply, std::vector<called_times> alone) {
  const auto said = reply.is_object() ? reply.value("times", json::array()) : json::array();
  if (!said.is_array() || said.size() != alone.size()) return {};
  for (size_t i = 0; i < said.size(); ++i) {
    if (text_of(said[i], "protocol") == alone[i].protocol + without_gradients) alone[i].protocol += without_gradients;
    alone[i].torch_seconds = seconds_of(said[i], "torch_seconds");
    alone[i].drop_in_seconds = seconds_of(said[i], "drop_in_seconds");
    if (alone[i].torch_seconds.empty() || alone[i].drop_in_seconds.empty()) return {};
  }
  return alone;
}

/// A winner in C++ lives in Torch's process here, with a compiler: more rights than the candidate had, and no more than a compiler has.
void confine_native(process_spec& spec, sandbox_options& sandbox) {
  sandbox.policy = sandbox_policy::compiler;
  for (const char* path : {"/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system"}) sandbox.readable.emplace_back(path); // Torch and OpenMP ask what the CPU is
  const uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
  spec.limits.processes = 4 * cores; // threads: those of OpenMP, of OpenBLAS and of Torch's own pool
  spec.limits.memory_bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + torch_address_space + cores * thread_address_space;
}

std::vector<std::pair<std::string, std::string>> settings_of(const drop_in_options& options) {
  return {{"PRAGMA_TF32", json(options.tf32).get<std::string>()}, {"PRAGMA_BASELINE", options.baseline}, {"PRAGMA_ONCE_MORE", options.once_more ? "1" : "0"}};
}

/// A folder that the process may write, with what torch.compile has made elsewhere. That makes it quicker, no more: what cannot be copied is compiled again.
expected<void> prepare(const fs::path& scratch, const fs::path& torch_compiled) {
  std::error_code failed;
  fs::create_directory(scratch, failed);
  if (failed) return fail(ec::io_error, "cannot prepare " + scratch.string() + ": " + failed.message());
  const auto copy = scratch / inductor_folder;
  if (torch_compiled.empty() || !fs::is_directory(torch_compiled, failed)) return {};
  fs::copy(torch_compiled, copy, fs::copy_options::recursive | fs::copy_options::skip_symlinks, failed);
  if (failed) fs::remove_all(copy, failed); // half of a library would end the process
  give_to_generated_code(copy);
  return {};
}

/// What it says while nothing of the winner is loaded: {"begun": ...}, then {"alone": [{"protocol", "flushed", "seconds" of a call of Model}]}, which is returned. Where one is missing:
/// why (empty: it did not say).
tl::expected<std::vector<called_times>, std::string> model_alone(const std::vector<std::string>& lines) {
  std::vector<called_times> found;
  for (size_t i = 0; i < lines_of_ours; ++i) {
    const char* key = i == 0 ? "begun" : "alone";
    const auto said = i < lines.size() ? parse_json(lines[i], "the drop-in's check") : json::object();
    if (!said || !said->is_object() || !said->contains(key)) return tl::unexpected<std::string>(said ? text_of(*said, "absent") : "");
    if (i > 0)
      for (const auto& one : (*said)[key]) found.push_back({text_of(one, "protocol"), one.value("flushed", false), one.value("seconds", 0.0), {}, {}});
  }
  return found;
}

/// The lines behind those: which call it is in, then the answer.
struct course {
  bool calling = false;
  std::string answer;                 ///< the first line that is neither "calling" nor "called"
};
course course_of(const std::vector<std::string>& lines) {
  course c;
  for (size_t i = lines_of_ours; i < lines.size(); ++i) {
    const auto read = parse_json(lines[i], "the drop-in's check");
    const bool calling = read && *read == json{{"calling", true}};
    if (!calling && !(read && *read == json{{"called", true}})) {
      c.answer = lines[i];
      break;
    }
    c.calling = calling;
  }
  return c;
}

} // namespace

expected<void> copy_drop_in(const fs::path& from, const fs::path& to) {
  for (const auto& file : drop_in_files(from)) {
    auto text = read_file(from / file);
    if (!text) return fail(text.error());
    if (auto written = put_readable(to / file, *text); !written) return written;
  }
  return {};
}

expected<drop_in_result> check_drop_in(const fs::path& folder, const task& t, const drop_in_options& options) {
  const auto not_here = [](const std::string& why) { return fail(ec::unsupported, why); };
  auto device = find_backend(options.device.backend);
  if (!device) return fail(device.error());
  if (const auto why = why_absent(*device); !why.empty()) return not_here(why);
  const bool native = !in_python(options.language);
  if (native && landlock::abi() == 0) return not_here("without Landlock (Linux 5.13) nothing would keep a kernel in Torch's process from this user's files");
  auto python = find_python();
  if (!python) return not_here(python.error().message);

  auto place = temp_dir::create("pragma-drop-in-", 0711); // the sandbox's uid may not be able to read the user's folder
  if (!place) return fail(place.error());
  const auto files = place->path() / "files", task_file = place->path() / "task" / "task.py";
  const auto scratch = native ? files : place->path() / "scratch"; // kernel.cpp is compiled beside model_new.py
  if (auto copied = copy_drop_in(folder, files); !copied) return fail(copied.error());
  if (auto written = put_readable(task_file, t.source); !written) return fail(written.error());
  if (auto ready = prepare(scratch, options.torch_compiled); !ready) return fail(ready.error());

  process_spec spec;
  sandbox_options sandbox;
  if (auto confined = confine_python(*device, python->executable, scratch, options.threads, spec, sandbox); !confined) return not_here(confined.error().message + "; " + confined.error().hint);
  auto scripts = readable_scripts();
  if (!scripts) return fail(scripts.error());
  if (native) confine_native(spec, sandbox);
  else use_compiled(options.compiled, spec, sandbox);
  for (const auto& path : {files, task_file.parent_path()}) sandbox.readable.push_back(path);
  spec.argv = {python->executable, "-B", (*scripts / "check_drop_in.py").string(), task_file.string(), files.string(), json(tolerance_of(t)).dump(), json(t.tolerance).dump(), json(options.measure_seconds).dump()};
  for (int i = 0; i < options.seeds; ++i) {
    uint32_t seed = 0;
    if (::getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed)) return fail(ec::io_error, "no random numbers to be had");
    spec.argv.push_back(std::to_string(seed));
  }
  for (const auto& [name, value] : environment_of_threads(options.threads))
    if (name != "OMP_NUM_THREADS") spec.env.push_back({name, value}); // confine_python() said it
  spec.env.push_back({"GLIBC_TUNABLES", program_tunables});
  say_user_base(spec);
  if (device->on_device()) spec.env.push_back({"PRAGMA_DEVICE", device->torch_device + ":" + std::to_string(options.device.index)});
  announce_turn(spec);
  for (const auto& [name, value] : settings_of(options)) spec.env.push_back({name, value});
  const double limit = options.timeout_seconds + t.bytes * seconds_a_byte + t.flops * seconds_an_operation + module_seconds(files) + (options.baseline == "eager" ? 0 : torch_compile_seconds);
  spec.limits.wall_seconds = limit;
  spec.cancel = options.cancel;
  spec.limits.cpu_seconds = static_cast<uint64_t>(limit) * std::max(1u, std::thread::hardware_concurrency()) + 1;
  if (auto done = apply_sandbox(spec, sandbox); !done) return fail(done.error());
  device_lease lease;
  const std::function<void(double)> alone = [&](double) { lease = lease_device(options.device, options.cancel); }; // of a CPU it holds nothing
  auto ran = run_in_turn(std::move(spec), options.begin ? options.begin : alone);
  lease.unlock();
  if (!ran) return not_here("in the sandbox, " + ran.error().message);

  if (ran->cancelled) return fail(ec::interrupted, "trying the drop-in was interrupted");
  const auto said = trim(cut_lines(printable(ran->err), 2, 6, 2000));
  const auto lines = split(ran->out, '\n');
  const auto alone_said = model_alone(lines);
  if (!alone_said) { // nothing of the winner has run yet
    if (!alone_said.error().empty()) return not_here(alone_said.error());
    return not_here("Torch did not come as far as Model in the sandbox (" + describe_end(*ran, limit) + "): " + said);
  }
  const std::string where = (folder / "model_new.py").string();
  const auto seen = course_of(lines);
  if (ran->timed_out) {
    const std::string no_result = "no result after " + format_seconds(limit);
    if (!seen.calling) return not_here(no_result + " of comparing with Torch: the task is slow here, or the machine is busy");
    return fail(ec::timeout, where + ": " + no_result + ", in a call of the drop-in");
  }
  const auto reply = parse_json(seen.answer, "the drop-in's check");
  if (!reply) return fail(error{ec::candidate_failed, where + " ended its process (" + describe_end(*ran) + ")" + (said.empty() ? "" : ": " + said), "", ran->out_of_memory ? cause::out_of_memory : cause::unknown});
  const auto message = text_of(*reply, "message");
  const bool right = reply->is_object() && reply->value("ok", json()) == json(true);
  if (!right) {
    error wrong{ec::candidate_failed, where + ": " + (message.empty() ? "something else than the check's answer came back" : message), "", cause::unknown};
    if (reply->is_object() && reply->value("no_memory", json()) == json(true)) wrong.why = cause::out_of_memory;
    return fail(std::move(wrong));
  }
  auto numbers = from_json_value<called_numbers>(reply->value("numbers", json::object()), "the drop-in's numbers").value_or(called_numbers{});
  return drop_in_result{message, numbers, times_of(*reply, *alone_said), text_of(*reply, "not_timed")};
}

} // namespace pragma
