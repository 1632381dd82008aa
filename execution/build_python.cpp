#include "execution/build.hpp"

#include "base/defaults.hpp"
#include "base/hash.hpp"
#include "base/language.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "execution/python_process.hpp"
#include "reference/python_search.hpp"

#include <chrono>
#include <cmath>

namespace pragma {

namespace fs = std::filesystem;

expected<build_output> python_shell(const build_options& options) {
  const auto python = likely_python();
  if (python.executable.empty())
    return fail(ec::tool_failed, "no Python with Torch: " + join(python.rejected, "; "), "set PRAGMA_PYTHON to a Python that imports torch and triton");
  // 0711: other users pass through to the module and the scratch folder, and see nothing else.
  auto made = temp_dir::create("pragma-build-", 0711);
  if (!made) return fail(made.error());
  build_output out;
  out.folder = std::make_shared<temp_dir>(std::move(*made));
  out.language = language_name::triton; // until there is a module
  out.kept = std::make_shared<kept_runner>();
  out.device = options.device;
  out.tf32 = options.tf32;
  out.executable = python.executable;
  out.module = out.folder->path() / "candidate.py";
  out.scratch = out.folder->path() / "scratch";
  out.compiler_version = "python " + python.executable;
  std::error_code failed;
  fs::create_directory(out.scratch, failed);
  if (failed) return fail(ec::io_error, "cannot prepare " + out.folder->path().string() + ": " + failed.message());
  return out;
}

expected<build_output> build_python(const candidate& c, const build_options& options) {
  const auto start = std::chrono::steady_clock::now();
  if (c.source.size() > defaults::max_built_source)
    return fail(ec::build_failed, "the source has " + format_bytes(static_cast<double>(c.source.size())) + ", more than the limit of " +
                                      format_bytes(static_cast<double>(defaults::max_built_source)));
  auto shell = options.shell ? expected<build_output>(*options.shell) : python_shell(options);
  if (!shell) return shell;
  auto& out = *shell;
  if (const auto at = barred_at(out.executable); !at.empty()) return fail(unreachable_python(out.executable.string(), at));
  auto scripts = readable_scripts();
  if (!scripts) return fail(scripts.error());
  const auto checker = *scripts / "check_module.py";
  if (auto written = write_file_atomic(out.module, c.source); !written) return fail(written.error());
  std::error_code failed;
  fs::permissions(out.module, fs::perms(0644), failed);
  if (failed) return fail(ec::io_error, "cannot prepare " + out.module.string() + ": " + failed.message());

  process_spec spec;
  spec.argv = {out.executable.string(), "-I", "-B", checker.string(), out.module.string()};
  spec.limits.wall_seconds = options.wall_seconds;
  spec.limits.cpu_seconds = static_cast<uint64_t>(std::ceil(options.cpu_seconds));
  spec.cancel = options.cancel;
  sandbox_options sandbox;
  sandbox.policy = sandbox_policy::compiler;
  sandbox.readable = python_folders(out.executable.string());
  sandbox.readable.push_back(checker);
  sandbox.readable.push_back(out.module);
  if (auto done = apply_sandbox(spec, sandbox); !done) return fail(done.error());
  auto ran = run_process(spec);
  if (!ran) return fail(ran.error());
  if (ran->cancelled) return fail(ec::interrupted, "interrupted while the module was checked");
  if (ran->timed_out) return fail(ec::busy, "reading the module " + describe_end(*ran, options.wall_seconds), "this machine is busy: try again when less runs here");
  if (!ran->ok()) {
    const auto said = trim(cut_lines(printable(ran->err), 2, 10));
    // The module is not run here, so these are the checker's own words.
    if (said.find("PermissionError") != std::string::npos)
      return fail(ec::tool_failed, "the sandbox's user cannot read " + out.module.string(), "set TMPDIR to a folder that every user may enter (chmod o+x)");
    return fail(ec::build_failed, "reading the module failed: " + (said.empty() ? describe_end(*ran, options.wall_seconds) : said), said);
  }
  out.binary_hash = sha256_hex(c.source);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return shell;
}

} // namespace pragma
