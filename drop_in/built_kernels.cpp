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

/// Each folder on the way is one, and no link that the module's process may have put there.
bool is_folder_in(const fs::path& scratch, const fs::path& place) {
  std::error_code ignored;
  auto at = scratch;
  for (const auto& name : place)
    if (at /= name; !fs::is_directory(fs::symlink_status(at, ignored))) return false;
  return true;
}

/// Files that the module's process left in `place` of its scratch folder: taken over into that of the drop-in where their list names them. Their kernels' names.
expected<std::vector<std::string>> take_over(const fs::path& scratch, const fs::path& folder, const fs::path& place) {
  std::error_code failed;
  const auto from = scratch / place, to = folder / place;
  if (!is_folder_in(scratch, place) || !is_plain(from / "kernels.json")) return fail(ec::candidate_failed, "its compiled kernels are no files");
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

/// Where kernels lie in a drop-in: its own folder, or those of its parts.
std::vector<fs::path> places_of(const fs::path& folder) {
  std::vector<fs::path> places;
  std::error_code none;
  for (int part = 1; fs::is_regular_file(folder / "parts" / std::to_string(part) / "kernel.py", none); ++part) places.push_back(fs::path("parts") / std::to_string(part));
  return places.empty() ? std::vector<fs::path>{"."} : places;
}

/// The list first: what it does not name is nothing to a drop-in.
void remove_kernels(const fs::path& folder) {
  for (const auto& place : places_of(folder)) {
    const auto built = folder / place / "built";
    std::error_code ignored;
    fs::remove(built / "kernels.json", ignored);
    std::vector<fs::path> binaries;
    for (const auto& entry : fs::directory_iterator(built, ignored))
      if (entry.path().extension() == ".cubin") binaries.push_back(entry.path());
    for (const auto& file : binaries) fs::remove(file, ignored);
  }
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
  spec.limits.wall_seconds = options.timeout_seconds + module_seconds(files);
  spec.cancel = options.cancel;
  announce_turn(spec);
  if (auto done = apply_sandbox(spec, sandbox); !done) return fail(done.error());
  device_lease lease; // while Triton tunes
  const auto ran = run_in_turn(std::move(spec), [&](double) { lease = lease_device(options.device, options.cancel); });
  lease.unlock();
  if (!ran) return fail(ran.error());
  std::vector<std::string> names;
  for (const auto& part : places_of(folder)) {
    if (!fs::exists(scratch / part / "built" / "kernels.json", failed)) continue; // the kernels of this part could not be kept: it compiles where it runs
    auto taken = take_over(scratch, folder, part / "built");
    if (!taken) {
      remove_kernels(folder);
      return taken;
    }
    for (auto& name : *taken)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  if (names.empty()) return not_here("Triton's kernels could not be kept: " + trim(cut_lines(printable(ran->out + ran->err), 2, 6, 2000)));
  return names;
}

expected<std::vector<std::string>> build_kernels(const fs::path& folder, const task& t, const drop_in_options& options) {
  auto names = make_kernels(folder, options);
  if (!names) return names;
  // Who compiled them is the candidate's own process: what they compute is compared with Torch before anybody has them.
  const auto right = check_drop_in(folder, t, options);
  if (right) return names;
  remove_kernels(folder);
  return fail(right.error());
}

} // namespace pragma
