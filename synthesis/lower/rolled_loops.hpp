// Steps that a task writes one after the other in a loop of Python, put together again: a chain h[t] = a[t] * h[t - 1] + b[t] becomes one scan over all steps, and
// what is computed alike in each step is computed once for all of them. Used by lower().
#pragma once

#include "synthesis/ir/tensor_ir.hpp"

namespace pragma::synthesis {

constexpr int64_t least_rolled_steps = 8;

/// The same outputs, up to rounding. Returned unchanged where there is no such chain, or where its steps differ in more than the place of what they read.
tensor_program with_rolled_loops(const tensor_program& program);

} // namespace pragma::synthesis
