#include "execution/build.hpp"

#include "base/defaults.hpp"
#include "base/hash.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "execution/executable_check.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr size_t log_head_lines = 40, log_tail_lines = 10;
constexpr uint64_t max_executable_bytes = 128ull << 20;

/// A compiler driver that is not a ccache wrapper: candidates must not pass through a cache that others can write.
std::string find_driver(std::initializer_list<const char*> names) {
  for (const char* folder : {"/usr/bin/", "/usr/local/bin/"})
    for (const char* name : names) {
      const std::string path = std::string(folder) + name;
      if (::access(path.c_str(), X_OK) == 0) return path;
    }
  for (const char* name : names) {
    const std::string path = find_program(name);
    if (!path.empty() && path.find("ccache") == std::string::npos) return path;
  }
  return "";
}

struct driver {
  std::string path;      ///< empty: not installed
  std::string version;   ///< "gcc 12.2.0"
};

std::string first_line(const std::string& program, const char* flag) {
  process_spec spec;
  spec.argv = {program, flag};
  spec.limits.wall_seconds = 10;
  const auto result = run_process(spec);
  return result && result->ok() ? trim(split(result->out, '\n').front()) : "";
}

driver probe_gcc() {
  driver d{find_driver({"g++", "g++-15", "g++-14", "g++-13", "g++-12"}), ""};
  if (!d.path.empty()) d.version = "gcc " + first_line(d.path, "-dumpfullversion");
  return d;
}

driver probe_clang() {
  driver d{find_driver({"clang++", "clang++-19", "clang++-18", "clang++-17", "clang++-16", "clang++-15", "clang++-14"}), ""};
  if (d.path.empty()) return d;
  const auto line = first_line(d.path, "--version"); // "Debian clang version 14.0.6"
  const auto at = line.find("version ");
  const auto rest = at == std::string::npos ? line : line.substr(at + 8);
  d.version = "clang " + rest.substr(0, rest.find_first_of(" -"));
  return d;
}

const driver& driver_of(const std::string& compiler) {
  static const driver gcc = probe_gcc(), clang = probe_clang();
  return compiler == "clang" ? clang : gcc;
}

expected<void> put(const fs::path& file, std::string_view content) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  bool good = fd >= 0;
  for (size_t done = 0; good && done < content.size();) {
    const auto n = ::write(fd, content.data() + done, content.size() - done);
    good = n > 0;
    if (good) done += static_cast<size_t>(n);
  }
  const int why = errno;
  if (fd >= 0) ::close(fd);
  if (!good) return fail(ec::io_error, "cannot write " + file.string() + ": " + std::strerror(why));
  return {};
}

/// What the sandboxed compiler left: a regular file and not a link that it could have pointed anywhere.
expected<std::string> take(const fs::path& file, uint64_t max_bytes) {
  struct stat info {};
  if (::lstat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
    return fail(ec::build_failed, "the compiler left no regular file " + file.filename().string());
  return read_file(file, max_bytes);
}

/// One step of the tool chain in the sandbox, in `folder`.
expected<process_result> run_tool(const fs::path& folder, std::vector<std::string> argv, const build_options& options) {
  process_spec spec;
  spec.cwd = folder.string();
  spec.limits.wall_seconds = options.wall_seconds;
  spec.max_output = defaults::build_log_bytes;
  if (options.want_remarks) spec.max_output = 8 << 20;
  spec.cancel = options.cancel;
  sandbox_options sandbox;
  sandbox.policy = sandbox_policy::compiler;
  sandbox.scratch = folder;
  // A tool chain outside the system folders (/opt/gcc-14/bin/g++): its own tree may be read.
  std::error_code ignored;
  const auto real = fs::canonical(argv[0], ignored);
  if (!real.empty() && real.string().rfind("/usr/", 0) != 0) sandbox.readable.push_back(real.parent_path().parent_path());
  spec.argv = std::move(argv);
  if (auto done = apply_sandbox(spec, sandbox); !done) return fail(done.error());
  return run_process(spec);
}

/// Absolute names of the scratch folder mean nothing to the reader.
std::string readable_log(std::string log, const fs::path& folder) {
  const std::string prefix = folder.string() + "/";
  for (size_t at = 0; (at = log.find(prefix, at)) != std::string::npos;) log.erase(at, prefix.size());
  return cut_lines(printable(log), log_head_lines, log_tail_lines);
}

/// The first error message, without its place.
std::string first_error(const std::string& log) {
  for (const auto& line : split(log, '\n')) {
    for (const char* mark : {"fatal error: ", "error: ", "Error: ", "undefined reference to ", "multiple definition of ", "cannot find "}) {
      const auto at = line.find(mark);
      if (at == std::string::npos || line.rfind("collect2:", 0) == 0) continue;
      const bool linker = mark[0] == 'u' || mark[0] == 'm' || mark[0] == 'c';
      std::string place;
      if (!linker && at > 2 && line.rfind("candidate.cpp:", 0) == 0) place = " (line " + split(line, ':')[1] + ")";
      return line.substr(linker ? at : at + std::strlen(mark)) + place;
    }
  }
  return "";
}

tl::unexpected<error> compile_error(const process_result& result, const std::string& log, const std::string& what,
                                    const build_options& options) {
  if (result.cancelled) return fail(ec::interrupted, "compiling the candidate was interrupted");
  if (result.timed_out)
    return fail(ec::build_failed, what + " took longer than " + format_number(options.wall_seconds, 0) + " s and was stopped", log);
  if (log.find("undefined reference to `pragma_kernel'") != std::string::npos)
    return fail(ec::build_failed, "the source does not define extern \"C\" void pragma_kernel(const pragma_args*)", log);
  if (result.signal != 0 || log.find("Killed signal") != std::string::npos || log.find("out of memory") != std::string::npos ||
      log.find("limit exceeded signal") != std::string::npos || log.find("File too large") != std::string::npos ||
      log.find("virtual memory exhausted") != std::string::npos)
    return fail(ec::build_failed,
                what + " ended at its limits (" + format_bytes(static_cast<double>(defaults::build_memory_bytes)) + " of memory, " +
                    format_bytes(static_cast<double>(defaults::build_file_bytes)) + " of output, CPU time) or crashed: " + describe_end(result),
                log);
  if (log.find("cannot find -l") != std::string::npos || log.find("cannot find libc") != std::string::npos)
    return fail(ec::tool_failed, "the static C and C++ libraries that candidates are linked with are missing: " + first_error(log),
                "Debian and Ubuntu have them in libc6-dev and libstdc++-dev, Fedora in glibc-static and libstdc++-static");
  const auto reason = first_error(log);
  return fail(ec::build_failed, what + " failed: " + (reason.empty() ? describe_end(result) : reason), log);
}

} // namespace

std::vector<std::pair<std::string, std::string>> compilers() {
  std::vector<std::pair<std::string, std::string>> found;
  for (const char* name : {"gcc", "clang"})
    if (!driver_of(name).path.empty()) found.push_back({name, driver_of(name).version});
  return found;
}

expected<build_output> build_candidate(const candidate& c, const build_options& options) {
  if (c.language == "triton") return build_python(c, options);
  if (c.language != "c++") return fail(ec::invalid_argument, "language '" + printable(c.language) + "' is not known", "c++ or triton");
  const auto start = std::chrono::steady_clock::now();
  if (c.compiler != "gcc" && c.compiler != "clang")
    return fail(ec::invalid_argument, "compiler '" + printable(c.compiler) + "' is not known", "use gcc or clang");
  const bool clang = c.compiler == "clang";
  const auto& cc = driver_of(c.compiler);
  if (cc.path.empty()) return fail(ec::not_found, c.compiler + " is not installed", clang ? "apt install clang" : "apt install g++");
  if (auto good = check_flags(c.flags); !good) return fail(good.error());
  if (clang)
    for (const auto& flag : c.flags)
      if (flag == "-fopenmp")
        return fail(ec::invalid_argument, "flag -fopenmp is not available with clang: its OpenMP library cannot be linked statically here",
                    "use -fopenmp-simd, or compile with gcc");
  if (c.source.size() > defaults::max_candidate_source)
    return fail(ec::build_failed, "the source has " + format_bytes(static_cast<double>(c.source.size())) + ", more than the limit of " +
                                      format_bytes(static_cast<double>(defaults::max_candidate_source)));

  const auto share = share_dir();
  auto header = read_file(share / "pragma_kernel.h");
  if (!header) return fail(header.error());
  auto runner = read_file(share / "runner.o");
  if (!runner) return fail(ec::not_found, "the runner's object file " + (share / "runner.o").string() + " is missing", "build the target pragma_share");

  // 0711: the folder is handed to the compiler's uid for the time of the build.
  auto made = temp_dir::create("pragma-build-", 0711);
  if (!made) return fail(made.error());
  build_output out;
  out.folder = std::make_shared<temp_dir>(std::move(*made));
  const auto& folder = out.folder->path();
  out.compiler_version = cc.version;
  out.executable = folder / "candidate";
  for (auto [name, content] : {std::pair<const char*, std::string_view>{"candidate.cpp", c.source}, {"pragma_kernel.h", *header}, {"runner.o", *runner}})
    if (auto done = put(folder / name, content); !done) return fail(done.error());

  // Ours first, so that the candidate's win; the linking step gets none of them: -ffast-math there would switch
  // flush-to-zero on for the whole process, which a drop-in kernel must not do to its host either.
  std::vector<std::string> compile = {cc.path, "-std=c++20", "-O2", clang ? "-fopenmp-simd" : "-fopenmp", "-fno-lto", "-pipe",
                                      "-fdiagnostics-color=never", clang ? "-ferror-limit=30" : "-fmax-errors=30", "-I."};
  compile.insert(compile.end(), c.flags.begin(), c.flags.end());
  compile.insert(compile.end(), options.extra_flags.begin(), options.extra_flags.end());
  if (options.want_remarks) {
    if (clang) compile.insert(compile.end(), {"-Rpass=loop-vectorize|slp-vectorizer", "-Rpass-missed=loop-vectorize|slp-vectorizer", "-Rpass-analysis=loop-vectorize"});
    else compile.push_back("-fopt-info-vec-all=remarks.txt");
  }
  std::string log;
  const auto step = [&](std::vector<std::string> argv, const std::string& what) -> expected<void> {
    auto result = run_tool(folder, std::move(argv), options);
    if (!result) return fail(result.error());
    if (clang && options.want_remarks) {
      // Remarks and diagnostics share a stream; a remark is its line and the quoted source below it.
      std::string rest;
      bool in_remark = false;
      for (const auto& line : split(result->err, '\n')) {
        if (line.find(": remark: ") != std::string::npos) in_remark = true;
        else if (line.find(": warning: ") != std::string::npos || line.find("error: ") != std::string::npos) in_remark = false;
        (in_remark ? out.remarks_text : rest) += line + "\n";
      }
      result->err = std::move(rest);
    }
    const auto text = readable_log(result->err + result->out, folder);
    if (!result->ok()) return compile_error(*result, text, what, options);
    log += text;
    return {};
  };
  if (options.want_assembly) {
    auto assemble = compile;
    assemble.insert(assemble.end(), {"-S", "candidate.cpp", "-o", "candidate.s"});
    if (auto done = step(assemble, "compiling"); !done) return fail(done.error());
    if (auto done = step({cc.path, "-c", "candidate.s", "-o", "candidate.o"}, "assembling"); !done) return fail(done.error());
    auto text = take(folder / "candidate.s", defaults::build_file_bytes);
    if (!text) return fail(text.error());
    out.assembly = std::move(*text);
  } else {
    compile.insert(compile.end(), {"-c", "candidate.cpp", "-o", "candidate.o"});
    if (auto done = step(compile, "compiling"); !done) return fail(done.error());
  }
  if (options.want_remarks && !clang)
    if (auto text = take(folder / "remarks.txt", defaults::build_file_bytes)) out.remarks_text = std::move(*text);
  out.log = log;
  // What the linker says of a success is its warning about dlopen in libgomp's offloading, which is never used here.
  // It starts in the runner, before the C library looks for the candidate's resolvers; and the runner's functions of before main come first.
  std::vector<std::string> link = {cc.path, "-static", "-Wl,-e,pragma_start", "runner.o", "candidate.o", "-o", "candidate"};
  if (!clang) link.push_back("-fopenmp");
  link.push_back("-lm");
  if (auto done = step(link, "linking"); !done) return fail(done.error());

  // From here the files are ours again: nothing that ran as the compiler can change what was hashed.
  struct stat info {};
  if (::lstat(out.executable.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
    return fail(ec::build_failed, "the compiler left no executable");
  if (::geteuid() == 0 && (::lchown(folder.c_str(), 0, 0) != 0 || ::lchown(out.executable.c_str(), 0, 0) != 0))
    return fail(ec::io_error, "cannot take " + folder.string() + " back from the compiler's uid: " + std::strerror(errno));
  ::chmod(out.executable.c_str(), 0755);
  auto binary = take(out.executable, max_executable_bytes);
  if (!binary) return fail(binary.error());
  if (auto sound = check_executable(*binary); !sound) return fail(sound.error());
  out.binary_hash = sha256_hex(*binary);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

} // namespace pragma
