#include "cli/node_command.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/terminal.hpp"
#include "cluster/network.hpp"
#include "cluster/node.hpp"

#include <memory>

namespace pragma::cli {

void add_node(CLI::App& command, action& chosen) {
  struct settings {
    std::string join, tls, name;
    int slots = 0;
  };
  auto s = std::make_shared<settings>();
  command.add_option("--join", s->join, "HOST:PORT of the head; this machine only dials out")->required();
  command.add_option("--tls", s->tls, "folder with ca.pem, cert.pem, key.pem (`pragma cluster ca issue NAME`)");
  command.add_option("--name", s->name, "name in the cluster (default: the certificate's, else the host's)");
  command.add_option("--slots", s->slots, "verifications at once (default: half of the CPUs)")->check(CLI::Range(1, 1024));
  command.footer("Example:\n  pragma node --join 10.0.0.5:7447 --tls ~/pragma-tls\nCtrl-C finishes what is in flight and leaves; again: leaves at once.");
  command.callback([s, &chosen] {
    chosen = [s] {
      terminal out(false);
      auto head = parse_address(s->join, 7447);
      if (!head) return report(out, head.error());
      node_options options;
      options.head = std::move(*head);
      if (!s->tls.empty()) options.tls = s->tls;
      options.name = s->name;
      options.slots = s->slots;
      options.tasks = cache_home() / "cluster-tasks";
      auto served = serve_node(options, cancelled(), [&](const std::string& text) { out.line("node: " + printable(text)); });
      return served ? 0 : report(out, served.error());
    };
  });
}

int parse_and_run(CLI::App& app, const action& chosen, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  const int code = chosen ? chosen() : 2;
  if (network_was_used()) leave_process(code);
  return code;
}

} // namespace pragma::cli
