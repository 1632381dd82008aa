// Simplifications that hold for all inputs and make a contraction smaller: a sum over what a matrix product or a
// convolution computes needs the sum of one operand only, that of a log_softmax needs no pass of its own. `--no-algebra` leaves them out. Used by builtin_coder::create.
#pragma once

#include "synthesis/ir/tensor_ir.hpp"

namespace pragma::synthesis {

/// The same outputs with less work; each simplification is a line in `redundant`. Returned unchanged where nothing is gained.
tensor_program simplify(const tensor_program& program);

} // namespace pragma::synthesis
