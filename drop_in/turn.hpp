// A process of Torch's that does what needs no device first (importing, compiling) and waits for its turn then. Used by the check of drop-ins and by who compiles their kernels.
#pragma once

#include "base/subprocess.hpp"
#include "sandbox/sandbox.hpp"

#include <filesystem>
#include <functional>

namespace pragma {

/// Tells the program which descriptor its turn comes by: before the sandbox is applied.
void announce_turn(process_spec& spec);

/// run_process(), of a program that says {"begun": seconds of a processor that it has used} in a line of its output, once, and then reads from that descriptor: that ends when `begin`
/// has ended, whose time is not charged to the program's limit. io_error without a pipe, else as run_process().
expected<process_result> run_in_turn(process_spec spec, const std::function<void(double cpu_seconds)>& begin);

/// Of `compiled` (build_output::scratch of the same module, another process's home) it has Triton's cache, to read and to write, and nothing else: what lies there must not run before
/// the module does. Empty, or without such a cache: nothing changes.
void use_compiled(const std::filesystem::path& compiled, process_spec& spec, sandbox_options& sandbox);

/// Seconds that the kernels of a drop-in's Python modules may take to be compiled, on top of what else is allowed.
double module_seconds(const std::filesystem::path& files);

} // namespace pragma
