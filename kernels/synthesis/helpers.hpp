// The library of small functions that emitted sources draw from. Each is plain GCC/Clang vector-extension code, so that
// one text serves AVX2, AVX-512 and others; only what a kernel uses is copied into it.
#pragma once

#include <string>
#include <vector>

namespace pragma::synthesis {

struct helper {
  std::vector<std::string> names; ///< identifiers whose use pulls this helper in
  std::string code;
};

/// In an order in which each needs only earlier ones.
const std::vector<helper>& memory_helpers();    // helpers_memory.cpp: vector types, loads, stores, conversions
const std::vector<helper>& reduction_helpers(); // helpers_reduce.cpp: lanes to one value, scans, moments
const std::vector<helper>& anchor_helpers();    // helpers_anchor.cpp: register tile and packing of contractions
const std::vector<helper>& math_helpers();      // helpers_math.cpp: exp, log, tanh, erf, ...

} // namespace pragma::synthesis
