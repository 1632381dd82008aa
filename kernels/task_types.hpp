// The narrow types of a task: half types and int8, in which products are faster than in float32.
#pragma once

#include "kernels/task.hpp"

namespace pragma {

/// Has the task a tensor of this type, or does its graph compute one on the way (autocast)?
bool uses(const task& t, dtype type);

} // namespace pragma
