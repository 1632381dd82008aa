// The one executable. Parse, run the chosen command, return its exit code.
#include "cli/commands.hpp"
#include "cli/node_command.hpp"
#include "cli/terminal.hpp"
#include "cli/words.hpp"

#include "base/text.hpp"
#include "base/version.hpp"

#include <algorithm>

int main(int argc, char** argv) {
  pragma::cli::catch_interrupts();
  CLI::App app{"PRAGMA optimises kernels by reasoning from profiles: it writes, verifies, measures and diagnoses until the kernel is fast.", "pragma"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("pragma ") + pragma::pragma_version);
  app.footer("Example:\n  pragma optimize examples/normalization_rms.py\nExit codes: 0 done, 2 usage, 3 not found or unsupported, 4 task, 5 candidate, 6 machine, 130 interrupted.");
  pragma::cli::action chosen;
  pragma::cli::add_optimize(app, chosen);
  pragma::cli::add_candidate(app, chosen);
  pragma::cli::add_bench(app, chosen);
  pragma::cli::add_runs(app, chosen);
  pragma::cli::add_compare(app, chosen);
  pragma::cli::add_diagnose(app, chosen);
  pragma::cli::add_ask(app, chosen);
  pragma::cli::add_export(app, chosen);
  pragma::cli::add_kb(app, chosen);
  pragma::cli::add_profilers(app, chosen);
  pragma::cli::add_cluster(app, chosen);
  pragma::cli::add_mcp(app, chosen);
  pragma::cli::add_dashboard(app, chosen);
  pragma::cli::add_machine(app, chosen);
  pragma::cli::add_words(app, chosen);
  pragma::cli::add_data_option(app);
  // A misspelt command deserves more than "a subcommand is required".
  if (argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> names;
    for (const auto* command : app.get_subcommands({})) names.push_back(command->get_name());
    if (std::find(names.begin(), names.end(), argv[1]) == names.end()) {
      const auto near = pragma::nearest_names(argv[1], names, 1);
      pragma::cli::terminal out(false);
      return pragma::cli::report(out, {pragma::ec::invalid_argument, std::string("there is no command '") + argv[1] + "'",
                                       near.empty() ? "the commands are: " + pragma::join(names, ", ") : "did you mean " + near.front() + "?"});
    }
  }
  if (const auto wrong = pragma::cli::misspelt_option(app, std::vector<std::string>(argv + std::min(argc, 1), argv + argc)); !wrong.empty()) {
    pragma::cli::terminal out(false);
    return pragma::cli::report(out, {pragma::ec::invalid_argument, wrong, "--help lists the options"});
  }
  return pragma::cli::parse_and_run(app, chosen, argc, argv);
}
