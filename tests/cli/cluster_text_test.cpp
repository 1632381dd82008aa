// `pragma cluster status` for a person.
#include "base/text.hpp"
#include "cli/cluster_text.hpp"

#include <catch2/catch.hpp>

using namespace pragma;

namespace {

member_status member(const std::string& name) {
  member_status m;
  m.node.facts = {name, "0.1.0", 2, {{"cpu", "cpu", "EPYC", "zen3", 8ull << 30, {"gcc"}, {"4 cores, 8 threads"}}}};
  m.node.leases = {{"cpu", "", 0}};
  m.round_trip_ms = 0.5;
  m.certificate_days = 400;
  return m;
}
std::string shown(const cluster_status& s) { return join(cli::status_lines(s), "\n"); }

} // namespace

TEST_CASE("what a node does is said in words, with how long a measurement has been going on") {
  cluster_status s;
  s.up_seconds = 10;
  auto m = member("a");
  CHECK(shown({}).find("no node has joined") != std::string::npos);
  s.members = {m};
  CHECK(shown(s).find("[free]") != std::string::npos);
  CHECK(shown(s).find("4 cores, 8 threads") != std::string::npos);
  m.node.jobs = {"word/run1/7 measure", "word/run2/3 verify"};
  m.node.leases = {{"cpu", "word/run1/7 measure", 8}};
  s.members = {m};
  CHECK(shown(s).find("[measuring run1, job 7, for 2.00 s]") != std::string::npos);
  CHECK(shown(s).find("\n  compiling and checking run2, job 3\n") != std::string::npos);
}

TEST_CASE("a node in quarantine says why and how it gets out; one that is gone is away; a certificate that ends soon shouts") {
  cluster_status s;
  auto m = member("a");
  m.node.state = node_state::quarantined;
  m.node.reason = "three times: no \x1b[31mspace";
  m.certificate_days = 3;
  auto gone = member("b");
  gone.node.state = node_state::away;
  gone.node.facts.devices.clear();
  s.members = {m, gone};
  const auto text = shown(s);
  CHECK(text.find("[quarantined]") != std::string::npos);
  CHECK(text.find("pragma cluster release a") != std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos); // a member's words cannot drive the terminal
  CHECK(text.find("EXPIRES IN 3 DAYS") != std::string::npos);
  CHECK(text.find("node b  away") != std::string::npos);
}

TEST_CASE("accelerators stand beside the processor, each with its own lease and tools") {
  cluster_status s;
  s.up_seconds = 10;
  auto m = member("a");
  m.node.facts.devices.push_back({"cuda:0", "cuda", "NVIDIA H200", "sm_90", 150109880320, {"ncu"}, {"sm_90", "132 compute units"}});
  m.node.facts.devices.push_back({"cuda:1", "cuda", "NVIDIA H200", "sm_90", 150109880320, {}, {}});
  m.node.jobs = {"word/run1/7 verify"};
  m.node.leases = {{"cpu", "", 0}, {"cuda:0", "word/run1/7 verify", 9}, {"cuda:1", "", 0}};
  m.missing = {"rocprofv3: not installed"};
  s.members = {m};
  const auto text = shown(s);
  CHECK(text.find("cuda:0   NVIDIA H200, 139.8 GiB  [compiling and checking run1, job 7, for 1.00 s]") != std::string::npos);
  CHECK(text.find("sm_90; 132 compute units\n           tools: ncu") != std::string::npos);
  CHECK(text.find("cuda:1   NVIDIA H200, 139.8 GiB  [free]\n           tools: none") != std::string::npos);
  CHECK(text.find("without rocprofv3: not installed") != std::string::npos);
}
