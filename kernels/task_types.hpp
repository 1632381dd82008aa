// The narrow types of a task, in which products are faster than in float32: half types, int8, and where they may be used TF32.
#pragma once

#include "base/tf32.hpp"
#include "kernels/task.hpp"

namespace pragma {

/// Has the task a tensor of this type, or does its graph compute one on the way (autocast)?
bool uses(const task& t, dtype type);

/// May a kernel round factors of float32 somewhere in this task?
bool rounds_to_tf32(const task& t, tf32_use allowed);

} // namespace pragma
