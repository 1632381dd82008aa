#include "cli/device_text.hpp"

#include "base/text.hpp"
#include "cli/terminal.hpp"

namespace pragma::cli {

namespace {

std::string bytes_text(int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

} // namespace

std::vector<doctor_row> doctor_rows(const accelerator_status& s) {
  std::vector<doctor_row> rows;
  const auto python = s.torch.empty() ? s.executable : s.executable + " " + s.python + ", torch " + s.torch;
  const bool found = !s.devices.empty();
  const auto asked = s.torch.empty() ? std::string() : " (" + python + "; PRAGMA_PYTHON names another)";
  rows.push_back({found, s.backend, s.title + ": driver loaded; " + (found ? python : printable(s.problem) + asked)});
  for (const auto& d : s.devices)
    rows.push_back({true, d.where.text(), printable(d.limits.cpu) + ", " + bytes_text(d.limits.memory_bytes) + "; " + printable(join(facts_of(d), "; "))});
  if (found)
    rows.push_back({!s.triton.empty(), "triton",
                    s.triton.empty() ? "not installed beside Torch in " + s.executable + ": candidates for this backend are written in it" : s.triton});
  for (const auto& tool : s.profilers) {
    const auto between = tool.version.empty() || tool.problem.empty() ? "" : "; ";
    rows.push_back({tool.found && tool.problem.empty(), tool.name, printable(tool.version + between + tool.problem) + (tool.enables.empty() ? "" : "  [" + tool.enables + "]")});
  }
  return rows;
}

std::vector<std::string> device_lines(const accelerator& device) {
  const auto& l = device.limits;
  std::vector<std::string> lines{printable(l.cpu) + " (" + device.where.text() + (l.arch.empty() ? "" : ", " + printable(l.arch)) + ")"};
  std::string units = "  " + std::to_string(l.compute_units) + " compute units";
  if (l.max_threads > 0) units += ", each with " + std::to_string(l.max_threads) + " threads";
  if (l.warp_size > 0) units += " in warps of " + std::to_string(l.warp_size);
  if (l.registers > 0) units += ", " + std::to_string(l.registers) + " registers";
  if (l.shared_bytes > 0) units += ", " + bytes_text(l.shared_bytes) + " shared memory for a block";
  lines.push_back(units);
  lines.push_back("  " + bytes_text(l.memory_bytes) + " memory" + (l.cache_bytes.empty() ? "" : ", L2 " + bytes_text(l.cache_bytes.back())));
  if (!device.state.empty()) lines.push_back("  state now: " + printable(device.state));
  if (!device.measured) return lines;
  lines.push_back("measured limits, " + l.measured_at + ":");
  for (size_t i = 0; i < l.copy_gbs.size(); ++i)
    lines.push_back("  " + padded(i + 1 < l.copy_gbs.size() ? "L2" : "memory", 8) + "copy " + format_number(l.copy_gbs[i], 0) + " GB/s (read + written)" +
                    (i < l.read_gbs.size() ? ", read " + format_number(l.read_gbs[i], 0) + " GB/s" : ""));
  std::string peaks = "  peak    " + format_number(l.peak_gflops / 1e3, 1) + " TFLOP/s float32";
  if (l.tf32_gflops > 0) peaks += ", " + format_number(l.tf32_gflops / 1e3, 1) + " TF32";
  if (l.half_gflops > 0) peaks += ", " + format_number(l.half_gflops / 1e3, 1) + " float16 (matrix products by Torch)";
  lines.push_back(peaks);
  if (l.launch_seconds > 0) lines.push_back("  launch  " + format_seconds(l.launch_seconds) + " for an empty kernel");
  return lines;
}

} // namespace pragma::cli
