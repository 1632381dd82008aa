// A real node in a process of its own, whose hardware is made up: it can be killed, frozen and cut off, and its work takes as long as a test wants.
//   made_up_bench HEAD:PORT NAME SECONDS_OF_A_JOB [TLS]
#include "cli/terminal.hpp"
#include "cluster/local_system.hpp"
#include "cluster/node.hpp"
#include "tests/fixtures/made_up_bench.hpp"

#include <cstdio>

using namespace pragma;

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  cli::catch_interrupts();
  node_options options;
  auto heads = parse_addresses(argv[1], 7447);
  if (!heads) return 2;
  options.heads = std::move(*heads);
  options.name = argv[2];
  options.bench = std::make_shared<test::made_up_bench>(options.name, std::stod(argv[3]));
  options.facts = test::made_up_facts(options.name, 2);
  if (argc > 4) options.tls = argv[4];
  const auto served = serve_node(options, cli::cancelled());
  if (!served) std::fprintf(stderr, "%s\n", served.error().message.c_str());
  leave_process(served ? 0 : 1);
}
