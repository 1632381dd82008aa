// How a process of Python in which a model's code runs is started: its interpreter, environment and sandbox. Used by runner_process.cpp
// for candidates, and by drop_in.cpp for the check of a winner in the form in which its user gets it.
#pragma once

#include "base/subprocess.hpp"
#include "execution/runner_process.hpp"
#include "sandbox/sandbox.hpp"

namespace pragma {

/// Writes a file that the sandbox's uid can read; makes its folder where there is none.
expected<void> put_readable(const std::filesystem::path& file, std::string_view text);

/// For processes that find Torch where this user has it, as find_python() did; a candidate's own process has no such packages.
void say_user_base(process_spec& spec);

/// In a sandbox's scratch folder: what torch.compile makes there.
constexpr const char* inductor_folder = "inductor";

/// Generated code has a uid of its own where we are root, which cannot pass `at` (barred_at()) on its way to this Python; with what to do.
error unreachable_python(const std::string& python, const std::filesystem::path& at);

/// Our own scripts (share_dir()/python) where generated code's uid can read them: PRAGMA may lie below a folder that only root may enter. Then it is a copy that
/// lasts as long as this process.
expected<std::filesystem::path> readable_scripts();

/// Environment and sandbox (policy `device`) of such a process, which writes to `scratch` only. Its program, its limits and what else it may read
/// are the caller's to add. Errors: unsupported where its uid cannot reach that Python.
expected<void> confine_python(const backend& device, const std::string& python, const std::filesystem::path& scratch, int threads, process_spec& spec,
                              sandbox_options& sandbox);

/// Fills `spec` and `sandbox`, and puts the task's file into the build's folder, where the sandbox's uid can read it. `layout`: of the tensors, as
/// candidate_runner.py reads it.
expected<void> prepare_python(const build_output& built, const runner_memory& memory, const runner_options& options, const std::string& layout,
                              process_spec& spec, sandbox_options& sandbox);

} // namespace pragma
