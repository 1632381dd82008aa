// A recorded run in the formats of other tools: annotations for code reviews, a timeline, hot lines. Pure functions of run.json.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"

#include <string>

namespace pragma {

/// SARIF 2.1.0 (OASIS) of the accepted version's findings that name a source line; `file` is the path that annotations carry, relative to
/// the repository ("kernel.cpp"). The others are counted in runs[0].properties.findings_without_line. not_found: no version was accepted.
expected<json> sarif_of(const json& document, const std::string& file);

/// Chrome's trace-event format, which Perfetto reads: a process for each machine, a track for each role (Coder, Verifier, Profiler), a
/// slice for each step; microseconds since the run's start. Steps follow each other as they did; an attempt is placed by the
/// second at which it ended. not_found: no attempt was made.
expected<json> timeline_of(const json& document);

/// Speedscope's file format: a profile for each attempt that a tool found hot lines in; weights are percent of the instructions of one call.
/// not_found: no attempt has lines.
expected<json> hot_lines_of(const json& document);

} // namespace pragma
