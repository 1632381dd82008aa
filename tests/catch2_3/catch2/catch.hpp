// Catch2 3 (Debian 13) by the names of Catch2 2 (Debian 12), which the tests use. On the include path only where version 3 is installed.
#pragma once

#include <catch2/catch_all.hpp>

namespace Catch {

inline auto Contains(const std::string& part) { return Matchers::ContainsSubstring(part); }
using Matchers::EndsWith;
using Matchers::StartsWith;

} // namespace Catch

using Catch::Approx;
