// pragma-node: `pragma node` alone, for machines that have neither RocksDB nor FAISS.
#include "cli/node_command.hpp"
#include "cli/terminal.hpp"

#include "base/version.hpp"

int main(int argc, char** argv) {
  pragma::cli::catch_interrupts();
  CLI::App app{"Offers this machine's hardware to a PRAGMA cluster: verifies, measures and profiles what its head sends.", "pragma-node"};
  app.set_version_flag("--version", std::string("pragma-node ") + pragma::pragma_version);
  pragma::cli::action chosen;
  pragma::cli::add_node(app, chosen);
  pragma::cli::add_data_option(app);
  return pragma::cli::parse_and_run(app, chosen, argc, argv);
}
