#include "execution/build.hpp"

#include "base/defaults.hpp"
#include "base/hash.hpp"
#include "base/language.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "execution/executable_check.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr size_t log_head_lines = 40, log_tail_lines = 10;
constexpr uint64_t max_executable_bytes = 128ull << 20;
constexpr int most_step_tries = 4;
constexpr auto step_pause = std::chrono::milliseconds(250); ///< times the number of tries so far

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
  spec.limits.cpu_seconds = static_cast<uint64_t>(std::ceil(options.cpu_seconds));
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
    return fail(ec::busy, what + " had not ended after " + format_number(options.wall_seconds, 0) + " s, of which it worked " + format_number(result.cpu_seconds, 0) + " s",
                "this machine is busy: try again when less runs here");
  // The compiler proper is the driver's child: of its end the driver's words tell, and not how it came about.
  if (result.memory_was_short && (result.out_of_memory || log.find("Killed signal") != std::string::npos))
    return fail(ec::busy, what + " was killed: the machine ran out of memory", "end what else uses memory, or do less at once (--jobs)");
  const bool killed = result.signal != 0 || log.find("Killed signal") != std::string::npos || log.find("limit exceeded signal") != std::string::npos;
  // What a killed process is said to have used may be less than the limit that it was killed at: of a second 0.88 on a busy virtual machine.
  const double unsaid = killed ? std::max(0.3, 0.1 * options.cpu_seconds) : 0;
  if (result.cpu_seconds >= options.cpu_seconds - unsaid)
    return fail(ec::build_failed, what + " took longer than " + format_number(options.cpu_seconds, 0) + " s of CPU time and was stopped", log);
  if (log.find("undefined reference to `pragma_kernel'") != std::string::npos)
    return fail(ec::build_failed, "the source does not define extern \"C\" void pragma_kernel(const pragma_args*)", log);
  if (killed || log.find("out of memory") != std::string::npos || log.find("File too large") != std::string::npos ||
      log.find("virtual memory exhausted") != std::string::npos)
    return fail(ec::build_failed,
                what + " ended at its limits (" + format_bytes(static_cast<double>(defaults::build_memory_bytes)) + " of memory, " +
                    format_bytes(static_cast<double>(defaults::build_file_bytes)) + " of output) or crashed: " + describe_end(result),
                log);
  if (log.find("cannot find -l") != std::string::npos || log.find("cannot find libc") != std::string::npos)
    return fail(ec::tool_failed, "the static C and C++ libraries that candidates are linked with are missing: " + first_error(log),
                "Debian and Ubuntu have them in libc6-dev and libstdc++-dev, Fedora in glibc-static and libstdc++-static");
  const auto reason = first_error(log);
  return fail(ec::build_failed, what + " failed: " + (reason.empty() ? describe_end(result) : reason), log);
}

/// A step of the tool chain found no process for one of its own. What compilers print is the only sign; a candidate that prints it only keeps itself
/// from being judged.
bool lacked_process(const std::string& log) {
  for (const auto& line : split(log, '\n')) {
    const auto says = [&line](const char* words) { return line.find(words) != std::string::npos; };
    if (says(std::strerror(EAGAIN)) && (says("cannot execute") || says("unable to execute") || says("fork") || says("posix_spawn"))) return true;
  }
  return false;
}

/// Is everything there that the build needs, and does it ask for nothing that is refused?
expected<const driver*> checked_driver(const candidate& c) {
  if (c.compiler != "gcc" && c.compiler != "clang")
    return fail(ec::invalid_argument, "compiler '" + printable(c.compiler) + "' is not known", "use gcc or clang");
  const bool clang = c.compiler == "clang";
  const auto& cc = driver_of(c.compiler);
  if (cc.path.empty()) return fail(ec::no_compiler, c.compiler + " is not installed", clang ? "apt install clang" : "apt install g++");
  if (auto good = check_flags(c.flags); !good) return fail(good.error());
  if (clang && std::find(c.flags.begin(), c.flags.end(), "-fopenmp") != c.flags.end())
    return fail(ec::invalid_argument, "flag -fopenmp is not available with clang: its OpenMP library cannot be linked statically here",
                "use -fopenmp-simd, or compile with gcc");
  if (c.source.size() > defaults::max_built_source)
    return fail(ec::build_failed, "the source has " + format_bytes(static_cast<double>(c.source.size())) + ", more than the limit of " +
                                      format_bytes(static_cast<double>(defaults::max_built_source)));
  return &cc;
}

/// One build under way, in a folder of its own.
class native_build {
public:
  native_build(const candidate& c, const driver& cc, const build_options& options) : c_(c), cc_(cc), options_(options), clang_(c.compiler == "clang") {}

  expected<build_output> run() {
    if (auto done = prepare(); !done) return fail(done.error());
    if (auto done = compile(); !done) return fail(done.error());
    if (auto done = link(); !done) return fail(done.error());
    if (auto done = take_back(); !done) return fail(done.error());
    return std::move(out_);
  }

private:
  const fs::path& folder() const { return out_.folder->path(); }

  expected<void> prepare() {
    const auto share = share_dir();
    auto header = read_file(share / "pragma_kernel.h");
    if (!header) return fail(header.error());
    auto runner = read_file(share / "runner.o");
    if (!runner) return fail(ec::not_found, "the runner's object file " + (share / "runner.o").string() + " is missing", "build the target pragma_share");
    // 0711: the folder is handed to the compiler's uid for the time of the build.
    auto made = temp_dir::create("pragma-build-", 0711);
    if (!made) return fail(made.error());
    out_.folder = std::make_shared<temp_dir>(std::move(*made));
    out_.compiler_version = cc_.version;
    out_.executable = folder() / "candidate";
    for (auto [name, content] : {std::pair<const char*, std::string_view>{"candidate.cpp", c_.source}, {"pragma_kernel.h", *header}, {"runner.o", *runner}})
      if (auto done = put(folder() / name, content); !done) return done;
    return {};
  }

  /// A step for which the machine had no process is made again: that is nobody's fault.
  expected<void> step(const std::vector<std::string>& argv, const std::string& what) {
    for (int tries = 1;; ++tries) {
      auto result = run_tool(folder(), argv, options_);
      if (!result) return fail(result.error());
      if (clang_ && options_.want_remarks) take_remarks(*result);
      const auto text = readable_log(result->err + result->out, folder());
      if (result->ok()) {
        out_.log += text;
        return {};
      }
      if (result->cancelled || result->timed_out || !lacked_process(text)) return compile_error(*result, text, what, options_);
      if (tries == most_step_tries) return fail(ec::busy, what + " found no process for the compiler's parts: " + first_error(text), "too many processes of this user run: `ulimit -u`");
      std::this_thread::sleep_for(step_pause * tries);
    }
  }

  /// Remarks and diagnostics share a stream; a remark is its line and the quoted source below it.
  void take_remarks(process_result& result) {
    std::string rest;
    bool in_remark = false;
    for (const auto& line : split(result.err, '\n')) {
      if (line.find(": remark: ") != std::string::npos) in_remark = true;
      else if (line.find(": warning: ") != std::string::npos || line.find("error: ") != std::string::npos) in_remark = false;
      (in_remark ? out_.remarks_text : rest) += line + "\n";
    }
    result.err = std::move(rest);
  }

  expected<void> compile() {
    // Ours first, so that the candidate's win; the linking step gets none of them: -ffast-math there would switch
    // flush-to-zero on for the whole process, which a drop-in kernel must not do to its host either.
    std::vector<std::string> argv = {cc_.path, "-std=c++20", "-O2", clang_ ? "-fopenmp-simd" : "-fopenmp", "-fno-lto", "-pipe",
                                     "-fdiagnostics-color=never", clang_ ? "-ferror-limit=30" : "-fmax-errors=30", "-I."};
    argv.insert(argv.end(), c_.flags.begin(), c_.flags.end());
    argv.insert(argv.end(), options_.extra_flags.begin(), options_.extra_flags.end());
    if (options_.want_remarks) {
      if (clang_) argv.insert(argv.end(), {"-Rpass=loop-vectorize|slp-vectorizer", "-Rpass-missed=loop-vectorize|slp-vectorizer", "-Rpass-analysis=loop-vectorize"});
      else argv.push_back("-fopt-info-vec-all=remarks.txt");
    }
    if (options_.want_assembly) {
      argv.insert(argv.end(), {"-S", "candidate.cpp", "-o", "candidate.s"});
      if (auto done = step(argv, "compiling"); !done) return done;
      if (auto done = step({cc_.path, "-c", "candidate.s", "-o", "candidate.o"}, "assembling"); !done) return done;
      auto text = take(folder() / "candidate.s", defaults::build_file_bytes);
      if (!text) return fail(text.error());
      out_.assembly = std::move(*text);
    } else {
      argv.insert(argv.end(), {"-c", "candidate.cpp", "-o", "candidate.o"});
      if (auto done = step(argv, "compiling"); !done) return done;
    }
    if (options_.want_remarks && !clang_)
      if (auto text = take(folder() / "remarks.txt", defaults::build_file_bytes)) out_.remarks_text = std::move(*text);
    return {};
  }

  expected<void> link() {
    // What the linker says of a success is its warning about dlopen in libgomp's offloading, which is never used here.
    // It starts in the runner, before the C library looks for the candidate's resolvers; and the runner's functions of before main come first.
    std::vector<std::string> argv = {cc_.path, "-static", "-Wl,-e,pragma_start", "runner.o", "candidate.o", "-o", "candidate"};
    if (!clang_) argv.push_back("-fopenmp");
    argv.push_back("-lm");
    const auto log = out_.log;
    auto done = step(argv, "linking");
    out_.log = log;
    return done;
  }

  /// From here the files are ours again: nothing that ran as the compiler can change what was hashed.
  expected<void> take_back() {
    struct stat info {};
    if (::lstat(out_.executable.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
      return fail(ec::build_failed, "the compiler left no executable");
    if (::geteuid() == 0 && (::lchown(folder().c_str(), 0, 0) != 0 || ::lchown(out_.executable.c_str(), 0, 0) != 0))
      return fail(ec::io_error, "cannot take " + folder().string() + " back from the compiler's uid: " + std::strerror(errno));
    ::chmod(out_.executable.c_str(), 0755);
    auto binary = take(out_.executable, max_executable_bytes);
    if (!binary) return fail(binary.error());
    if (auto sound = check_executable(*binary); !sound) return fail(sound.error());
    out_.binary_hash = sha256_hex(*binary);
    return {};
  }

  const candidate& c_;
  const driver& cc_;
  const build_options& options_;
  bool clang_;
  build_output out_;
};

} // namespace

std::vector<std::pair<std::string, std::string>> compilers() {
  std::vector<std::pair<std::string, std::string>> found;
  for (const char* name : {"gcc", "clang"})
    if (!driver_of(name).path.empty()) found.push_back({name, driver_of(name).version});
  return found;
}

double compile_seconds(size_t source_bytes) { return defaults::build_cpu_seconds + defaults::build_seconds_a_mib * static_cast<double>(source_bytes) / (1 << 20); }

expected<build_output> build_candidate(const candidate& c, const build_options& chosen) {
  auto options = chosen;
  if (options.cpu_seconds <= 0) options.cpu_seconds = compile_seconds(c.source.size());
  if (options.wall_seconds <= 0) options.wall_seconds = defaults::most_build_delay * options.cpu_seconds;
  if (!find_language(c.language)) return fail(ec::invalid_argument, "language '" + printable(c.language) + "' is not known", language_names());
  if (in_python(c.language)) return build_python(c, options);
  const auto start = std::chrono::steady_clock::now();
  const auto cc = checked_driver(c);
  if (!cc) return fail(cc.error());
  auto out = native_build(c, **cc, options).run();
  if (out) out->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

} // namespace pragma
