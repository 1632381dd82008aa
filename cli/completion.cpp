// What shells complete: the command tree as a script for each of them. docs: bash(1) "Programmable Completion", zshcompsys(1), fish complete(1).
#include "cli/words.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace pragma::cli {

namespace {

/// In single quotes for bash and zsh.
std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// In single quotes for fish, which knows two escapes in them.
std::string quoted_for_fish(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

const CLI::Option* option_of(const CLI::App& command, const std::string& name) {
  for (const auto* option : command.get_options())
    for (const auto& known : option->get_lnames())
      if ("--" + known == name) return option;
  return nullptr;
}

std::string described(const CLI::App& command, const std::string& option) {
  const auto* found = option_of(command, option);
  return found ? found->get_description() : std::string();
}

std::string for_bash(const std::vector<command_words>& tree) {
  std::string out = "# pragma: completion for bash. Source it, or write it to ~/.local/share/bash-completion/completions/pragma\n"
                    "declare -A _pragma_words=(\n";
  for (const auto& words : tree) out += "  [\"/" + words.path + "\"]=\"" + join(words.commands, " ") + (words.commands.empty() ? "" : " ") + join(words.options, " ") + "\"\n";
  return out + ")\n"
               "_pragma() {\n"
               "  local path= word current=${COMP_WORDS[COMP_CWORD]}\n"
               "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
               "    [[ -n ${_pragma_words[\"/${path:+$path }$word\"]+known} ]] && path=${path:+$path }$word\n"
               "  done\n"
               "  COMPREPLY=($(compgen -W \"${_pragma_words[\"/$path\"]}\" -- \"$current\"))\n"
               "}\n"
               "complete -o default -F _pragma pragma\n";
}

/// A line a word, "name:description", as _describe takes them.
std::string for_zsh(const std::vector<command_words>& tree) {
  std::string out = "#compdef pragma\n# pragma: completion for zsh. Source it after compinit, or write it to a file _pragma in a folder of $fpath\n"
                    "typeset -gA _pragma_words\n_pragma_words=(\n";
  for (const auto& words : tree) {
    std::string lines;
    for (const auto& name : words.commands) lines += name + ":" + words.command->get_subcommand(name)->get_description() + "\n";
    for (const auto& name : words.options) lines += name + ":" + described(*words.command, name) + "\n";
    out += "  " + in_quotes("/" + words.path) + " " + in_quotes(lines) + "\n";
  }
  return out + ")\n"
               "_pragma() {\n"
               "  local at= word next\n"
               "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
               "    next=${at:+$at }$word\n"
               "    (( ${+_pragma_words[/$next]} )) && at=$next\n"
               "  done\n"
               "  local -a known=(\"${(@f)_pragma_words[/$at]}\")\n"
               "  known=(\"${(@)known:#}\")\n"
               "  _describe pragma known\n"
               "  [[ $words[CURRENT] == -* ]] || _files\n"
               "}\n"
               "if [[ $funcstack[1] == _pragma ]]; then _pragma \"$@\"; elif (( $+functions[compdef] )); then compdef _pragma pragma; fi\n";
}

std::string for_fish(const std::vector<command_words>& tree) {
  std::string out = "# pragma: completion for fish. Source it, or write it to ~/.config/fish/completions/pragma.fish\nset -g __pragma_paths";
  for (const auto& words : tree)
    if (!words.path.empty()) out += " " + quoted_for_fish(words.path);
  out += "\nfunction __pragma_at --description 'the command so far is this one'\n"
         "  set -l at ''\n"
         "  for word in (commandline -opc)[2..-1]\n"
         "    set -l next (string trim -- \"$at $word\")\n"
         "    contains -- $next $__pragma_paths; and set at $next\n"
         "  end\n"
         "  test \"$at\" = \"$argv[1]\"\n"
         "end\n";
  for (const auto& words : tree) {
    const auto here = "complete -c pragma -n " + quoted_for_fish("__pragma_at " + quoted_for_fish(words.path));
    for (const auto& name : words.commands) out += here + " -a " + name + " -d " + quoted_for_fish(words.command->get_subcommand(name)->get_description()) + "\n";
    for (const auto& name : words.options) {
      const auto* option = option_of(*words.command, name);
      out += here + " -l " + name.substr(2) + (option && option->get_items_expected_max() > 0 ? " -r" : "") + " -d " + quoted_for_fish(described(*words.command, name)) + "\n";
    }
  }
  return out;
}

} // namespace

expected<std::string> completion(const CLI::App& app, const std::string& shell) {
  const auto tree = tree_of(app);
  if (shell == "bash") return for_bash(tree);
  if (shell == "zsh") return for_zsh(tree);
  if (shell == "fish") return for_fish(tree);
  return fail(ec::invalid_argument, "there is no completion for the shell '" + printable(shell) + "'", "bash, zsh and fish have one");
}

} // namespace pragma::cli
