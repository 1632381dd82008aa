// Sums of rows, written so that loops find them sooner: a log_softmax by its parts, a sum over everything row by row, all pairs of rows
// multiplied element by element as a matrix product. Used by simplify() (algebra.hpp).
#pragma once

#include "synthesis/ir/tensor_ir.hpp"

namespace pragma::synthesis {

/// The same outputs, up to the order in which floats are added. Returned unchanged where nothing is gained.
tensor_program with_row_sums(const tensor_program& program);

} // namespace pragma::synthesis
