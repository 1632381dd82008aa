// Placement, leases, fairness, and what happens when nodes vanish: deterministic, with times handed in.
#include "cluster/dispatcher.hpp"
#include "cluster/quota.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>

using namespace pragma;

namespace {

device_facts cpu() { return {"cpu", "cpu", "EPYC", "zen3", 0, {"callgrind"}, {}}; }
device_facts gpu(int i) { return {"cuda:" + std::to_string(i), "cuda", "H200", "sm_90", 141ull << 30, {"ncu"}, {}}; }
node_facts node(const std::string& name, std::vector<device_facts> devices = {cpu()}, int slots = 2) { return {name, "0.1.0", slots, std::move(devices)}; }

job verify_job(const std::string& id, const std::string& run = "r1") { return {id, run, {}}; }
job measure_job(const std::string& id, const std::string& run = "r1", const std::string& backend = "cpu") {
  job j{id, run, {}};
  j.needs.backend = backend;
  j.needs.exclusive = true;
  return j;
}

const assignment& of(const dispatcher::orders& o, const std::string& job) {
  for (const auto& a : o.assign)
    if (a.job == job) return a;
  FAIL("job " << job << " was not assigned");
  return o.assign.front();
}
bool has(const dispatcher::orders& o, const std::string& job) {
  return std::any_of(o.assign.begin(), o.assign.end(), [&](const auto& a) { return a.job == job; });
}

} // namespace

TEST_CASE("a measurement has a CPU node for itself; other nodes go on") {
  dispatcher d;
  d.joined(node("a"), 0);
  d.joined(node("b"), 0);
  d.submit(measure_job("m"), 1);
  d.submit(verify_job("v1"), 1);
  d.submit(verify_job("v2"), 1);
  d.submit(verify_job("v3"), 1);
  const auto first = d.take_orders(1);
  REQUIRE(first.assign.size() == 3);
  const auto where = of(first, "m").node;
  CHECK(of(first, "v1").node != where);
  CHECK(of(first, "v2").node != where);
  CHECK_FALSE(has(first, "v3")); // two slots on the other node
  CHECK(d.answered("m", of(first, "m").ticket, 2));
  CHECK(of(d.take_orders(2), "v3").node == where);
}

TEST_CASE("a job that wants a machine by a name that is no text waits like any other that nobody can do") {
  dispatcher d;
  auto odd = measure_job("m");
  odd.needs.arch = "sm\xbc";
  d.submit(odd, 0);
  CHECK(d.take_orders(0).assign.empty());
  d.joined(node("a"), 1);
  d.submit(measure_job("n", "r2"), 1);
  CHECK(has(d.take_orders(1), "n"));
  CHECK(d.queued() == 1);
}

TEST_CASE("small jobs cannot keep a measurement waiting for ever") {
  dispatcher d;
  d.joined(node("a"), 0);
  d.submit(verify_job("v1", "other"), 0);
  const auto first = d.take_orders(0);
  d.submit(measure_job("m"), 1);
  d.submit(verify_job("v2", "other"), 1);
  const auto second = d.take_orders(1);
  CHECK(second.assign.empty()); // the node is reserved until v1 is done
  REQUIRE(d.answered("v1", of(first, "v1").ticket, 2));
  CHECK(has(d.take_orders(2), "m"));
}

TEST_CASE("GPU leases are per device, and jobs beside them go on") {
  dispatcher d;
  d.joined(node("g", {cpu(), gpu(0), gpu(1)}, 4), 0);
  for (const char* run : {"r1", "r2", "r3"}) d.submit(measure_job(std::string("m-") + run, run, "cuda"), 0);
  d.submit(verify_job("v"), 0);
  const auto o = d.take_orders(0);
  CHECK(o.assign.size() == 3); // two devices, one slot
  CHECK(has(o, "v"));
}

TEST_CASE("needs that no node has wait, and are placed when one joins") {
  dispatcher d;
  d.joined(node("a"), 0);
  auto j = measure_job("m", "r1", "cuda");
  j.needs.arch = "sm_90";
  j.needs.tools = {"ncu"};
  j.needs.memory_bytes = 100ull << 30;
  d.submit(j, 0);
  CHECK(d.take_orders(0).assign.empty());
  auto small = gpu(0);
  small.memory_bytes = 80ull << 30;
  d.joined(node("b", {small}), 1);
  CHECK(d.take_orders(1).assign.empty());
  d.joined(node("c", {gpu(0)}), 2);
  CHECK(of(d.take_orders(2), "m").node == "c");
}

TEST_CASE("all measurements of a run are on one device; when that is gone the run moves, and it is said") {
  dispatcher d;
  d.joined(node("a"), 0);
  d.joined(node("b"), 0);
  d.submit(measure_job("m1"), 0);
  const auto first = of(d.take_orders(0), "m1");
  CHECK(d.answered("m1", first.ticket, 1));
  const auto other = first.node == "a" ? "b" : "a";
  d.submit(measure_job("x", "r2"), 1);
  d.take_orders(1);
  d.submit(measure_job("m2"), 2);
  const auto second = d.take_orders(2);
  if (has(second, "m2")) CHECK(of(second, "m2").node == first.node);
  d.lost(first.node, 3);
  const auto third = d.take_orders(3);
  const auto& again = has(third, "m2") ? third : d.take_orders(3);
  (void)again;
  d.submit(measure_job("m3"), 4);
  bool moved = false;
  for (int i = 0; i < 6; ++i) {
    const auto o = d.take_orders(5 + i);
    for (const auto& m : o.moved) moved = moved || (m.run == "r1" && m.from == first.node + "/cpu" && m.to == std::string(other) + "/cpu");
    for (const auto& a : o.assign) CHECK(a.node == other);
    for (const auto& n : d.nodes())
      for (const auto& l : n.leases)
        if (!l.job.empty())
          for (const auto& a : o.assign)
            if (a.job == l.job) d.answered(a.job, a.ticket, 6 + i);
  }
  for (const auto& m : third.moved) moved = moved || m.run == "r1";
  CHECK(moved);
}

TEST_CASE("a lost node's job runs again exactly once, and a late answer is dropped") {
  dispatcher d;
  d.joined(node("a"), 0);
  d.submit(verify_job("v"), 0);
  const auto first = of(d.take_orders(0), "v");
  d.lost("a", 1);
  d.joined(node("b"), 2);
  const auto second = of(d.take_orders(2), "v");
  CHECK(second.node == "b");
  CHECK_FALSE(d.answered("v", first.ticket, 3)); // the first node was only frozen
  CHECK(d.answered("v", second.ticket, 4));
  CHECK_FALSE(d.answered("v", second.ticket, 5));
  CHECK(d.duplicates() == 2);
  CHECK(d.requeued() == 1);
  d.submit(verify_job("v"), 6); // asked again after its answer: known
  CHECK(d.take_orders(6).assign.empty());
}

TEST_CASE("a silent node is lost after the limit, one that is heard is not") {
  dispatcher d({5, 3, 4.0});
  d.joined(node("a"), 0);
  d.joined(node("b"), 0);
  d.submit(verify_job("v1"), 0);
  d.submit(verify_job("v2"), 0);
  d.take_orders(0);
  d.heard_of("a", 3);
  d.tick(5);
  REQUIRE(d.nodes().size() == 1);
  CHECK(d.nodes()[0].facts.name == "a");
  const auto o = d.take_orders(5);
  for (const auto& a : o.assign) CHECK(a.node == "a");
}

TEST_CASE("three times the same failure: quarantine, with the reason, until it is released") {
  dispatcher d;
  d.joined(node("bad"), 0);
  d.submit(verify_job("v"), 0);
  for (int i = 0; i < 3; ++i) {
    const auto o = d.take_orders(i);
    d.failed("v", of(o, "v").ticket, {ec::io_error, "cannot write /tmp/" + std::to_string(i) + ": no space left on device", ""}, i); // another file each time
  }
  const auto o = d.take_orders(4);
  CHECK(o.assign.empty());
  REQUIRE(o.quarantined == std::vector<std::string>{"bad"});
  REQUIRE(d.nodes()[0].state == node_state::quarantined);
  CHECK(d.nodes()[0].reason.find("no space left") != std::string::npos);
  d.lost("bad", 5);
  d.joined(node("bad"), 6);
  CHECK(d.take_orders(6).assign.empty()); // rejoining is no way out
  CHECK(d.release("bod").error().code == ec::not_found);
  REQUIRE(d.release("bad"));
  CHECK(has(d.take_orders(7), "v"));
}

TEST_CASE("different failures do not add up, and a job that fails everywhere is given up") {
  dispatcher d;
  d.joined(node("a"), 0);
  d.submit(verify_job("v"), 0);
  std::vector<abandoned_job> given_up;
  for (int i = 0; i < 5; ++i) {
    const auto o = d.take_orders(i);
    d.failed("v", of(o, "v").ticket, {i % 2 == 0 ? ec::io_error : ec::tool_failed, "reason " + std::to_string(i), ""}, i);
  }
  const auto o = d.take_orders(6);
  REQUIRE(o.abandon.size() == 1);
  CHECK(o.abandon[0].job == "v");
  CHECK(o.abandon[0].why.message.find("reason 4") != std::string::npos);
  CHECK(o.quarantined.empty());
}

TEST_CASE("a node that lacks a compiler, or has no process left now, is in no quarantine for it") {
  for (const auto code : {ec::no_compiler, ec::busy}) {
    dispatcher d;
    d.joined(node("a"), 0);
    d.submit(verify_job("v"), 0);
    for (int i = 0; i < 4; ++i) {
      const auto o = d.take_orders(i);
      d.failed("v", of(o, "v").ticket, {code, "clang is not installed", ""}, i);
    }
    const auto o = d.take_orders(5);
    CHECK(o.quarantined.empty());
    CHECK(d.nodes()[0].state == node_state::ready);
  }
}

TEST_CASE("runs share the nodes: one with a hundred jobs does not keep another's first one waiting") {
  dispatcher d;
  d.joined(node("a", {cpu()}, 2), 0);
  for (int i = 0; i < 100; ++i) d.submit(verify_job("big-" + std::to_string(i), "big"), 0);
  auto o = d.take_orders(0);
  REQUIRE(o.assign.size() == 2);
  d.submit(verify_job("small-1", "small"), 1);
  REQUIRE(d.answered(o.assign[0].job, o.assign[0].ticket, 2));
  CHECK(has(d.take_orders(2), "small-1"));
}

TEST_CASE("what waits may be withdrawn; what a node has in hand goes on; what nobody could do is known") {
  dispatcher d;
  job_needs gpu_job = measure_job("m", "r", "cuda").needs;
  CHECK_FALSE(d.possible(gpu_job));
  d.joined(node("a", {cpu()}, 1), 0);
  CHECK_FALSE(d.possible(gpu_job));
  CHECK(d.possible(verify_job("v").needs));
  for (const char* id : {"v1", "v2", "v3"}) d.submit(verify_job(id), 0);
  const auto given = d.take_orders(0);
  REQUIRE(given.assign.size() == 1);
  const auto mine = given.assign[0].job;
  d.submit(verify_job("x", "other"), 0);
  CHECK(d.withdraw("r1").size() == 2);
  CHECK(d.withdraw("r1").empty());
  CHECK(d.withdraw("nobody's").empty());
  CHECK(d.queued() == 1);
  CHECK(d.answered(mine, given.assign[0].ticket, 1));
  CHECK(has(d.take_orders(1), "x"));
}

TEST_CASE("a run that is over leaves nothing behind") {
  dispatcher d;
  d.joined(node("a"), 0);
  d.submit(measure_job("m"), 0);
  d.submit(verify_job("v"), 0);
  const auto o = d.take_orders(0);
  d.forget_run("r1");
  CHECK(d.queued() == 0);
  CHECK(d.in_flight() == 0);
  for (const auto& a : o.assign) CHECK_FALSE(d.answered(a.job, a.ticket, 1));
  CHECK(d.nodes()[0].leases[0].job.empty());
}

namespace {

node_facts on_host(const std::string& name, const std::string& machine, std::vector<device_facts> devices = {cpu()}) {
  auto facts = node(name, std::move(devices));
  facts.machine = machine;
  return facts;
}

} // namespace

TEST_CASE("nodes of one host, in containers or of different users, never measure beside each other") {
  dispatcher d;
  d.joined(on_host("a", "host1"), 0);
  d.joined(on_host("b", "host1"), 0);
  d.joined(on_host("c", "host2"), 0);
  for (const char* run : {"r1", "r2", "r3"}) d.submit(measure_job(std::string("m") + run, run), 1);
  auto first = d.take_orders(1);
  REQUIRE(first.assign.size() == 2); // one on each host
  std::map<std::string, assignment> at;
  for (const auto& a : first.assign) at[a.node == "c" ? "host2" : "host1"] = a;
  REQUIRE(at.size() == 2);
  d.submit(verify_job("v", "r4"), 2); // nor does anything run beside a measurement
  CHECK(d.take_orders(2).assign.empty());
  REQUIRE(d.answered(at["host1"].job, at["host1"].ticket, 3));
  const auto second = d.take_orders(3);
  CHECK_FALSE(second.assign.empty()); // whoever waited at the other node of that host notices
}

TEST_CASE("a measurement waits for what another node of its host is doing") {
  dispatcher d;
  d.joined(on_host("a", "host1"), 0);
  d.submit(verify_job("v", "r1"), 0);
  const auto first = d.take_orders(0);
  REQUIRE(has(first, "v"));
  d.joined(on_host("b", "host1"), 1);
  d.submit(measure_job("m", "r2"), 1);
  CHECK(d.take_orders(1).assign.empty());
  d.submit(verify_job("v2", "r1"), 2); // and is not kept waiting by a stream of small jobs
  CHECK(d.take_orders(2).assign.empty());
  REQUIRE(d.answered("v", of(first, "v").ticket, 3));
  CHECK(has(d.take_orders(3), "m"));
}

TEST_CASE("one device that two nodes of a host offer is one device") {
  dispatcher d;
  auto one = gpu(0), same = gpu(3), other = gpu(1);
  one.hardware = same.hardware = "GPU-1";
  other.hardware = "GPU-2";
  d.joined(on_host("a", "host1", {one}), 0);
  d.joined(on_host("b", "host1", {same, other}), 0);
  for (const char* run : {"r1", "r2", "r3"}) d.submit(measure_job(std::string("m") + run, run, "cuda"), 1);
  CHECK(d.take_orders(1).assign.size() == 2);
}

TEST_CASE("a node that beats but does not have its job loses it; one that has it for too long, too") {
  dispatch_limits limits;
  limits.job_seconds = 100;
  dispatcher d(limits);
  d.joined(node("a"), 0);
  d.submit(verify_job("v"), 0);
  const auto first = of(d.take_orders(0), "v").ticket;
  d.heard_of("a", {first}, 9);
  d.heard_of("a", {}, 9.5); // on its way, perhaps
  CHECK(d.take_orders(9.5).assign.empty());
  d.heard_of("a", {}, 11);
  const auto again = d.take_orders(11);
  const auto second = of(again, "v").ticket;
  CHECK(second != first);
  for (int t = 12; t <= 110; ++t) {
    d.heard_of("a", {second}, t);
    d.tick(t);
  }
  CHECK(d.take_orders(110).assign.empty());
  d.heard_of("a", {second}, 112);
  d.tick(112);
  const auto late = d.take_orders(112);
  CHECK(has(late, "v"));
  REQUIRE(late.stop.size() == 1); // the node is told
  CHECK(late.stop[0] == std::pair<std::string, std::string>{"a", "r1"});
  CHECK_FALSE(d.answered("v", second, 113));
}

TEST_CASE("tickets cannot be guessed from each other") {
  dispatcher d;
  d.joined(node("a", {cpu()}, 8), 0);
  std::set<uint64_t> seen;
  for (int i = 0; i < 8; ++i) d.submit(verify_job("v" + std::to_string(i)), 0);
  for (const auto& a : d.take_orders(0).assign) seen.insert(a.ticket);
  REQUIRE(seen.size() == 8);
  uint64_t nearest = ~0ull;
  for (auto it = std::next(seen.begin()); it != seen.end(); ++it) nearest = std::min(nearest, *it - *std::prev(it));
  CHECK(nearest > 1u << 20);
}

TEST_CASE("users share the cluster, however many runs each has; a higher priority goes first") {
  dispatcher d;
  d.joined(node("a", {cpu()}, 1), 0);
  const auto submit = [&](const std::string& id, const std::string& run, const std::string& owner, int priority = 0) {
    auto j = verify_job(id, run);
    j.owner = owner;
    j.priority = priority;
    d.submit(j, 0);
  };
  for (int run = 0; run < 5; ++run)
    for (int i = 0; i < 10; ++i) submit("a" + std::to_string(run) + "-" + std::to_string(i), "anna" + std::to_string(run), "anna");
  for (int i = 0; i < 10; ++i) submit("b" + std::to_string(i), "bert", "bert");
  std::map<char, int> served;
  double now = 0;
  const auto next = [&] {
    const auto o = d.take_orders(now);
    REQUIRE(o.assign.size() == 1);
    now += 1;
    REQUIRE(d.answered(o.assign[0].job, o.assign[0].ticket, now));
    return o.assign[0].job;
  };
  for (int i = 0; i < 12; ++i) ++served[next()[0]];
  CHECK(served['a'] == 6);
  CHECK(served['b'] == 6);
  submit("urgent", "x", "anna", 5);
  CHECK(next() == "urgent");
}

TEST_CASE("one owner holds no more devices than its quota") {
  dispatch_limits limits;
  limits.devices_of_owner = 1;
  dispatcher d(limits);
  d.joined(node("g", {cpu(), gpu(0), gpu(1)}, 4), 0);
  for (const char* run : {"r1", "r2", "r3"}) {
    auto j = measure_job(std::string("m") + run, run, "cuda");
    j.owner = run == std::string("r3") ? "bert" : "anna";
    d.submit(j, 0);
  }
  const auto first = d.take_orders(0);
  REQUIRE(first.assign.size() == 2);
  CHECK(has(first, "mr3"));
  const auto annas = first.assign[0].job == "mr3" ? first.assign[1] : first.assign[0];
  REQUIRE(d.answered(annas.job, annas.ticket, 1));
  CHECK(d.take_orders(1).assign.size() == 1);
}

TEST_CASE("constraints, as users write them") {
  const auto needs = with_constraints({}, "mem>=64G, avx512,cuda>=9.0,tool=ncu,node=g");
  REQUIRE(needs);
  CHECK(needs->memory_bytes == 64ull << 30);
  CHECK(needs->simd_bits == 512);
  CHECK(needs->capability == 90);
  for (const char* bad : {"fast", "mem>=x", "mem>=64Q", "cuda>=", "cuda>=9.0x", "mem>64G"}) {
    INFO(bad);
    CHECK_FALSE(with_constraints({}, bad));
  }
  dispatcher d;
  auto g = node("g", {cpu(), gpu(0)});
  g.simd_bits = 512;
  d.joined(node("a", {cpu(), gpu(0)}), 0);
  auto j = measure_job("m", "r", "cuda");
  j.needs = *needs;
  j.needs.backend = "cuda";
  j.needs.exclusive = true;
  d.submit(j, 0);
  CHECK(d.take_orders(0).assign.empty());
  d.joined(g, 1);
  CHECK(of(d.take_orders(1), "m").node == "g");
}
