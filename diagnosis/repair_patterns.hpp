// The tables of known failures behind repairs_for(): one for C++ candidates, one for Triton's. Internal to diagnosis/.
#pragma once

#include <vector>

namespace pragma::diagnosis_detail {

/// One known failure. It applies when the text holds any of `any` and, where given, also `also`, but not `unless`.
struct pattern {
  const char* stages; ///< "build load run compare audit measure": words; "" = every stage
  std::vector<const char*> any;
  const char* also;
  const char* unless;
  const char* cause;
  const char* remedy;
};

const std::vector<pattern>& triton_patterns();

} // namespace pragma::diagnosis_detail
