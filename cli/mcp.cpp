// pragma mcp: PRAGMA's tools for a coding agent, over pipes or HTTP.
#include "cli/commands.hpp"
#include "cli/mcp_tools.hpp"
#include "cli/terminal.hpp"

#include "base/files.hpp"
#include "mcp/http.hpp"
#include "mcp/stdio.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace pragma::cli {

namespace {

struct mcp_settings {
  bool http = false;
  int port = 7450;
  std::string address = "127.0.0.1";
};

/// The protocol has stdout for itself: whatever else writes there goes to stderr.
int take_stdout() {
  const int mine = ::fcntl(1, F_DUPFD_CLOEXEC, 10);
  if (mine >= 0) ::dup2(2, 1);
  return mine;
}

int run_mcp(const mcp_settings& s) {
  terminal out(true); // people read stderr
  auto state = std::make_shared<mcp_state>();
  mcp::server server(mcp_features(state));
  if (!s.http) {
    const int channel = take_stdout();
    if (channel < 0) return report(out, {ec::io_error, "stdout cannot be used", "an MCP client starts this command with pipes"});
    mcp::serve_stdio(server, 0, channel, cancelled());
    ::close(channel);
    return 0;
  }
  const auto file = data_home() / "mcp-token";
  auto secret = web::kept_secret(file);
  if (!secret) return report(out, secret.error());
  web::listen_options options;
  options.address = s.address;
  options.port = s.port;
  options.secret = *secret;
  auto where = web::listener::open(options);
  if (!where) return report(out, where.error());
  mcp::serve_http(server, *where);
  out.line("mcp: " + where->address() + "/mcp, header Authorization: Bearer TOKEN with the token in " + file.string());
  where->run(cancelled());
  return 0;
}

} // namespace

void add_mcp(CLI::App& app, action& chosen) {
  auto s = std::make_shared<mcp_settings>();
  auto* command = app.add_subcommand("mcp", "serve these commands as tools to a coding agent (Model Context Protocol)");
  command->add_flag("--http", s->http, "over streamable HTTP on this machine, for several clients (default: pipes, for the client that starts it)");
  command->add_option("--port", s->port, "port of --http (0: any that is free)")->check(CLI::Range(0, 65535))->capture_default_str();
  command->add_option("--listen", s->address, "address of --http: loopback only")->capture_default_str();
  command->footer("Example, in a client's settings:\n  {\"mcpServers\": {\"pragma\": {\"command\": \"pragma\", \"args\": [\"mcp\"]}}}\nExample:\n  pragma mcp --http --port 7450");
  command->callback([s, &chosen] { chosen = [s] { return run_mcp(*s); }; });
}

} // namespace pragma::cli
