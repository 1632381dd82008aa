// Names of types and numbers in emitted C++.
#pragma once

#include "synthesis/ir/operators.hpp"

#include <string>

namespace pragma::synthesis {

/// Of an element in memory: "float", "bool".
std::string memory_type(dtype type);
/// Of a vector in registers: "vf", "vd", "vl", "vi" (also small integers and truth values).
std::string lane_type(dtype type);
/// The type in which sums and products over lanes are carried.
inline std::string wide_type(dtype type) { return is_floating(type) ? "double" : "int64_t"; }
/// Narrower than the lanes that hold it: results have to wrap.
inline bool wraps(dtype type) { return type == dtype::int16 || type == dtype::int8 || type == dtype::uint8; }

/// One number in a lane; a truth value is 0 or -1.
std::string lane_literal(double value, dtype type);
/// One number in memory.
std::string memory_literal(double value, dtype type);
/// What a reduction begins with, in the type that its lanes have in memory.
std::string identity_literal(identity start, dtype type);

} // namespace pragma::synthesis
