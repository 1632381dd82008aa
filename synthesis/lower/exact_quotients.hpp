// Where a step follows a division (`round(x / scale)`), the quotient has to be the one that Torch has, to the bit: a product with the reciprocal is one unit in the
// last place off, and beside a tie the step then goes the other way. Used by lower().
#pragma once

#include "synthesis/ir/tensor_ir.hpp"

namespace pragma::synthesis {

/// The same program, in which float32 divisions that a step follows are `exact_div`. Only those whose operands have Torch's bits: next to the rounding of a sum or
/// of an exponential that of the quotient is nothing.
tensor_program with_exact_quotients(tensor_program program);

} // namespace pragma::synthesis
