// A cluster that works, for those who look at it: two real heads, nodes whose work is made up, users who begin one run after the other. Prints the address of
// the serving head's metrics and lives until its input ends.
//
//   cluster_stand_in build/bin/pragma
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "cluster/client.hpp"
#include "tests/fixtures/made_up_node.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

constexpr int nodes = 4, users = 3, attempts = 6;
constexpr double job_seconds = 0.2, most_seconds = 600;

uint16_t free_port() {
  for (std::random_device source;;) {
    const address one{"127.0.0.1", static_cast<uint16_t>(12000 + source() % 18000)};
    if (listen_on(one)) return one.port;
  }
}

/// Null: it did not listen.
std::optional<child_process> start_head(const std::string& exe, const fs::path& folder, const address& own, const address& other, uint16_t metrics, bool serves) {
  const auto name = std::to_string(own.port);
  process_spec spec;
  spec.argv = {exe, "head", "--listen", own.text(), "--peer", other.text(), "--tls", (folder / "ca/head").string(), "--ready-file", (folder / name).string(), "--log-level", "error", "--metrics", address{"127.0.0.1", metrics}.text()};
  if (serves) spec.argv.emplace_back("--serve");
  spec.env = {{"PRAGMA_HOME", (folder / ("home" + name)).string()}};
  spec.limits.wall_seconds = most_seconds;
  auto made = child_process::start(spec);
  if (!made) return std::nullopt;
  for (int i = 0; i < 1200; ++i, std::this_thread::sleep_for(std::chrono::milliseconds(50)))
    if (fs::exists(folder / name)) return std::move(*made);
  return std::nullopt;
}

void live(const std::vector<address>& heads, const fs::path& tls, int number, const std::atomic<bool>& over) {
  for (int i = 0; !over; ++i) {
    auto client = head_client::connect(heads, tls);
    if (!client) continue;
    run_order order;
    order.task = {"task" + std::to_string(number) + "-" + std::to_string(i) + ".py", "# made up", ""};
    order.request.stop.attempts = attempts;
    order.request.stop.roofline_share = 0;
    order.request.profile = false;
    (void)(*client)->run(order, [](const run_event&) {}, over, 5);
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: cluster_stand_in build/bin/pragma\n"), 2;
  ::signal(SIGPIPE, SIG_IGN);
  auto folder = temp_dir::create("pragma-cluster-stand-in-");
  if (!folder || !create_ca(folder->path() / "ca", "stand-in")) return 1;
  for (const auto& [name, what] : {std::pair{"head", role::head}, {"rack", role::node}, {"user0", role::user}, {"user1", role::user}, {"user2", role::user}})
    if (!issue_certificate(folder->path() / "ca", name, what)) return 1;
  const std::vector<address> heads{{"127.0.0.1", free_port()}, {"127.0.0.1", free_port()}};
  const auto metrics = free_port();
  auto first = start_head(argv[1], folder->path(), heads[0], heads[1], metrics, true), second = start_head(argv[1], folder->path(), heads[1], heads[0], free_port(), false);
  if (!first || !second) return std::fprintf(stderr, "a head did not start\n"), 1;
  std::vector<std::unique_ptr<test::made_up_node>> all;
  for (int i = 0; i < nodes; ++i) {
    test::made_up_node::options o;
    o.heads = heads;
    o.tls = folder->path() / "ca/rack";
    o.name = "rack.n" + std::to_string(i);
    o.job_seconds = job_seconds;
    all.push_back(std::make_unique<test::made_up_node>(o));
  }
  std::atomic<bool> over = false;
  std::vector<std::thread> people;
  for (int i = 0; i < users; ++i) people.emplace_back([&, i] { live(heads, folder->path() / "ca" / ("user" + std::to_string(i)), i, over); });
  std::printf("http://127.0.0.1:%d\n", metrics);
  std::fflush(stdout);
  while (std::getchar() != EOF) {}
  over = true;
  for (auto& p : people) p.join();
  all.clear();
  first->kill();
  second->kill();
}
