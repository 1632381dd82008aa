// The time as records, logs and reports carry it.
#pragma once

#include <string>

namespace pragma {

/// Now, to the second: "2026-11-21T20:15:00Z" (ISO 8601).
std::string utc_now();

} // namespace pragma
