// The compiled kernels of a drop-in for CUDA, beside their source (python/pragma_built.py).
#include "drop_in/drop_in.hpp"

#include "base/defaults.hpp"
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "devices/device_lease.hpp"
#include "drop_in/turn.hpp"
#include "execution/python_process.hpp"

#include <algorithm>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t most_binary_bytes = 64u << 20; ///< of all files, whose list each drop-in reads (as pragma_built.py, of one)
constexpr size_t most_programs = 1000;

/// No link, pipe or device that the module's process may have put there.
bool is_plain(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(fs::symlink_status(file, ignored));
}

/// Files that the module's process left in `from`: taken over where their list names them. Their kernels' names.
expected<std::vector<std::string>> take_over(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  if (!fs::is_directory(fs::symlink_status(from, failed)) || !is_plain(from / "kernels.json")) return fail(ec::candidate_failed, "its compiled kernels are no files");
  auto text = read_file(from / "kernels.json", most_binary_bytes);
  if (!text) return fail(text.error());
  auto told = parse_json(*text, "the list of compiled kernels");
  if (!told) return fail(told.error());
  const auto strange = [] { return fail(ec::candidate_failed, "its list of compiled kernels is none"); };
  if (!told->is_object() || !told->contains("programs") || !(*told)["programs"].is_array() || (*told)["programs"].size() > most_programs) return strange();
  fs::create_directories(to, failed);
  if (failed) return fail(ec::io_error, "cannot create " + to.string() + ": " + failed.message());
  std::vector<std::string> names;
  uint64_t bytes = 0;
  for (const auto& p : (*told)["programs"]) {
    if (!p.is_object() || !p.contains("file") || !p["file"].is_string() || !p.contains("kernel") || !p["kernel"].is_string()) return strange();
    const fs::path file = p["file"].get<std::string>();
    if (file != file.filename() || file.extension() != ".cubin" || !is_plain(from / file)) return strange();
    auto binary = read_file(from / file, most_binary_bytes - bytes);
    if (!binary) return fail(binary.error());
    bytes += binary->size();
    if (auto written = write_file_atomic(to / file, *binary); !written) return fail(written.error());
    if (const auto name = printable(p["kernel"].get<std::string>()); std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (auto written = write_file_atomic(to / "kernels.json", *text); !written) return fail(written.error());
  return names;
}

/// The list first: what it does not name is nothing to a drop-in.
void remove_kernels(const fs::path& built) {
  std::error_code ignored;
  fs::remove(built / "kernels.json", ignored);
  std::vector<fs::path> binaries;
  for (const auto& entry : fs::directory_iterator(built, ignored))
    if (entry.path().extension() == ".cubin") binaries.push_back(entry.path());
  for (const auto& file : binaries) fs::remove(file, ignored);
}

} // namespace

expected<std::vector<std::string>> make_kernels(const fs::path& folder, const drop_in_options& options) {
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
  if (auto confined = confine_python(*device, python->executable, scratch, options.threads, spec, sandbox); !confined) return not_here(confined.error().message);
  use_compiled(options.compiled, spec, sandbox);
  sandbox.readable.push_back(files);
  spec.argv = {python->executable, "-B", (files / "pragma_built.py").string(), files.string(), scratch.string()};
  say_user_base(spec);
  spec.env.push_back({"PRAGMA_DEVICE", device->torch_device + ":" + std::to_string(options.device.index)});
  spec.limits.wall_seconds = options.timeout_seconds + defaults::module_seconds_a_mib * static_cast<double>(fs::file_size(files / "kernel.py", failed)) / (1 << 20);
  spec.cancel = options.cancel;
  announce_turn(spec);
  if (auto done = apply_sandbox(spec, sandbox); !done) return fail(done.error());
  device_lease lease; // while Triton tunes
  const auto ran = run_in_turn(std::move(spec), [&](double) { lease = lease_device(options.device, options.cancel); });
  lease.unlock();
  if (!ran) return fail(ran.error());
  if (!fs::exists(scratch / "built" / "kernels.json", failed)) return not_here("Triton's kernels could not be kept: " + trim(cut_lines(printable(ran->out + ran->err), 2, 6, 2000)));
  auto names = take_over(scratch / "built", folder / "built");
  if (!names) remove_kernels(folder / "built");
  return names;
}

expected<std::vector<std::string>> build_kernels(const fs::path& folder, const task& t, const drop_in_options& options) {
  auto names = make_kernels(folder, options);
  if (!names) return names;
  // Who compiled them is the candidate's own process: what they compute is compared with Torch before anybody has them.
  const auto right = check_drop_in(folder, t, options);
  if (right) return names;
  remove_kernels(folder / "built");
  return fail(right.error());
}

} // namespace pragma
