// Garbage in a candidate's outputs and round them, before a call: what it does not write shows, and so does what it writes beside them.
#pragma once

#include "reference/reference.hpp"

#include <cstddef>
#include <string>

namespace pragma {

/// Fills every output of every slot (floating ones with NaN), and the rest of the pages that it lies on. `memory`: layout.total_bytes().
void poison_outputs(const tensor_layout& layout, std::byte* memory);

/// Empty, or what was written beside an output since poison_outputs().
std::string find_overrun(const tensor_layout& layout, const std::byte* memory);

} // namespace pragma
