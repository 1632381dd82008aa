// What `pragma doctor` says of the tools that give metrics.
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "profilers/sources.hpp"

namespace pragma {

namespace {

tool_status status(std::string name, const std::string& version, const std::string& package, std::string enables) {
  tool_status s;
  s.name = std::move(name);
  s.found = !version.empty();
  s.version = version;
  if (!s.found) s.problem = "not installed (apt install " + package + ")";
  s.enables = std::move(enables);
  return s;
}

} // namespace

std::vector<tool_status> profiler_tools() {
  std::vector<tool_status> tools;
  const auto facts = read_cpu_facts();
  auto perf = status("perf", perf_version(), "linux-perf", "hardware counters: IPC, cache and branch misses, top-down");
  if (facts) perf.problem = perf_obstacle(*facts);
  if (const auto prefix = perf.problem.rfind("perf: ", 0); prefix == 0) perf.problem = perf.problem.substr(6);
  tools.push_back(perf);
  tools.push_back(status("valgrind", valgrind_version(), "valgrind", "exact instruction counts, simulated caches, hottest lines"));
  tools.push_back(status("llvm-mca", llvm_mca_program().empty() ? "" : llvm_mca_version(), "llvm", "throughput and dependency chains of the hot loop"));
  tools.push_back(status("objdump", objdump_version(), "binutils", "what the hot loop consists of"));
  std::string gcc, clang;
  for (const auto& [name, version] : compilers()) (name == "gcc" ? gcc : clang) = version.substr(version.find(' ') + 1);
  tools.push_back(status("gcc", gcc, "g++", "building candidates, vectorisation remarks"));
  tools.push_back(status("clang", clang, "clang", "building candidates with a second compiler, vectorisation remarks"));
  tool_status python;
  python.name = "python with torch";
  python.enables = "the reference: inputs, expected outputs, the baseline's time";
  if (const auto found = find_python(); found) {
    python.found = true;
    python.version = found->version + " with torch " + found->torch + " (" + found->executable + ")";
  } else {
    python.problem = found.error().message;
  }
  tools.push_back(python);
  return tools;
}

} // namespace pragma
