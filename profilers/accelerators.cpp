#include "profilers/accelerators.hpp"

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "reference/python_search.hpp"
#include "reference/reference.hpp"
#include "profilers/by_manifest.hpp"

#include <algorithm>

namespace pragma {

namespace {

constexpr double probe_seconds = 120; ///< Torch and the driver on a cold disk: as long as a reference process may take

/// What describe_devices.py prints, into `status`. A line that is no JSON (a library's warning) says nothing about devices.
void read_lines(const std::string& text, const std::string& torch_device, accelerator_status& status) {
  bool told = false;
  std::string built_for;
  for (const auto& line : split(text, '\n')) {
    if (!line.starts_with('{')) continue;
    const auto value = parse_json(line, "a device");
    if (!value) continue;
    if (!told) {
      told = true;
      status.python = value->value("python", "");
      status.torch = value->value("torch", "");
      status.triton = value->value("triton", "");
      status.problem = value->value("problem", "");
      built_for = value->value("built_for", "");
      continue;
    }
    auto limits = from_json_value<machine_limits>(*value, "a device");
    if (!limits) continue;
    accelerator found;
    found.where = {status.backend, value->value("index", 0)};
    found.limits = std::move(*limits);
    found.limits.backend = status.backend;
    found.limits.cores = found.limits.compute_units;
    status.devices.push_back(std::move(found));
  }
  // Torch's ROCm build calls its devices cuda: with both drivers loaded, one Torch must not count for both.
  if (const auto other = built_for.empty() || built_for == status.backend ? expected<backend>(fail(ec::not_found, "")) : find_backend(built_for);
      other && other->torch_device == torch_device) {
    status.devices.clear();
    status.problem = "torch " + status.torch + " is built for " + built_for;
  }
  if (status.devices.empty() && status.problem.empty()) status.problem = "torch " + status.torch + " finds no such device";
}

} // namespace

accelerator_status probe_accelerators(const backend& b, const std::vector<json>& registered, const std::atomic<bool>* cancel) {
  accelerator_status status;
  status.backend = b.name;
  status.title = b.title;
  status.absent = why_absent(b);
  if (!b.on_device() || !status.absent.empty()) return status;
  std::vector<std::string> problems;
  for (const auto& m : manifests_for(b.name, registered, &problems)) status.profilers.push_back(manifest_status(m));
  for (const auto& why : problems) status.profilers.push_back({"manifest", false, "", why, ""});
  const auto python = likely_python();
  if (python.executable.empty()) {
    status.problem = "no Python with Torch: " + join(python.rejected, "; ");
    return status;
  }
  status.executable = python.executable;
  process_spec spec;
  spec.argv = {python.executable, (share_dir() / "python" / "describe_devices.py").string(), b.torch_device};
  spec.env = {{"PYTHONDONTWRITEBYTECODE", "1"}, {"OMP_NUM_THREADS", "1"}};
  spec.limits.wall_seconds = probe_seconds;
  spec.cancel = cancel;
  const auto ran = run_process(spec);
  if (!ran || !ran->ok()) {
    const auto said = ran ? split(trim(printable(ran->err)), '\n').back() : std::string();
    status.problem = python.executable + " could not be asked for its devices: " + (ran ? describe_end(*ran, probe_seconds) : ran.error().message) + (said.empty() ? "" : ": " + said);
    return status;
  }
  read_lines(ran->out, b.torch_device, status);
  for (auto& device : status.devices) {
    device.state = device_state(b, device.where.index);
    if (auto known = known_limits(device.where, device.limits.cpu, status.torch)) {
      device.limits = std::move(*known);
      device.measured = true;
    }
  }
  return status;
}

std::vector<std::string> facts_of(const accelerator& device) {
  const auto& l = device.limits;
  std::vector<std::string> facts;
  if (!l.arch.empty()) facts.push_back(l.arch);
  if (l.compute_units > 0) facts.push_back(std::to_string(l.compute_units) + " compute units");
  if (!l.cache_bytes.empty() && l.cache_bytes.back() > 0) facts.push_back("L2 " + format_bytes(static_cast<double>(l.cache_bytes.back())));
  if (device.measured && !l.read_gbs.empty())
    facts.push_back("memory " + format_number(l.read_gbs.back(), 1) + " GB/s and " + format_number(l.peak_gflops, 0) + " GFLOP/s (float32), measured");
  if (!device.state.empty()) facts.push_back("state " + device.state);
  return facts;
}

} // namespace pragma
