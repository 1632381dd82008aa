// Whose kernels ran? A profiler outside of the candidate's process names what was launched; the module's text says which kernels are
// its own. Used by the workbench after profiling, where no operators may be left to Torch or to other libraries; docs/devices.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pragma {

/// Names of the functions that a Triton module compiles: those decorated with something of jit, and those handed to a call of jit(...).
std::vector<std::string> jit_functions(std::string_view source);

/// Those of `launched` that are no function of the module, each once. Early versions of Triton append letters and digits for the types of the
/// arguments ("add_kernel_0d1d2de"): such a name is the function's, too.
std::vector<std::string> foreign_kernels(std::string_view source, const std::vector<std::string>& launched);

} // namespace pragma
