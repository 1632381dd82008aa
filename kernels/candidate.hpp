// A candidate: one source (C++, or a Triton module in KernelBench's form) and how to build it. Written by a coder, identified by the hash of both.
#pragma once

#include "base/hash.hpp"
#include "base/json.hpp"

#include <string>
#include <vector>

namespace pragma {

struct candidate {
  std::string source;              ///< C++: one translation unit that defines pragma_kernel (execution/runner/pragma_kernel.h); Triton: a module with ModelNew
  std::string language = "c++";    ///< base/language.hpp; the backend says which it runs (devices/backend.hpp)
  std::string compiler = "gcc";    ///< "gcc" or "clang"; of C++ only
  std::vector<std::string> flags;  ///< allow-listed (execution/build.hpp); -O3 -march=native and the like
  std::string origin;              ///< who wrote it: "builtin", "llm:MODEL", "command", "user"
  std::string rationale;           ///< one or two sentences: what was changed and why
  std::string schedule;            ///< built-in coder: the schedule as JSON text; else empty
  std::string answers;             ///< class of the finding that it sets out to remove (diagnosis/finding.hpp); "" = none was named

  /// 12 hex digits over source, compiler (or language) and flags.
  std::string id() const {
    std::string all = language == "c++" ? compiler : language;
    for (const auto& flag : flags) all += '\0' + flag;
    return short_hash(all + '\0' + '\0' + source);
  }
};
PRAGMA_JSON(candidate, source, language, compiler, flags, origin, rationale, schedule, answers)

} // namespace pragma
