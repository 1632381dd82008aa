// The one executable. Parse, run the chosen command, return its exit code.
#include "cli/commands.hpp"
#include "cli/terminal.hpp"

int main(int argc, char** argv) {
  pragma::cli::catch_interrupts();
  CLI::App app{"PRAGMA optimises kernels by reasoning from profiles: it writes, verifies, measures and diagnoses until the kernel is fast.", "pragma"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "pragma 0.1.0");
  app.footer("Example:\n  pragma optimize examples/normalization_rms.py\nExit codes: 0 done, 2 usage, 3 not found or unsupported, 4 task, 5 candidate, 6 machine, 130 interrupted.");
  pragma::cli::action chosen;
  pragma::cli::add_optimize(app, chosen);
  pragma::cli::add_candidate(app, chosen);
  pragma::cli::add_bench(app, chosen);
  pragma::cli::add_runs(app, chosen);
  pragma::cli::add_machine(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  return chosen ? chosen() : 2;
}
