// llvm-mca: what a model of this CPU says of the hot loop when every load hits L1. Static: nothing is run.
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "profilers/sources.hpp"

#include <algorithm>
#include <cstdlib>

namespace pragma {

namespace formats {

namespace {

/// The number after "label" on its line; nothing when the label is not there.
bool number_after(std::string_view text, std::string_view label, double& value) {
  const auto at = text.find(label);
  if (at == std::string_view::npos) return false;
  const std::string rest(text.substr(at + label.size(), 64));
  const auto digit = rest.find_first_of("0123456789");
  if (digit == std::string::npos || rest.substr(0, digit).find('\n') != std::string::npos) return false;
  value = std::strtod(rest.c_str() + digit, nullptr);
  return true;
}

/// "Resources:" lists names by index, "Resource pressure per iteration:" has a header row of indices and a row of cycles.
void read_ports(std::string_view text, mca_output& out) {
  std::map<std::string, std::string> names;
  bool in_names = false;
  std::vector<std::string> header;
  int state = 0; // 1: header row next, 2: values next
  for (const auto& line : split(text, '\n')) {
    if (line.rfind("Resources:", 0) == 0) in_names = true;
    else if (in_names && line.rfind('[', 0) == 0) {
      const auto dash = line.find(" - ");
      const auto close = line.find(']');
      if (dash != std::string::npos && close != std::string::npos) names[trim(line.substr(0, dash))] = trim(line.substr(dash + 3));
    } else if (line.rfind("Resource pressure per iteration:", 0) == 0) {
      in_names = false;
      state = 1;
    } else if (state == 1) {
      for (const auto& word : split(line, ' '))
        if (!trim(word).empty()) header.push_back(trim(word));
      state = 2;
    } else if (state == 2) {
      size_t column = 0;
      for (const auto& word : split(line, ' ')) {
        if (trim(word).empty()) continue;
        const double cycles = std::strtod(word.c_str(), nullptr); // "-" reads as 0
        if (column < header.size() && cycles > out.top_port_cycles) {
          out.top_port_cycles = cycles;
          const auto name = names.find(header[column]);
          out.top_port = name == names.end() ? header[column] : name->second;
        }
        ++column;
      }
      return;
    }
  }
}

} // namespace

expected<mca_output> parse_mca_text(std::string_view text) {
  mca_output out;
  double iterations = 0;
  const bool complete = number_after(text, "Iterations:", iterations) && number_after(text, "Instructions:", out.instructions) &&
                        number_after(text, "Total Cycles:", out.cycles) && number_after(text, "Total uOps:", out.uops) &&
                        number_after(text, "uOps Per Cycle:", out.uops_per_cycle) && number_after(text, "\nIPC:", out.ipc) &&
                        number_after(text, "Block RThroughput:", out.block_rthroughput);
  if (!complete || iterations < 1)
    return fail(ec::parse_error, "output of llvm-mca: no summary in it: " + cut_lines(text, 3, 0, 300));
  out.iterations = static_cast<int>(iterations);
  out.has_bottleneck = number_after(text, "Cycles with backend pressure increase", out.backend_pressure);
  if (out.has_bottleneck) {
    number_after(text, "Resource Pressure ", out.resource_pressure);
    number_after(text, "Data Dependencies:", out.data_dependencies);
    number_after(text, "- Register Dependencies", out.register_dependencies);
    number_after(text, "- Memory Dependencies", out.memory_dependencies);
  }
  read_ports(text, out);
  return out;
}

} // namespace formats

namespace {

/// Scheduling models that every LLVM since 12 has, by what the CPU can do: used when LLVM does not know the CPU itself.
std::string nearest_model(const cpu_facts& facts) {
  const bool amd = facts.vendor == "AuthenticAMD";
  if (facts.simd_bits == 512) return amd ? "znver3" : "skylake-avx512";
  if (facts.simd_bits == 256) return amd ? "znver2" : "skylake";
  return amd ? "btver2" : "sandybridge";
}

} // namespace

std::string llvm_mca_program() {
  for (const char* name : {"llvm-mca", "llvm-mca-19", "llvm-mca-18", "llvm-mca-17", "llvm-mca-16", "llvm-mca-15", "llvm-mca-14"})
    if (auto path = find_program(name); !path.empty()) return path;
  return "";
}

std::string llvm_mca_version() {
  static const std::string version = [] {
    process_spec spec;
    spec.argv = {llvm_mca_program(), "--version"};
    spec.limits.wall_seconds = 10;
    if (spec.argv[0].empty()) return std::string();
    const auto run = run_process(spec);
    if (!run || !run->ok()) return std::string();
    const auto at = run->out.find("version ");
    if (at == std::string::npos) return std::string();
    return run->out.substr(at + 8, run->out.find_first_of(" \n", at + 8) - at - 8);
  }();
  return version;
}

expected<modelled_loop> model_loop(const formats::hot_loop& loop, const cpu_facts& facts, double wall_seconds) {
  const auto program = llvm_mca_program();
  if (program.empty()) return fail(ec::not_found, "llvm-mca: not installed (apt install llvm)");
  // The CPU that "native" stands for may lack a feature in a virtual machine, or be newer than this LLVM; an old LLVM knows AVX-512 of Intel's cores only.
  std::vector<std::string> models = {"native", nearest_model(facts)};
  if (facts.simd_bits == 512 && models.back() != "skylake-avx512") models.push_back("skylake-avx512");
  std::string complaint;
  for (const auto& model : models) {
    process_spec spec;
    spec.argv = {program, "-mcpu=" + model, "--bottleneck-analysis", "--instruction-info=false"};
    if (loop.memory_chain) spec.argv.push_back("-noalias=false");
    spec.stdin_data = formats::mca_input(loop);
    spec.limits.wall_seconds = wall_seconds;
    const auto run = run_process(spec);
    if (!run) return fail(run.error());
    if (auto parsed = formats::parse_mca_text(run->out)) return modelled_loop{std::move(*parsed), model == "native" ? "" : model};
    complaint = run->err.empty() ? describe_end(*run, wall_seconds) : cut_lines(printable(run->err), 2, 0, 240);
  }
  return fail(ec::tool_failed, "llvm-mca: cannot analyse the loop at line " + std::to_string(loop.line) + " as " + join(models, ", ") + ": " + trim(complaint));
}

void mca_metrics(const formats::hot_loop& loop, const modelled_loop& modelled, source_result& out) {
  const auto* parsed = &modelled.figures;
  const auto tool = "llvm-mca " + llvm_mca_version();
  const std::string note = "loop at line " + std::to_string(loop.line) + (modelled.as.empty() ? "" : ", modelled as " + modelled.as) +
                           (loop.calls > 0 ? ", without the functions that it calls" : "");
  const auto add = [&](const std::string& name, double value, const std::string& unit, const std::string& more = {}) {
    out.metrics.push_back({"llvm_mca." + name, value, unit, tool, provenance::static_analysis, more.empty() ? note : more + "; " + note});
  };
  const double per_iteration = parsed->cycles / parsed->iterations;
  add("cycles_per_iteration", per_iteration, "cycle");
  add("block_rthroughput", parsed->block_rthroughput, "cycle");
  add("ipc", parsed->ipc, "1/cycle");
  add("uops_per_cycle", parsed->uops_per_cycle, "1/cycle");
  add("backend_pressure", parsed->backend_pressure, "%");
  add("resource_pressure", parsed->resource_pressure, "%", parsed->top_port.empty() ? "" : "busiest: " + parsed->top_port);
  add("data_dependencies", parsed->data_dependencies, "%");
  add("register_dependencies", parsed->register_dependencies, "%");
  add("memory_dependencies", parsed->memory_dependencies, "%");
  if (!parsed->top_port.empty() && per_iteration > 0)
    add("top_port_pressure", std::min(100.0, 100 * parsed->top_port_cycles / per_iteration), "%", parsed->top_port);
  if (loop.flops > 0 && per_iteration > 0) add("flops_per_cycle", loop.flops / per_iteration, "FLOP/cycle");
}

} // namespace pragma
