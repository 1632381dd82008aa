// A real node in a process of its own, whose hardware is made up: it can be killed, frozen and cut off, and its work takes as long as a test wants.
//   made_up_bench HEAD:PORT NAME SECONDS_OF_A_JOB [TLS]
#include "cli/terminal.hpp"
#include "cluster/local_system.hpp"
#include "cluster/node.hpp"
#include "cluster/node_bench.hpp"
#include "tests/fixtures/made_up_results.hpp"

#include <chrono>
#include <cstdio>
#include <thread>

using namespace pragma;

namespace {

class made_up_bench : public order_bench {
public:
  made_up_bench(std::string node, double seconds) : node_(std::move(node)), seconds_(seconds) {}
  work_answer perform(const work_order& order, const std::string& device) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds_);
    while (!cancelled_ && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    auto answer = test::made_up_answer(order, node_, device);
    if (cancelled_) {
      answer.result = nullptr;
      answer.failure = failure::of({ec::interrupted, "interrupted", ""});
    }
    return answer;
  }
  void forget(const std::string&) override {}
  void cancel() override { cancelled_ = true; }
  void begin() override { cancelled_ = false; }

private:
  std::string node_;
  double seconds_;
  std::atomic<bool> cancelled_ = false;
};

} // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  cli::catch_interrupts();
  node_options options;
  auto heads = parse_addresses(argv[1], 7447);
  if (!heads) return 2;
  options.heads = std::move(*heads);
  options.name = argv[2];
  options.bench = std::make_shared<made_up_bench>(options.name, std::stod(argv[3]));
  options.facts = test::made_up_facts(options.name, 2);
  if (argc > 4) options.tls = argv[4];
  const auto served = serve_node(options, cli::cancelled());
  if (!served) std::fprintf(stderr, "%s\n", served.error().message.c_str());
  leave_process(served ? 0 : 1);
}
