#include "profilers/hardware.hpp"

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "profilers/formats.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sched.h>
#include <set>
#include <thread>
#include <unistd.h>

namespace pragma {

namespace {

namespace fs = std::filesystem;

/// Files of /proc and /sys report size 0 and may be unreadable: empty then.
std::string slurp(const fs::path& path) {
  std::string text;
  if (auto* f = std::fopen(path.c_str(), "re")) {
    std::array<char, 4096> buffer{};
    size_t n = 0;
    while ((n = std::fread(buffer.data(), 1, buffer.size(), f)) > 0) text.append(buffer.data(), n);
    std::fclose(f);
  }
  return text;
}

/// What compilers and kernels care about; the other hundred flags of a CPU only make reports long.
bool worth_listing(const std::string& flag) {
  static const std::set<std::string> names{"sse2", "sse4_2", "avx", "avx2", "fma",  "f16c",    "bmi2",  "avx_vnni",
                                           "popcnt", "asimd", "fp",  "sve",  "sve2", "asimdhp", "asimddp", "bf16"};
  return names.count(flag) != 0 || flag.rfind("avx512", 0) == 0 || flag.rfind("amx_", 0) == 0;
}

void use_flags(cpu_facts& facts, std::string_view flags) {
  for (const auto& flag : split(flags, ' '))
    if (worth_listing(flag)) facts.isa.push_back(flag);
  const auto has = [&](const char* flag) { return std::find(facts.isa.begin(), facts.isa.end(), flag) != facts.isa.end(); };
  facts.simd_bits = has("avx512f") ? 512 : has("avx2") ? 256 : 128;
}

/// The kernel's own account of the caches of CPU 0, more exact than lscpu's sums.
void use_sysfs_caches(cpu_facts& facts) {
  const auto use = [](int64_t& fact, int level, const char* type) {
    if (const auto bytes = read_cache_geometry(level, type).bytes; bytes > 0) fact = bytes;
  };
  use(facts.l1d_bytes, 1, "Data");
  use(facts.l2_bytes, 2, "Unified");
  use(facts.l3_bytes, 3, "Unified");
}

/// The smaller of the machine's memory and the container's limit.
int64_t usable_memory() {
  int64_t bytes = 0;
  for (const auto& line : split(slurp("/proc/meminfo"), '\n'))
    if (line.rfind("MemTotal:", 0) == 0) bytes = std::atoll(line.c_str() + 9) * 1024;
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const auto limit = std::atoll(slurp(path).c_str()); // "max" reads as 0
    if (limit > 0 && (bytes == 0 || limit < bytes)) bytes = limit;
  }
  return bytes;
}

bool pmu_exists() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/bus/event_source/devices", error)) {
    const auto name = entry.path().filename().string();
    if (name == "cpu" || name == "cpu_core" || name == "cpu_atom" || name.rfind("armv8", 0) == 0) return true;
  }
  return false;
}

/// The kernel's list has the family of each logical CPU, and where lscpu is missing its model and flags.
void use_proc_cpuinfo(cpu_facts& facts) {
  std::string family, part;
  for (const auto& line : split(slurp("/proc/cpuinfo"), '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto key = trim(line.substr(0, colon)), value = trim(line.substr(colon + 1));
    if (key == "model name" && facts.model.empty()) facts.model = value;
    if (key == "vendor_id" && facts.vendor.empty()) facts.vendor = value;
    if (key == "cpu cores" && facts.cores == 0) facts.cores = std::atoi(value.c_str());
    if ((key == "flags" || key == "Features") && facts.isa.empty()) use_flags(facts, value);
    if ((key == "cpu family" || key == "CPU implementer") && family.empty()) family = (key[0] == 'c' ? "family " : "implementer ") + value;
    if ((key == "model" || key == "CPU part") && part.empty()) part = (key[0] == 'm' ? "model " : "part ") + value;
  }
  facts.microarchitecture = family + (family.empty() || part.empty() ? "" : ", ") + part;
}

} // namespace

namespace formats {

int64_t parse_size(std::string_view text) {
  const std::string s(text);
  char* end = nullptr;
  double value = std::strtod(s.c_str(), &end);
  while (*end == ' ') ++end;
  switch (*end) {
    case 'K': value *= 1024; break;
    case 'M': value *= 1024.0 * 1024; break;
    case 'G': value *= 1024.0 * 1024 * 1024; break;
    default: break;
  }
  const auto open = s.find('(');
  if (open != std::string::npos) { // lscpu sums over instances
    const int instances = std::atoi(s.c_str() + open + 1);
    if (instances > 1) value /= instances;
  }
  return static_cast<int64_t>(value);
}

expected<cpu_facts> parse_lscpu(std::string_view json_text) {
  auto parsed = parse_json(json_text, "output of lscpu -J");
  if (!parsed) return fail(parsed.error());
  cpu_facts facts;
  int threads_per_core = 1, cores_per_socket = 0;
  const std::function<void(const json&)> walk = [&](const json& fields) {
    if (!fields.is_array()) return;
    for (const auto& field : fields) {
      if (!field.is_object()) continue;
      if (field.contains("children")) walk(field["children"]);
      if (!field.contains("field") || !field["field"].is_string()) continue;
      auto key = trim(field["field"].get<std::string>());
      if (!key.empty() && key.back() == ':') key.pop_back();
      const auto data = field.contains("data") && field["data"].is_string() ? trim(field["data"].get<std::string>()) : "";
      const auto number = std::atoi(data.c_str());
      if (key == "Model name" && facts.model.empty()) facts.model = data;
      else if (key == "Vendor ID" && facts.vendor.empty()) facts.vendor = data;
      else if (key == "Hypervisor vendor") facts.virtualization = data;
      else if (key == "CPU(s)") facts.logical = number;
      else if (key == "Thread(s) per core") threads_per_core = std::max(1, number);
      else if (key == "Core(s) per socket" || key == "Core(s) per cluster") cores_per_socket = number;
      else if (key == "Socket(s)") facts.sockets = number;
      else if (key == "NUMA node(s)") facts.numa_nodes = number;
      else if (key == "Flags") use_flags(facts, data);
      else if (key == "L1d cache" || key == "L1d") facts.l1d_bytes = parse_size(data);
      else if (key == "L2 cache" || key == "L2") facts.l2_bytes = parse_size(data);
      else if (key == "L3 cache" || key == "L3") facts.l3_bytes = parse_size(data);
    }
  };
  if (parsed->is_object() && parsed->contains("lscpu")) walk((*parsed)["lscpu"]);
  if (facts.sockets <= 0) facts.sockets = 1;
  facts.cores = cores_per_socket > 0 ? cores_per_socket * facts.sockets : facts.logical / threads_per_core;
  if (facts.model.empty() && facts.logical == 0)
    return fail(ec::parse_error, "output of lscpu -J: neither a model name nor a number of CPUs in it");
  return facts;
}

} // namespace formats

cache_geometry read_cache_geometry(int level, const std::string& type) {
  const fs::path base = "/sys/devices/system/cpu/cpu0/cache";
  constexpr int most_caches = 8;
  for (int i = 0; i < most_caches; ++i) {
    const auto folder = base / ("index" + std::to_string(i));
    if (trim(slurp(folder / "level")) != std::to_string(level) || trim(slurp(folder / "type")) != type) continue;
    const auto number = [&](const char* name) { return std::max<int64_t>(0, std::atoll(slurp(folder / name).c_str())); };
    return {formats::parse_size(trim(slurp(folder / "size"))), number("coherency_line_size"), number("ways_of_associativity")};
  }
  return {};
}

expected<cpu_facts> read_cpu_facts() {
  cpu_facts facts;
  process_spec spec;
  spec.argv = {"lscpu", "-J"};
  spec.env = {{"LC_ALL", "C"}};
  spec.limits.wall_seconds = 10;
  if (auto run = run_process(spec); run && run->ok())
    if (auto parsed = formats::parse_lscpu(run->out)) facts = *parsed;
  use_proc_cpuinfo(facts);
  use_sysfs_caches(facts);
  if (facts.logical == 0) facts.logical = static_cast<int>(std::thread::hardware_concurrency());
  if (facts.cores == 0) facts.cores = facts.logical;
  if (facts.sockets == 0) facts.sockets = 1;
  if (facts.numa_nodes == 0) facts.numa_nodes = 1;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  if (facts.l1d_bytes == 0) facts.l1d_bytes = std::max(0L, sysconf(_SC_LEVEL1_DCACHE_SIZE));
  if (facts.l2_bytes == 0) facts.l2_bytes = std::max(0L, sysconf(_SC_LEVEL2_CACHE_SIZE));
  if (facts.l3_bytes == 0) facts.l3_bytes = std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE));
#endif
  facts.memory_bytes = usable_memory();
  facts.has_pmu = pmu_exists();
  if (facts.model.empty() && facts.logical == 0)
    return fail(ec::unsupported, "cannot tell what CPU this is: neither lscpu nor /proc/cpuinfo says it",
                "install util-linux (lscpu), and mount /proc");
  if (facts.model.empty()) facts.model = facts.vendor.empty() ? "unknown CPU" : facts.vendor;
  return facts;
}

} // namespace pragma
