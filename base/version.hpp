// The program's version, as `pragma --version` and the members of a cluster say it.
#pragma once

namespace pragma {

inline constexpr const char* pragma_version = "0.1.0";

} // namespace pragma
