// How the process of a candidate in machine code is started: its executable, environment, limits and sandbox. Used by runner_process.cpp;
// python_process.hpp does the same for Python.
#pragma once

#include "base/subprocess.hpp"
#include "execution/runner_process.hpp"
#include "sandbox/sandbox.hpp"

namespace pragma {

/// The number of threads, and for parameters, inputs and outputs "slots slot_bytes count" and for each tensor "dtype ndim shape... offset bytes":
/// what runner.cpp and candidate_runner.py read.
std::string layout_text(const runner_memory& memory, int threads);

/// Fills `spec` and `sandbox`. The descriptor of the executable, for the caller to close after the start.
expected<int> prepare_native(const build_output& built, const runner_memory& memory, const runner_options& options, const std::string& layout,
                             process_spec& spec, sandbox_options& sandbox);

} // namespace pragma
