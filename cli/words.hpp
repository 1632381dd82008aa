// The command tree as words: completion for shells, a manual page, and the flag that was probably meant.
#pragma once

#include "base/error.hpp"
#include "cli/commands.hpp"

#include <string>
#include <vector>

namespace pragma::cli {

/// A command of the tree, with what may stand behind it.
struct command_words {
  std::string path;                  ///< "kb build"; empty: pragma itself
  const CLI::App* command = nullptr;
  std::vector<std::string> options;  ///< "--json"
  std::vector<std::string> commands;
};
/// All of them, each before those below it.
std::vector<command_words> tree_of(const CLI::App& app);

/// A script that completes commands and their options, for "bash", "zsh" or "fish"; invalid_argument names these.
expected<std::string> completion(const CLI::App& app, const std::string& shell);
/// man(7) source of all commands, from their help.
std::string manual_page(const CLI::App& app);
/// "there is no option --x of pragma y; did you mean --z?"; empty where every --option is known.
std::string misspelt_option(const CLI::App& app, const std::vector<std::string>& arguments);

void add_words(CLI::App& app, action& chosen);     ///< completion, manual

} // namespace pragma::cli
