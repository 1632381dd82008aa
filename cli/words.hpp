// The command tree as words: completion for shells, a manual page, and the flag that was probably meant.
#pragma once

#include "cli/commands.hpp"

#include <string>
#include <vector>

namespace pragma::cli {

/// A script for bash that completes commands and their options.
std::string bash_completion(const CLI::App& app);
/// man(7) source of all commands, from their help.
std::string manual_page(const CLI::App& app);
/// "there is no option --x of pragma y; did you mean --z?"; empty where every --option is known.
std::string misspelt_option(const CLI::App& app, const std::vector<std::string>& arguments);

void add_words(CLI::App& app, action& chosen);     ///< completion, manual

} // namespace pragma::cli
