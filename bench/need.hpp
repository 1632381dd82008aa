// What the benchmarks share: the time since, and a value or the end of the program with its error.
#pragma once

#include "base/error.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace pragma::bench {

using clock_type = std::chrono::steady_clock;
inline double since(clock_type::time_point start) { return std::chrono::duration<double>(clock_type::now() - start).count(); }

template <class T> T need(expected<T> value) {
  if (!value) {
    std::fprintf(stderr, "%s\n", render(value.error()).c_str());
    std::exit(exit_code(value.error().code));
  }
  if constexpr (!std::is_void_v<T>) return std::move(*value);
}

} // namespace pragma::bench
