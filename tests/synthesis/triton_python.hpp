// A Python with the real Triton, for tests that need no GPU: $PRAGMA_TRITON_PYTHON, else $PRAGMA_OTHER_PYTHON.
#pragma once

#include "base/subprocess.hpp"

#include <cstdlib>
#include <string>

namespace pragma::test {

/// The first that imports all of `modules` ("torch, triton"); empty where none does.
inline std::string python_with(const std::string& modules) {
  for (const char* name : {"PRAGMA_TRITON_PYTHON", "PRAGMA_OTHER_PYTHON"}) {
    const char* python = std::getenv(name);
    if (!python || !*python) continue;
    process_spec spec;
    spec.argv = {python, "-c", "import " + modules};
    spec.limits.wall_seconds = 120;
    if (const auto ran = run_process(spec); ran && ran->ok()) return python;
  }
  return {};
}

} // namespace pragma::test
