#include "cli/node_command.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/terminal.hpp"
#include "cluster/local_system.hpp"
#include "cluster/log.hpp"
#include "cluster/node.hpp"

#include <cstdlib>
#include <filesystem>
#include <memory>

namespace pragma::cli {

void add_node(CLI::App& command, action& chosen) {
  struct settings {
    std::string join, tls, name;
    log_options log;
    int slots = 0;
  };
  auto s = std::make_shared<settings>();
  command.add_option("--join", s->join, "HOST:PORT of the head; several with commas: whichever serves; this machine only dials out")->required();
  command.add_option("--tls", s->tls, "folder with ca.pem, cert.pem, key.pem (`pragma cluster ca issue NAME --role node`)");
  command.add_option("--name", s->name, "name in the cluster: the certificate's (default), or that with .SOMETHING; without --tls any (default: the host's)");
  command.add_option("--slots", s->slots, "verifications at once (default: half of the CPUs)")->check(CLI::Range(1, 1024));
  command.add_option("--log-format", s->log.format, "text or json (a line an event)")->capture_default_str();
  command.add_option("--log-level", s->log.level, "debug, info, warn or error")->capture_default_str();
  command.footer("Example:\n  pragma node --join 10.0.0.5:7447 --tls ~/pragma-tls\nCtrl-C finishes what is in flight and leaves; again: leaves at once.");
  command.callback([s, &chosen] {
    chosen = [s] {
      terminal out(false);
      auto heads = parse_addresses(s->join, 7447);
      if (!heads) return report(out, heads.error());
      s->log.who = "node";
      if (auto begun = begin_log(s->log); !begun) return report(out, begun.error());
      node_options options;
      options.heads = std::move(*heads);
      if (!s->tls.empty()) options.tls = s->tls;
      options.name = s->name;
      options.slots = s->slots;
      options.tasks = cache_home() / "cluster-tasks";
      auto served = serve_node(options, cancelled());
      return served ? 0 : report(out, served.error());
    };
  });
}

void add_data_option(CLI::App& command) {
  const auto use = [](const std::string& folder) {
    std::error_code problem;
    const auto whole = std::filesystem::absolute(folder, problem);
    ::setenv("PRAGMA_HOME", (problem ? std::filesystem::path(folder) : whole).c_str(), 1);
  };
  command.add_option_function<std::string>("--data", use, "folder of runs, knowledge and caches (default: PRAGMA_HOME, else ~/.local/share/pragma)")
      ->check([](const std::string& folder) { return folder.empty() ? std::string("an empty name is no folder") : std::string(); });
  for (auto* below : command.get_subcommands([](const CLI::App*) { return true; })) add_data_option(*below);
}

namespace {

/// What was typed wrongly, as every other error is told.
int refuse(CLI::App& app, const CLI::ParseError& wrong) {
  auto* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::string name = command->get_name(), message = wrong.what();
  for (const auto* above = command->get_parent(); above; above = above->get_parent()) name = above->get_name() + " " + name;
  if (std::vector<std::string> below; command->get_require_subcommand_min() > 0 && command->get_subcommands().empty()) {
    for (const auto* one : command->get_subcommands({})) below.push_back(one->get_name());
    message = name + " needs a command: " + join(below, ", ");
  }
  terminal out(false);
  return report(out, {ec::invalid_argument, message, "`" + name + " --help` has an example"});
}

} // namespace

int parse_and_run(CLI::App& app, const action& chosen, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return e.get_exit_code() == 0 ? app.exit(e) : refuse(app, e);
  }
  const int code = chosen ? chosen() : 2;
  if (local_system_was_used()) leave_process(code);
  return code;
}

} // namespace pragma::cli
