// Candidate source -> what runs. C++: an executable (the candidate linked statically with our runner, so that it needs no open() at all),
// compiled inside the compiler sandbox with allow-listed flags. Python (Triton): the module, checked as text; its kernels are
// compiled when it starts, inside the sandbox it runs in. Used by the Verifier and the Profiler (twins).
#pragma once

#include "base/files.hpp"
#include "base/tf32.hpp"
#include "devices/backend.hpp"
#include "kernels/candidate.hpp"
#include "sandbox/sandbox.hpp"

#include <filesystem>
#include <memory>
#include <optional>

namespace pragma {

class runner_process;

/// The process of a Python candidate, which takes seconds to start: kept from its verification for the timing that follows, while the
/// build lives. A winner is confirmed with a build of its own, and so in a fresh process.
struct kept_runner {
  std::shared_ptr<runner_process> runner;
  std::shared_ptr<runner_process> prepared; ///< started before the candidate was there (runner_process::prepare())
  bool by_our_clock = false;              ///< the device's events see less of its calls than our clock does, and launches do not explain it
  std::optional<error> failure;           ///< why the candidate's process could not be started; once is enough
};

/// Seconds of CPU time that each program of the tool chain may use for a source of that many bytes.
double compile_seconds(size_t source_bytes);

struct build_options {
  double cpu_seconds = 0;                 ///< of each program of the tool chain; 0: compile_seconds(). Who needs more is refused: no load makes that longer
  double wall_seconds = 0;                ///< of one step; 0: several times as long. Who needs more is not to blame (busy)
  std::vector<std::string> extra_flags;   ///< ours, not checked: "-g", "-march=x86-64-v3" for a profiling twin (the last -march wins)
  bool want_assembly = false;             ///< also keep candidate.s
  bool want_remarks = false;              ///< compiler vectorisation remarks into build_output::remarks_text
  device_choice device;                   ///< Triton: where it will run; a module on "cpu" runs on Torch's CPU (tests of the protocol)
  tf32_use tf32 = tf32_use::none;         ///< Triton: where Torch's own products may round factors of float32
  const struct build_output* shell = nullptr; ///< Triton: built here, in a folder of its own that nothing was built in before
  const std::atomic<bool>* cancel = nullptr;
};

struct build_output {
  std::filesystem::path executable;       ///< valid while this object lives; Triton: the Python interpreter
  std::string binary_hash;                ///< sha256 of the executable; Triton: of the module, whose kernels are compiled from it
  std::string language = "c++";
  std::filesystem::path module, scratch;  ///< Triton: the source, and the one folder that its process may write (caches)
  device_choice device;
  tf32_use tf32 = tf32_use::none;
  std::shared_ptr<kept_runner> kept;      ///< Triton
  std::string log;                        ///< compiler output, cut to what helps
  std::string assembly;                   ///< with want_assembly
  std::string remarks_text;               ///< with want_remarks: raw -fopt-info / -Rpass text
  std::string compiler_version;           ///< "gcc 12.2.0"
  double seconds = 0;
  std::shared_ptr<temp_dir> folder;       ///< owns the files
};

/// build_failed: error.message is one sentence, error.hint the compiler's log cut to what helps. no_compiler: the candidate's is not installed here.
/// busy: the machine had no process for the compiler, several times, or no time for it.
/// invalid_argument: a flag that is not allowed (names it and why).
expected<build_output> build_candidate(const candidate& c, const build_options& options = {});

/// All of a build of a Python module but the module.
expected<build_output> python_shell(const build_options& options);
/// build_candidate() of a Python module: build_failed for what is no Python or defines no ModelNew; tool_failed without a Python.
expected<build_output> build_python(const candidate& c, const build_options& options);

/// Checks flags against the allow-list: -O0..-O3, -Ofast, -march/-mtune/-mprefer-vector-width, -m<isa>, -f<optimisation>,
/// -funroll..., -fopenmp(-simd), -ffast-math and its parts, -D<name>[=word], --param of known names, -std=, -W..., -g.
/// Refused: -fplugin, -B, @file, -I, -include, -l, -L, -Wl, -Wa, -x, -o, -specs, -wrapper, -fdump..., -save-temps, paths.
expected<void> check_flags(const std::vector<std::string>& flags);

/// Compilers found here: {"gcc", "gcc 12.2.0"}, {"clang", "clang 14.0.6"}.
std::vector<std::pair<std::string, std::string>> compilers();

} // namespace pragma
