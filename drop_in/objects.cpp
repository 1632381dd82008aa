// The kernel's objects that lie beside model_new.py, so that no compiler is needed where it runs: for this processor, and for the levels of
// x86-64, one of which every other has. pragma_native.py picks one.
#include "drop_in/drop_in.hpp"

#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/language.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "execution/build.hpp"
#include "kernels/parts.hpp"
#include "sandbox/sandbox.hpp"

#include <algorithm>
#include <fstream>
#include <future>
#include <optional>
#include <set>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr double more_for_an_object = 2;         ///< times the time limit of a candidate's compiler: four are compiled side by side
constexpr size_t most_for_all_levels = 256 << 10; ///< bytes of a source that is compiled for every level of x86-64; a longer one takes minutes for each
constexpr uint64_t max_object_bytes = 64ull << 20;
constexpr const char* levels[] = {"native", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

bool for_a_processor(const std::string& flag) {
  for (const char* prefix : {"-march=", "-mtune=", "-mcpu=", "-mavx", "-msse", "-mfma", "-mbmi", "-mf16c"})
    if (flag.rfind(prefix, 0) == 0) return true;
  return false;
}

std::string find_driver(const candidate& code) {
  const auto name = driver_name(code);
  if (const std::string usual = "/usr/bin/" + name; fs::exists(usual)) return usual; // and not a wrapper of a cache that others can write
  if (auto path = find_program(name); !path.empty()) return path;
  for (int version = 30; version > 10; --version)
    if (auto path = find_program(name + "-" + std::to_string(version)); !path.empty()) return path;
  return "";
}

/// One step of the tool chain in the sandbox: the source is a model's text.
expected<void> step(const fs::path& folder, std::vector<std::string> argv, double limit) {
  process_spec spec;
  spec.argv = std::move(argv);
  spec.cwd = folder.string();
  spec.limits.wall_seconds = limit;
  sandbox_options sandbox;
  sandbox.policy = sandbox_policy::compiler;
  sandbox.scratch = folder;
  if (auto done = apply_sandbox(spec, sandbox); !done) return done;
  auto ran = run_process(spec);
  if (!ran) return fail(ran.error());
  if (!ran->ok()) return fail(ec::build_failed, describe_end(*ran, limit) + ": " + cut_lines(printable(ran->err), 3, 3, 1000));
  return {};
}

expected<std::string> build_object(const candidate& code, const std::string& driver, const std::string& level, const std::string& header) {
  auto place = temp_dir::create("pragma-object-", 0711);
  if (!place) return fail(place.error());
  const auto& folder = place->path();
  for (const auto& [name, content] : {std::pair<const char*, const std::string&>{"kernel.cpp", code.source}, {"pragma_kernel.h", header}})
    if (auto written = write_file_atomic(folder / name, content); !written) return fail(written.error());
  std::error_code ignored;
  for (const char* name : {"kernel.cpp", "pragma_kernel.h"}) fs::permissions(folder / name, fs::perms(0644), ignored);
  std::vector<std::string> compile = {driver};
  for (const auto& flag : kernel_flags(code))
    if (level == "native" || level == "any" || !for_a_processor(flag)) compile.push_back(flag);
  if (level != "native" && level != "any") compile.push_back("-march=" + level);
  compile.insert(compile.end(), {"-fPIC", "-I", ".", "-c", "kernel.cpp", "-o", "kernel.o"});
  const double limit = more_for_an_object * compile_seconds(code.source.size());
  if (auto done = step(folder, compile, limit); !done) return fail(done.error());
  // Linked without -ffast-math: GCC would add code that changes the rounding of the whole process.
  std::vector<std::string> link = {driver, "-shared", "kernel.o", "-o", "kernel.so"};
  if (driver_name(code) == "g++") link.emplace_back("-fopenmp");
  if (auto done = step(folder, link, limit); !done) return fail(done.error());
  if (!fs::is_regular_file(fs::symlink_status(folder / "kernel.so", ignored))) return fail(ec::build_failed, "the compiler left no object");
  return read_file(folder / "kernel.so", max_object_bytes);
}

/// The lines that tell which processor this is; pragma_native.py has the same rule.
std::string processor_hash() {
  std::set<std::string> lines;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    for (const char* prefix : {"model name", "flags", "Features"})
      if (line.rfind(prefix, 0) == 0) lines.insert(line + "\n");
  std::string text;
  for (const auto& line : lines) text += line;
  return sha256_hex(text);
}

} // namespace

expected<std::vector<std::string>> build_objects(const fs::path& folder, const candidate& code) {
  if (code.language == parts_language) {
    auto p = parts_of(code);
    if (!p) return fail(p.error());
    std::vector<std::string> names;
    for (size_t i = 0; i < p->regions.size(); ++i) {
      auto made = build_objects(folder / "parts" / std::to_string(i + 1), p->regions[i].code);
      if (!made) return made;
      names = std::move(*made);
    }
    return names;
  }
  if (in_python(code.language)) return std::vector<std::string>{};
  const auto driver = find_driver(code);
  if (driver.empty()) return fail(ec::no_compiler, driver_name(code) + " is not installed", "kernel.cpp is built where the drop-in runs first");
  auto header = read_file(share_dir() / "pragma_kernel.h");
  if (!header) return fail(header.error());
  const auto flags = kernel_flags(code);
  std::vector<std::string> wanted = {"any"};
#ifdef __x86_64__
  if (std::any_of(flags.begin(), flags.end(), for_a_processor)) wanted.assign(std::begin(levels), code.source.size() > most_for_all_levels ? std::begin(levels) + 1 : std::end(levels));
#else
  if (std::any_of(flags.begin(), flags.end(), for_a_processor)) wanted = {"native"};
#endif
  std::vector<std::future<expected<std::string>>> made;
  for (const auto& level : wanted)
    made.push_back(std::async(std::launch::async, [&, level] { return build_object(code, driver, level, *header); }));
  std::error_code failed;
  fs::create_directories(folder / "built", failed);
  if (failed) return fail(ec::io_error, "cannot create " + (folder / "built").string() + ": " + failed.message());
  std::vector<std::string> names;
  std::optional<error> first; // one that a level's compiler refuses (intrinsics that it lacks) is left out
  for (size_t i = 0; i < wanted.size(); ++i) {
    auto object = made[i].get();
    if (!object && !first) first = object.error();
    if (!object) continue;
    if (auto written = write_file_atomic(folder / "built" / ("kernel-" + wanted[i] + ".so"), *object); !written) return fail(written.error());
    names.push_back(wanted[i]);
  }
  if (names.empty()) return fail(*first);
  const json objects = {{"source", sha256_hex(code.source)}, {"flags", flags}, {"processor", processor_hash()}, {"names", names}};
  if (auto written = write_file_atomic(folder / "built" / "objects.json", objects.dump(1) + "\n"); !written) return fail(written.error());
  return names;
}

} // namespace pragma
