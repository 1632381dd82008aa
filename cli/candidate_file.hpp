// A candidate as a user names it: a C++ source, a Triton module, or the best version of a run.json. Used by pragma verify and profile
// and by the MCP server.
#pragma once

#include "actors/messages.hpp"

#include <string>
#include <vector>

namespace pragma::cli {

/// The compiler and flags are for a C++ source; a run.json has its own. not_found, parse_error.
expected<candidate> read_candidate(const std::string& file, const std::string& compiler, const std::vector<std::string>& flags);

/// invalid_argument when it is not in the language that this backend runs.
expected<void> check_language(const candidate& c, const std::string& backend);

} // namespace pragma::cli
