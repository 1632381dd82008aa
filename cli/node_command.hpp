// `pragma node`, which is also all that the light executable pragma-node does.
#pragma once

#include "cli/commands.hpp"

namespace pragma::cli {

void add_node(CLI::App& command, action& chosen);

} // namespace pragma::cli
