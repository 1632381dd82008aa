// `pragma node`, which is also all that the light executable pragma-node does.
#pragma once

#include "cli/commands.hpp"

namespace pragma::cli {

void add_node(CLI::App& command, action& chosen);

/// --data DIR for a command and all below it: PRAGMA_HOME of this process and of those that it starts.
void add_data_option(CLI::App& command);

/// The end of main(): parses, runs what was chosen, leaves. Exit code 2 for a wrong command line.
int parse_and_run(CLI::App& app, const action& chosen, int argc, char** argv);

} // namespace pragma::cli
