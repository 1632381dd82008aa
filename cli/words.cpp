#include "cli/words.hpp"

#include "cli/terminal.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>

namespace pragma::cli {

namespace {

void collect(const CLI::App& app, const std::string& path, std::vector<command_words>& all) {
  command_words words{path, &app, {}, {}};
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) words.options.push_back("--" + name);
  const auto below = app.get_subcommands([](const CLI::App*) { return true; });
  for (const auto* sub : below)
    if (!sub->get_name().empty()) words.commands.push_back(sub->get_name());
  all.push_back(std::move(words));
  for (const auto* sub : below)
    if (!sub->get_name().empty()) collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), all);
}

/// For roff: a backslash, and a line that would begin with a request.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) (out += "\\&") += c;
    else out += c;
  }
  return out;
}

} // namespace

std::vector<command_words> tree_of(const CLI::App& app) {
  std::vector<command_words> all;
  collect(app, "", all);
  return all;
}

std::string manual_page(const CLI::App& app) {
  std::string out = ".TH PRAGMA 1\n.SH NAME\npragma \\- " + roff(app.get_description()) + "\n.SH SYNOPSIS\n.B pragma\nCOMMAND [OPTIONS]\n.SH COMMANDS\n";
  for (const auto& words : tree_of(app)) {
    if (words.path.empty()) continue;
    out += ".SS pragma " + roff(words.path) + "\n" + roff(words.command->get_description()) + "\n";
    for (const auto* option : words.command->get_options()) {
      const auto name = option->get_name(false, true);
      if (name.empty() || name == "-h,--help") continue;
      const auto fallback = option->get_default_str();
      out += ".TP\n.B " + roff(name) + "\n" + roff(option->get_description()) + (fallback.empty() ? "" : " (default: " + roff(fallback) + ")") + "\n";
    }
    if (const auto footer = words.command->get_footer(); !footer.empty()) out += ".PP\n.nf\n" + roff(footer) + "\n.fi\n";
  }
  return out + ".SH EXIT STATUS\n0 done, 2 usage, 3 not found or unsupported, 4 the task, 5 the candidate, 6 the machine or a remote, 130 interrupted.\n";
}

std::string misspelt_option(const CLI::App& app, const std::vector<std::string>& arguments) {
  const auto tree = tree_of(app);
  const auto* here = &tree.front();
  for (const auto& argument : arguments) {
    if (argument == "--") break;
    if (!argument.starts_with("--")) {
      const auto path = here->path.empty() ? argument : here->path + " " + argument;
      for (const auto& words : tree)
        if (words.path == path) here = &words;
      continue;
    }
    const auto name = argument.substr(0, argument.find('='));
    const auto& known = here->options;
    if (std::find(known.begin(), known.end(), name) != known.end() || std::find(tree.front().options.begin(), tree.front().options.end(), name) != tree.front().options.end()) continue;
    const auto near = nearest_names(name, known, 1);
    return "there is no option " + printable(name) + " of pragma" + (here->path.empty() ? "" : " " + here->path) + (near.empty() ? "" : "; did you mean " + near.front() + "?");
  }
  return {};
}

void add_words(CLI::App& app, action& chosen) {
  auto shell = std::make_shared<std::string>("bash");
  auto* complete = app.add_subcommand("completion", "print a script that completes commands and options in a shell");
  complete->add_option("shell", *shell, "bash, zsh or fish")->capture_default_str();
  complete->footer("Example:\n  source <(pragma completion bash)\n  source <(pragma completion zsh)\n  pragma completion fish | source");
  complete->callback([&app, &chosen, shell] {
    chosen = [&app, shell] {
      terminal out(false);
      const auto script = completion(app, *shell);
      if (!script) return report(out, script.error());
      std::fputs(script->c_str(), stdout);
      return 0;
    };
  });
  auto* manual = app.add_subcommand("manual", "print the manual page");
  manual->footer("Example:\n  pragma manual > ~/.local/share/man/man1/pragma.1");
  manual->callback([&app, &chosen] {
    chosen = [&app] {
      std::fputs(manual_page(app).c_str(), stdout);
      return 0;
    };
  });
}

} // namespace pragma::cli
