// Natural loops of a disassembled function. A backward jump alone is no loop: compilers move unlikely blocks to the end
// of a function and jump back from there. Internal to profilers/.
#pragma once

#include "profilers/formats.hpp"

namespace pragma::formats {

/// Instructions of each innermost natural loop, as indices into `body`, in address order.
std::vector<std::vector<size_t>> innermost_natural_loops(const std::vector<instruction>& body);

} // namespace pragma::formats
