// Candidate source -> executable (the candidate linked statically with our runner, so that it needs no open() at all),
// compiled inside the compiler sandbox with allow-listed flags. Used by the Verifier and the Profiler (twins).
#pragma once

#include "base/files.hpp"
#include "kernels/candidate.hpp"
#include "kernels/sandbox.hpp"

#include <filesystem>
#include <memory>

namespace pragma {

struct build_options {
  double wall_seconds = 60;
  std::vector<std::string> extra_flags;   ///< ours, not checked: "-g", "-march=x86-64-v3" for a profiling twin (the last -march wins)
  bool want_assembly = false;             ///< also keep candidate.s
  bool want_remarks = false;              ///< compiler vectorisation remarks into build_output::remarks_text
  const std::atomic<bool>* cancel = nullptr;
};

struct build_output {
  std::filesystem::path executable;       ///< valid while this object lives
  std::string binary_hash;                ///< sha256 of the executable
  std::string log;                        ///< compiler output, cut to what helps
  std::string assembly;                   ///< with want_assembly
  std::string remarks_text;               ///< with want_remarks: raw -fopt-info / -Rpass text
  std::string compiler_version;           ///< "gcc 12.2.0"
  double seconds = 0;
  std::shared_ptr<temp_dir> folder;       ///< owns the files
};

/// build_failed: error.message is one sentence, error.hint the compiler's log cut to what helps.
/// invalid_argument: a flag that is not allowed (names it and why).
expected<build_output> build_candidate(const candidate& c, const build_options& options = {});

/// Checks flags against the allow-list: -O0..-O3, -Ofast, -march/-mtune/-mprefer-vector-width, -m<isa>, -f<optimisation>,
/// -funroll..., -fopenmp(-simd), -ffast-math and its parts, -D<name>[=word], --param of known names, -std=, -W..., -g.
/// Refused: -fplugin, -B, @file, -I, -include, -l, -L, -Wl, -Wa, -x, -o, -specs, -wrapper, -fdump..., -save-temps, paths.
expected<void> check_flags(const std::vector<std::string>& flags);

/// Compilers found here: {"gcc", "gcc 12.2.0"}, {"clang", "clang 14.0.6"}.
std::vector<std::pair<std::string, std::string>> compilers();

} // namespace pragma
