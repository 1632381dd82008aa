// The compiled kernels of a drop-in for CUDA, beside their source (python/pragma_built.py).
#include "drop_in/drop_in.hpp"

#include "base/defaults.hpp"
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "devices/device_lease.hpp"
#include "execution/python_process.hpp"

#include <algorithm>
#include <cstdlib>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t most_binary_bytes = 64u << 20; ///< as pragma_built.py
constexpr size_t most_programs = 1000;

/// Files that the module's process left in `from`: taken over where their list names them. Their kernels' names.
expected<std::vector<std::string>> take_over(const fs::path& from, const fs::path& to) {
  auto text = read_file(from / "kernels.json", most_binary_bytes);
  if (!text) return fail(text.error());
  auto told = parse_json(*text, "the list of compiled kernels");
  if (!told) return fail(told.error());
  const auto strange = [] { return fail(ec::candidate_failed, "its list of compiled kernels is none"); };
  if (!told->is_object() || !told->contains("programs") || !(*told)["programs"].is_array() || (*told)["programs"].size() > most_programs) return strange();
  std::error_code failed;
  fs::create_directories(to, failed);
  if (failed) return fail(ec::io_error, "cannot create " + to.string() + ": " + failed.message());
  std::vector<std::string> names;
  for (const auto& p : (*told)["programs"]) {
    if (!p.is_object() || !p.contains("file") || !p["file"].is_string() || !p.contains("kernel") || !p["kernel"].is_string()) return strange();
    const fs::path file = p["file"].get<std::string>();
    if (file != file.filename() || file.extension() != ".cubin" || !fs::is_regular_file(fs::symlink_status(from / file, failed))) return strange();
    auto binary = read_file(from / file, most_binary_bytes);
    if (!binary) return fail(binary.error());
    if (auto written = write_file_atomic(to / file, *binary); !written) return fail(written.error());
    if (const auto name = printable(p["kernel"].get<std::string>()); std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (auto written = write_file_atomic(to / "kernels.json", *text); !written) return fail(written.error());
  return names;
}

} // namespace

expected<std::vector<std::string>> build_kernels(const fs::path& folder, const task& t, const drop_in_options& options) {
  const auto not_here = [](const std::string& why) { return fail(ec::unsupported, why); };
  if (options.device.backend != "cuda") return not_here("only kernels for CUDA are compiled beforehand");
  auto device = find_backend(options.device.backend);
  if (!device) return fail(device.error());
  if (const auto why = why_absent(*device); !why.empty()) return not_here(why);
  auto python = find_python();
  if (!python) return not_here(python.error().message);
  auto place = temp_dir::create("pragma-built-", 0711);
  if (!place) return fail(place.error());
  const auto files = place->path() / "files", scratch = place->path() / "scratch";
  if (auto copied = copy_drop_in(folder, files); !copied) return fail(copied.error());
  std::error_code failed;
  fs::create_directory(scratch, failed);
  if (failed) return fail(ec::io_error, "cannot prepare " + scratch.string() + ": " + failed.message());

  process_spec spec;
  sandbox_options sandbox;
  confine_python(*device, python->executable, scratch, options.threads, spec, sandbox);
  sandbox.readable.push_back(files);
  spec.argv = {python->executable, "-B", (files / "pragma_built.py").string(), files.string(), scratch.string()};
  if (const char* own = std::getenv("PYTHONUSERBASE")) spec.env.push_back({"PYTHONUSERBASE", own});
  else if (const char* home = std::getenv("HOME")) spec.env.push_back({"PYTHONUSERBASE", (fs::path(home) / ".local").string()});
  spec.env.push_back({"PRAGMA_DEVICE", device->torch_device + ":" + std::to_string(options.device.index)});
  spec.limits.wall_seconds = options.timeout_seconds + defaults::module_seconds_a_mib * static_cast<double>(fs::file_size(files / "kernel.py", failed)) / (1 << 20);
  spec.cancel = options.cancel;
  if (auto done = apply_sandbox(spec, sandbox); !done) return fail(done.error());
  const auto ran = [&] {
    const auto lease = lease_device(options.device, options.cancel);
    return run_process(spec);
  }();
  if (!ran) return fail(ran.error());
  if (!fs::exists(scratch / "built" / "kernels.json", failed)) return not_here("Triton's kernels could not be kept: " + trim(cut_lines(printable(ran->out + ran->err), 2, 6, 2000)));
  auto names = take_over(scratch / "built", folder / "built");
  // Who compiled them is the candidate's own process: what they compute is compared with Torch before anybody has them.
  auto right = names ? check_drop_in(folder, t, options) : expected<drop_in_result>(fail(names.error()));
  if (right) return names;
  fs::remove(folder / "built" / "kernels.json", failed);
  return fail(right.error());
}

} // namespace pragma
