// How the process of a candidate in Python is started: its interpreter, environment and sandbox. Used by runner_process.cpp only.
#pragma once

#include "base/subprocess.hpp"
#include "kernels/runner_process.hpp"
#include "kernels/sandbox.hpp"

namespace pragma {

/// Fills `spec` and `sandbox`, and puts the task's file beside the module, where the sandbox's uid can read it. `layout`: of the tensors, as
/// candidate_runner.py reads it.
expected<void> prepare_python(const build_output& built, const runner_memory& memory, const runner_options& options, const std::string& layout,
                              process_spec& spec, sandbox_options& sandbox);

} // namespace pragma
