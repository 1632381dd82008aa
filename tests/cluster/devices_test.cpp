// Accelerators of nodes: what a node offers, who gets which device, and what the processor beside them may do meanwhile. No GPU is needed:
// the devices are described by hand.
#include "cluster/dispatcher.hpp"
#include "cluster/node.hpp"
#include "cluster/node_bench.hpp"

#include <catch2/catch.hpp>

using namespace pragma;
using Catch::Contains;

namespace {

device_facts cpu() { return {"cpu", "cpu", "EPYC", "zen3", 0, {}, {}}; }
device_facts gpu(int i) { return {"cuda:" + std::to_string(i), "cuda", "NVIDIA H200", "sm_90", 141ull << 30, {"ncu"}, {}}; }
node_facts node(const std::string& name, std::vector<device_facts> devices, int slots = 1) { return {name, "0.1.0", slots, std::move(devices)}; }

job a_job(const std::string& id, const std::string& run, const std::string& backend, bool exclusive) {
  job j{id, run, {}};
  j.needs.backend = backend;
  j.needs.exclusive = exclusive;
  return j;
}
job on_gpu(const std::string& id, const std::string& run) { return a_job(id, run, "cuda", true); }
job on_cpu(const std::string& id, const std::string& run) { return a_job(id, run, "cpu", true); }

const assignment* find(const dispatcher::orders& o, const std::string& job) {
  for (const auto& a : o.assign)
    if (a.job == job) return &a;
  return nullptr;
}

accelerator_status two_gpus() {
  accelerator_status s;
  s.backend = "cuda";
  s.executable = "/usr/bin/python3";
  s.torch = "2.11.0";
  s.triton = "3.6.0";
  for (int i = 0; i < 2; ++i) {
    accelerator a;
    a.where = {"cuda", i};
    a.limits.cpu = "NVIDIA H200";
    a.limits.arch = "sm_90";
    a.limits.memory_bytes = 150109880320;
    a.limits.compute_units = 132;
    s.devices.push_back(a);
  }
  s.profilers = {{"ncu", true, "2025.3", "", "90 metrics"}, {"other", false, "", "not installed", "5 metrics"}};
  return s;
}

} // namespace

TEST_CASE("a node offers each device by itself, with the profilers that work") {
  node_facts facts;
  std::vector<std::string> missing;
  offer(two_gpus(), facts, missing);
  REQUIRE(facts.devices.size() == 2);
  CHECK(facts.devices[1].id == "cuda:1");
  CHECK(facts.devices[1].backend == "cuda");
  CHECK(facts.devices[1].model == "NVIDIA H200");
  CHECK(facts.devices[1].arch == "sm_90");
  CHECK(facts.devices[1].memory_bytes == 150109880320ull);
  CHECK(facts.devices[1].tools == std::vector<std::string>{"ncu"});
  CHECK(missing == std::vector<std::string>{"other: not installed"});
}

TEST_CASE("a node whose Torch finds no device, or that has no Triton, says so and offers nothing") {
  node_facts facts;
  std::vector<std::string> missing;
  auto status = two_gpus();
  status.triton.clear();
  offer(status, facts, missing);
  REQUIRE(missing.size() == 1);
  CHECK_THAT(missing[0], Contains("cuda") && Contains("Triton"));
  status.devices.clear();
  status.problem = "torch 1.13.0 finds no cuda device";
  offer(status, facts, missing);
  CHECK(missing.back() == "cuda: torch 1.13.0 finds no cuda device");
  CHECK(facts.devices.empty());
}

TEST_CASE("an order is done on the device that was leased, whatever number the request had") {
  load_request request;
  request.backend = "cuda";
  request.device = 5;
  CHECK(on_leased(request, "cuda:1")->where().text() == "cuda:1");
  CHECK(on_leased(request, "cuda:0")->device == 0);
  CHECK(on_leased({}, "cpu")->where().text() == "cpu");
  for (const char* wrong : {"cpu", "rocm:0", "cuda:", "cuda:x", "cuda:1x", "cuda:-1"}) {
    INFO(wrong);
    CHECK_FALSE(on_leased(request, wrong));
  }
}

TEST_CASE("two devices of a node are leased to two runs; a third waits for whichever it settled on") {
  dispatcher d;
  d.joined(node("g", {cpu(), gpu(0), gpu(1)}), 0);
  for (const char* run : {"r1", "r2", "r3"}) d.submit(on_gpu(std::string(run) + "-verify", run), 0);
  const auto first = d.take_orders(0);
  REQUIRE(first.assign.size() == 2);
  CHECK(first.assign[0].device != first.assign[1].device);
  REQUIRE(d.answered(first.assign[0].job, first.assign[0].ticket, 1));
  REQUIRE(d.answered(first.assign[1].job, first.assign[1].ticket, 1));
  const auto second = d.take_orders(1);
  REQUIRE(second.assign.size() == 1);
  CHECK(second.assign[0].job == "r3-verify");
  // The next job of a run comes back to its own device, also when another one is free.
  const auto home = first.assign[0].device == second.assign[0].device ? first.assign[1] : first.assign[0];
  const auto run = home.job.substr(0, 2);
  d.submit(on_gpu(run + "-measure", run), 2);
  const auto third = d.take_orders(2);
  REQUIRE(third.assign.size() == 1);
  CHECK(third.assign[0].device == home.device);
}

TEST_CASE("work of a device takes no slot: the processor's small jobs go on beside it") {
  dispatcher d;
  d.joined(node("g", {cpu(), gpu(0), gpu(1)}, 1), 0);
  d.submit(on_gpu("g1", "r1"), 0);
  d.submit(on_gpu("g2", "r2"), 0);
  d.take_orders(0);
  d.submit(a_job("v1", "r3", "cpu", false), 1);
  d.submit(a_job("v2", "r3", "cpu", false), 1);
  const auto o = d.take_orders(1);
  CHECK(find(o, "v1"));
  CHECK_FALSE(find(o, "v2")); // one slot
}

TEST_CASE("work of a device does not run beside a measurement of the processor, nor the other way round") {
  dispatcher d;
  d.joined(node("g", {cpu(), gpu(0)}), 0);
  d.submit(on_gpu("g1", "r1"), 0);
  const auto first = d.take_orders(0);
  REQUIRE(find(first, "g1"));
  d.submit(on_cpu("c1", "r2"), 1);
  CHECK(d.take_orders(1).assign.empty());
  REQUIRE(d.answered("g1", find(first, "g1")->ticket, 2));
  const auto second = d.take_orders(2);
  REQUIRE(find(second, "c1"));
  d.submit(on_gpu("g2", "r1"), 3);
  CHECK(d.take_orders(3).assign.empty());
  REQUIRE(d.answered("c1", find(second, "c1")->ticket, 4));
  CHECK(find(d.take_orders(4), "g2"));
}

TEST_CASE("runs on two devices, busy without a pause, cannot keep a measurement of the processor waiting for ever, nor it them") {
  dispatcher d;
  d.joined(node("g", {cpu(), gpu(0), gpu(1)}), 0);
  std::map<std::string, std::pair<int, assignment>> running; ///< and the how manieth it was
  std::map<std::string, int> done;
  double now = 0;
  int given = 0;
  const auto take = [&] {
    for (const auto& a : d.take_orders(now).assign) running[a.job.substr(0, 2)] = {++given, a};
  };
  for (const char* run : {"g1", "g2", "c1", "c2"}) d.submit(a_job(std::string(run) + "-0", run, run[0] == 'g' ? "cuda" : "cpu", true), now);
  take();
  for (int step = 1; step <= 60; ++step) { // whoever began first ends, and asks again at once
    now = step;
    REQUIRE_FALSE(running.empty());
    const auto oldest = std::min_element(running.begin(), running.end(), [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    const auto run = oldest->first;
    const auto a = oldest->second.second;
    running.erase(oldest);
    REQUIRE(d.answered(a.job, a.ticket, now));
    d.submit(a_job(run + "-" + std::to_string(++done[run]), run, run[0] == 'g' ? "cuda" : "cpu", true), now);
    take();
    if (running.contains("c1") || running.contains("c2")) CHECK(running.size() == 1);
  }
  for (const char* run : {"g1", "g2", "c1", "c2"}) {
    INFO(run << " did " << done[run]);
    CHECK(done[run] >= 5);
  }
}

TEST_CASE("a job for a GPU goes past nodes that have none") {
  dispatcher d;
  d.joined(node("a", {cpu()}), 0);
  d.joined(node("b", {gpu(0)}), 0); // no processor to offer: it serves all the same
  d.submit(on_gpu("g1", "r1"), 0);
  d.submit(on_cpu("c1", "r2"), 0);
  const auto o = d.take_orders(0);
  REQUIRE(find(o, "g1"));
  CHECK(find(o, "g1")->node == "b");
  REQUIRE(find(o, "c1"));
  CHECK(find(o, "c1")->node == "a");
}
