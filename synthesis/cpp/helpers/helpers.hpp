// The library of small functions that emitted sources draw from. Each is plain GCC/Clang vector-extension code, so that
// one text serves AVX2, AVX-512 and others; only what a kernel uses is copied into it. A writer says what it uses (code.hpp).
#pragma once

#include <set>
#include <string>
#include <vector>

namespace pragma::synthesis {

struct helper {
  std::string name;               ///< what writers ask for
  std::vector<std::string> needs; ///< of the other helpers, directly
  std::string text;
};

/// In an order in which each needs only earlier ones.
const std::vector<helper>& memory_helpers();    // memory.cpp: vector types, loads, stores, conversions
const std::vector<helper>& half_helpers();      // half.cpp: float16 and bfloat16 in memory
const std::vector<helper>& reduction_helpers(); // reduce.cpp: the larger of two, lanes to one value, scans, moments
const std::vector<helper>& anchor_helpers();    // anchor.cpp: register tile and packing of contractions
const std::vector<helper>& pair_helpers();      // pairs.cpp: products of bfloat16
const std::vector<helper>& word_helpers();      // words.cpp: products of bfloat16 and int8 by words of 32 bits, on tiles where there are any
const std::vector<helper>& math_helpers();      // math.cpp: exp, log, tanh, erf, ...
/// All of these lists, one after the other.
const std::vector<helper>& all_helpers();

/// Is there a helper of that name?
bool is_helper(const std::string& name);
/// The vector types, and these helpers with all that they need.
std::string helpers_text(const std::set<std::string>& used, int lanes);

} // namespace pragma::synthesis
