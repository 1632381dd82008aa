// pragma hardware, pragma doctor: what this machine is, can do at most, and lacks.
#include "cli/commands.hpp"
#include "cli/device_text.hpp"
#include "cli/options.hpp"
#include "cli/terminal.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "execution/build.hpp"
#include "execution/python_process.hpp"
#include "reference/python_search.hpp"
#include "reference/reference.hpp"
#include "knowledge/library.hpp"
#include "profilers/hardware.hpp"

#include <cstdlib>
#include <memory>

namespace pragma::cli {

namespace {

json python_document(const python_info& python) {
  return {{"executable", python.executable}, {"version", python.version}, {"torch", python.torch}, {"rejected", python.rejected}};
}

std::string python_text(const python_info& python) { return python.executable + " " + python.version + ", torch " + python.torch; }

int hardware(bool json_output, int threads, bool again) {
  terminal out(json_output);
  auto facts = read_cpu_facts();
  if (!facts) return report(out, facts.error());
  auto limits = machine_roofline(threads, again, [&](int done, int total, const std::string& what) {
    out.status("measuring " + std::to_string(done) + "/" + std::to_string(total) + ": " + what);
  });
  if (!limits) return report(out, limits.error());
  // A Python that was named and does not work is an error here as well: whoever asks what this machine is wants to hear it.
  const auto python = find_python();
  if (const char* named = std::getenv("PRAGMA_PYTHON"); !python && named && *named) return report(out, python.error());
  out.result({{"cpu", *facts}, {"limits", *limits}, {"python", python ? python_document(*python) : json()}});
  out.line(facts->model + (facts->virtualization.empty() ? "" : " (virtual machine: " + facts->virtualization + ")"));
  out.line("  " + std::to_string(facts->cores) + " cores, " + std::to_string(facts->logical) + " logical, " + std::to_string(facts->sockets) + " socket(s), " +
           format_bytes(static_cast<double>(facts->memory_bytes)) + " memory, SIMD " + std::to_string(facts->simd_bits) + " bits");
  out.line("  L1d " + format_bytes(static_cast<double>(facts->l1d_bytes)) + ", L2 " + format_bytes(static_cast<double>(facts->l2_bytes)) + ", L3 " +
           format_bytes(static_cast<double>(facts->l3_bytes)));
  out.line(std::string("  hardware counters (PMU): ") + (facts->has_pmu ? "yes" : "no: top-down metrics come from simulation and static analysis, and are labelled so"));
  out.line("measured limits with " + std::to_string(limits->threads) + (limits->threads == 1 ? " thread, " : " threads, ") + (limits->measured_at.empty() ? "while other work ran (too low, perhaps; not kept)" : limits->measured_at) + ":");
  static constexpr const char* levels[] = {"L1", "L2", "L3", "memory"};
  for (size_t i = 0; i < limits->copy_gbs.size() && i < 4; ++i)
    out.line(std::string("  ") + levels[i] + std::string(8 - std::string(levels[i]).size(), ' ') + "copy " + format_number(limits->copy_gbs[i], 1) +
             " GB/s (read + written)" + (i < limits->read_gbs.size() ? ", read " + format_number(limits->read_gbs[i], 1) + " GB/s" : ""));
  if (limits->set_bytes.size() > 1) {
    std::vector<std::string> sets;
    for (size_t i = 0; i < limits->set_bytes.size() && i < limits->set_read_gbs.size(); ++i)
      sets.push_back(format_bytes(static_cast<double>(limits->set_bytes[i])) + " " + format_number(limits->set_read_gbs[i], 0));
    out.line("  reading, by working set: " + join(sets, ", ") + " GB/s");
  }
  out.line("  peak    " + format_number(limits->peak_gflops, 1) + " GFLOP/s float32" + (limits->half_gflops > 0 ? ", " + format_number(limits->half_gflops, 1) + " bfloat16 on tiles (AMX)" : ""));
  if (limits->clock_ghz > 0) out.line("  clock   " + format_number(limits->clock_ghz, 2) + " GHz while one core works" + (limits->microarchitecture.empty() ? "" : " (" + limits->microarchitecture + ")"));
  if (limits->divide_cycles > 0) out.line("  divider " + format_number(limits->divide_cycles, 1) + " cycles for a division of " + std::to_string(limits->simd_bits) + " bits of float32");
  out.line("reference: " + (python ? python_text(*python) : "none (" + python.error().message + ")"));
  if (const auto note = python ? passed_over(*python) : ""; !note.empty()) out.line("  " + note);
  return 0;
}

/// A device is measured by the Torch that drives it, in a reference process without a task.
int device_hardware(bool json_output, const device_choice& where, bool again) {
  terminal out(json_output);
  auto chosen = find_backend(where.backend);
  if (!chosen) return report(out, chosen.error());
  reference_options options;
  options.device = where;
  options.cancel = &cancelled();
  out.status("starting Torch on " + where.text() + " ...");
  auto ref = reference::start(options);
  if (!ref) return report(out, ref.error());
  out.status("measuring " + where.text() + " (some 3 s, once) ...");
  auto limits = ref->limits(again);
  if (!limits) return report(out, limits.error());
  const accelerator device{where, *limits, true, device_state(*chosen, where.index)};
  out.result({{"device", device}, {"python", ref->python().executable}, {"torch", ref->python().torch}});
  for (const auto& line : device_lines(device)) out.line(line);
  return 0;
}

int doctor(bool json_output) {
  terminal out(json_output);
  json document;
  const auto row = [&](bool good, const std::string& name, const std::string& text) {
    out.line((good ? out.green("  ok    ") : out.red("  lacks ")) + name + std::string(name.size() < 22 ? 22 - name.size() : 1, ' ') + text);
  };
  out.line("tools");
  json tools = json::array();
  for (const auto& tool : profiler_tools()) {
    tools.push_back(tool);
    if (tool.name == "gcc" || tool.name == "clang" || tool.name == "python with torch") continue; // below, in more detail
    row(tool.found && tool.problem.empty(), tool.name, tool.version + (tool.problem.empty() ? "" : (tool.version.empty() ? "" : "; ") + tool.problem) +
                                                           (tool.enables.empty() ? "" : "  [" + tool.enables + "]"));
  }
  document["tools"] = tools;
  out.line("reference");
  auto python = find_python();
  if (python) {
    row(true, "python with torch", python_text(*python));
    for (const auto& r : python->rejected) out.line("          not taken: " + r);
    document["python"] = python_document(*python);
    if (const auto why = uncompiled(*python); !why.empty()) {
      out.line("          slow to start: " + why);
      document["python"]["uncompiled"] = why;
    }
    if (const auto at = barred_at(python->executable); !at.empty()) {
      const auto why = unreachable_python(python->executable, at);
      row(false, "drop-ins, GPU kernels", why.message + "; " + why.hint);
      document["python"]["unreachable"] = why.message;
    }
  } else {
    row(false, "python with torch", python.error().message + (python.error().hint.empty() ? "" : "; " + python.error().hint));
    document["python"] = nullptr;
  }
  out.line("compilers of candidates");
  const auto found = compilers();
  document["compilers"] = found;
  for (const auto& [name, version] : found) row(true, name, version);
  if (found.empty()) row(false, "gcc", "apt-get install g++");
  out.line("accelerators");
  std::vector<std::string> ready;
  if (python && !found.empty()) ready.push_back("cpu");
  document["backends"] = json::array();
  for (const auto& b : backends()) {
    if (!b.on_device()) continue;
    const auto registered = registered_collectors(library_paths::usual(), b.name);
    const auto status = probe_accelerators(b, registered ? *registered : std::vector<json>{}, &cancelled());
    document["backends"].push_back(status);
    if (!status.absent.empty()) out.line(out.dim("  none  " + b.name + std::string(b.name.size() < 22 ? 22 - b.name.size() : 1, ' ') + status.absent));
    else
      for (const auto& r : doctor_rows(status)) row(r.good, r.name, r.text);
    if (status.usable()) ready.push_back(b.name);
  }
  document["ready_for"] = ready;
  out.line("sandbox");
  for (const auto& [name, text] : sandbox_facts()) {
    row(text.rfind("no", 0) != 0, name, text);
    document["sandbox"][name] = text;
  }
  out.line("folders");
  out.line("          data   " + data_home().string() + "\n          cache  " + cache_home().string() + "\n          share  " + share_dir().string());
  document["folders"] = {{"data", data_home().string()}, {"cache", cache_home().string()}, {"share", share_dir().string()}};
  const bool fine = !ready.empty();
  document["ready"] = fine;
  out.result(document);
  const auto how = fine && ready.back() != "cpu" ? " (pragma optimize TASK --backend " + ready.back() + ")" : std::string();
  if (fine) out.line("ready to optimise kernels on " + join(ready, ", ") + how);
  else out.line(out.red("not ready: ") + "see what is lacking above; scripts/setup installs it on Debian");
  return fine ? 0 : exit_code(ec::tool_failed);
}

} // namespace

void add_machine(CLI::App& app, action& chosen) {
  {
    struct settings {
      bool json = false, again = false;
      int threads = 1, device = 0;
      std::string backend = "cpu";
    };
    auto s = std::make_shared<settings>();
    auto* command = app.add_subcommand("hardware", "measure what this machine can do at most (once; cached)");
    add_threads(*command, s->threads, "threads of the measurement");
    command->add_option("--backend", s->backend, "cpu, or a device: cuda, rocm, ascend")->capture_default_str();
    command->add_option("--device", s->device, "number of the device of that backend")->check(CLI::Range(0, 1023))->capture_default_str();
    command->add_flag("--again", s->again, "measure anew");
    command->add_flag("--json", s->json, "print JSON");
    command->footer("Example:\n  pragma hardware --threads 2\n  pragma hardware --backend cuda --device 1 --again");
    command->callback([s, &chosen] {
      chosen = [s] {
        const device_choice where{s->backend, s->device};
        return where.on_device() ? device_hardware(s->json, where, s->again) : hardware(s->json, s->threads, s->again);
      };
    });
  }
  {
    auto s = std::make_shared<bool>(false);
    auto* command = app.add_subcommand("doctor", "what is installed, what is missing, what it would enable");
    command->add_flag("--json", *s, "print JSON");
    command->footer("Example:\n  pragma doctor");
    command->callback([s, &chosen] { chosen = [s] { return doctor(*s); }; });
  }
}

} // namespace pragma::cli
