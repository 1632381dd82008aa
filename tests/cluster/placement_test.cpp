// The head's cluster agent with scripted nodes on CAF's deterministic scheduler: no network, no threads, no clock.
#include "cluster/placed.hpp"
#include "cluster/placement.hpp"

#include <caf/scheduler/test_coordinator.hpp>
#include <catch2/catch.hpp>

using namespace pragma;

namespace {

/// What a node was told, and whether it answers.
struct node_script {
  std::vector<work_order> got;
  std::vector<std::string> devices;       ///< that the orders were for
  std::vector<std::string> forgotten;
  bool answers = true, fails = false;
};

node_actor::behavior_type mock_node(node_actor::pointer self, node_script* s, std::string name, cluster_actor head) {
  return {[=](do_atom, const work_order& order, const std::string& device) {
            s->got.push_back(order);
            s->devices.push_back(device);
            if (!s->answers) return;
            work_answer a;
            a.job = order.job;
            a.ticket = order.ticket;
            a.node = name;
            a.device = device;
            a.result = json(order.kind);
            if (s->fails) {
              a.failure = failure::of({ec::io_error, "the disk is full", ""});
              a.node_at_fault = true;
            }
            self->send(head, done_atom::value, a);
          },
          [=](forget_atom, const std::string& run) { s->forgotten.push_back(run); }};
}

struct fixture {
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;
  cluster_actor head;
  std::map<std::string, node_actor> nodes;
  std::map<std::string, node_script> scripts;

  fixture() {
    config.set("scheduler.policy", caf::atom("testing"));
    system = std::make_unique<caf::actor_system>(config);
    placement_options options;
    options.tick = std::chrono::seconds(1);
    head = spawn_placement(*system, options);
    run();
  }
  ~fixture() {
    for (auto& [name, node] : nodes) caf::anon_send_exit(node, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(head, caf::exit_reason::user_shutdown);
    run();
    nodes.clear();
    head = nullptr;
  }
  caf::scheduler::test_coordinator& scheduler() { return dynamic_cast<caf::scheduler::test_coordinator&>(system->scheduler()); }
  void run() { scheduler().run(); }

  template <class Result, class... Words> expected<Result> ask(const Words&... words) {
    caf::scoped_actor self{*system};
    auto pending = self->request(head, caf::infinite, words...);
    run();
    expected<Result> result = fail(ec::internal, "no answer");
    pending.receive([&](const Result& r) { result = r; }, [&](const caf::error& e) { result = fail(from_caf(*system, e)); });
    return result;
  }
  node_hello hello(const std::string& name) const {
    node_hello h;
    h.facts = {name, "test", 1, {{"cpu", "cpu", "model", "arch", 0, {}, {}}}};
    return h;
  }
  node_welcome join(const std::string& name) {
    nodes[name] = system->spawn(mock_node, &scripts[name], name, head);
    return ask<node_welcome>(join_atom::value, hello(name), nodes[name]).value();
  }
  void lose(const std::string& name) {
    caf::anon_send_exit(nodes.at(name), caf::exit_reason::kill);
    run();
  }
  static work_order order(const std::string& id, const std::string& run = "r") {
    work_order o;
    o.job = id;
    o.run = run;
    o.kind = "verify";
    return o;
  }
};

} // namespace

TEST_CASE_METHOD(fixture, "a job goes to a node and its answer to whoever asked") {
  CHECK(join("a").refused.empty());
  const auto answer = ask<work_answer>(submit_atom::value, order("j1"), job_needs{});
  REQUIRE(answer);
  CHECK(answer->node == "a");
  CHECK(answer->result == "verify");
  CHECK(ask<cluster_status>(status_atom::value)->members.at(0).node.done == 1);
}

TEST_CASE_METHOD(fixture, "a node that dies with a job: another does it, and a late answer is dropped") {
  join("a");
  scripts["a"].answers = false;
  caf::scoped_actor self{*system};
  auto pending = self->request(head, caf::infinite, submit_atom::value, order("j1"), job_needs{});
  run();
  REQUIRE(scripts["a"].got.size() == 1);
  join("b");
  lose("a");
  REQUIRE(scripts["b"].got.size() == 1);
  work_answer answer;
  pending.receive([&](const work_answer& a) { answer = a; }, [&](const caf::error&) {});
  CHECK(answer.node == "b");
  work_answer late;
  late.job = "j1";
  late.ticket = scripts["a"].got[0].ticket;
  caf::anon_send(head, done_atom::value, late);
  run();
  const auto status = ask<cluster_status>(status_atom::value);
  CHECK(status->duplicates == 1);
  CHECK(status->requeued == 1);
  REQUIRE(status->members.size() == 2); // the dead one is shown as away, with nothing in hand
  CHECK(status->members.at(0).node.state == node_state::ready);
  CHECK(status->members.at(1).node.state == node_state::away);
  CHECK(status->members.at(1).node.facts.name == "a");
  CHECK(status->members.at(1).node.facts.devices.empty());
  join("a");
  const auto again = ask<cluster_status>(status_atom::value);
  REQUIRE(again->members.size() == 2);
  CHECK(again->members.at(0).node.state == node_state::ready);
}

TEST_CASE_METHOD(fixture, "a node that leaves properly is not missed") {
  join("a");
  caf::anon_send(head, leave_atom::value, std::string("a"));
  run();
  CHECK(ask<cluster_status>(status_atom::value)->members.empty());
}

TEST_CASE_METHOD(fixture, "a node that fails the same way again and again is in quarantine until it is released") {
  join("a");
  scripts["a"].fails = true;
  caf::scoped_actor self{*system};
  auto pending = self->request(head, caf::infinite, submit_atom::value, order("j1"), job_needs{});
  run();
  auto status = ask<cluster_status>(status_atom::value);
  REQUIRE(status->members.size() == 1);
  CHECK(status->members[0].node.state == node_state::quarantined);
  CHECK(status->members[0].node.reason.find("the disk is full") != std::string::npos);
  CHECK(status->queued == 1); // nobody else is there
  scripts["a"].fails = false;
  CHECK_FALSE(ask<bool>(release_atom::value, std::string("b")));
  REQUIRE(ask<bool>(release_atom::value, std::string("a")));
  work_answer answer;
  pending.receive([&](const work_answer& a) { answer = a; }, [&](const caf::error&) {});
  CHECK(answer.node == "a");
  CHECK_FALSE(answer.failure.happened());
}

TEST_CASE_METHOD(fixture, "who may join: a name that nobody has") {
  join("a");
  const auto stranger = system->spawn(mock_node, &scripts["b"], "b", head);
  CHECK(ask<node_welcome>(join_atom::value, hello("a"), stranger)->refused.find("already") != std::string::npos);
  caf::anon_send_exit(stranger, caf::exit_reason::user_shutdown);
  run();
  CHECK(ask<bool>(beat_atom::value, heartbeat{"a", 0}).value());
  CHECK_FALSE(ask<bool>(beat_atom::value, heartbeat{"b", 0}).value());
}

TEST_CASE_METHOD(fixture, "a ticket is its holder's: another node's answer with it is dropped") {
  join("a");
  join("b");
  scripts["a"].answers = scripts["b"].answers = false;
  caf::scoped_actor self{*system};
  auto pending = self->request(head, caf::infinite, submit_atom::value, order("j1"), job_needs{});
  run();
  const std::string holder = scripts["a"].got.empty() ? "b" : "a", other = holder == "a" ? "b" : "a";
  REQUIRE(scripts[holder].got.size() == 1);
  work_answer forged;
  forged.job = "j1";
  forged.ticket = scripts[holder].got[0].ticket; // overheard, say
  forged.node = other;                           // the gate writes the connection's node here
  forged.result = "forged";
  caf::anon_send(head, done_atom::value, forged);
  run();
  CHECK(ask<cluster_status>(status_atom::value)->in_flight == 1);
  forged.node = holder;
  forged.result = "true";
  caf::anon_send(head, done_atom::value, forged);
  run();
  work_answer answer;
  pending.receive([&](const work_answer& a) { answer = a; }, [&](const caf::error&) {});
  CHECK(answer.result == "true");
}

TEST_CASE_METHOD(fixture, "a cancelled run: who waits for its jobs is told so, and its nodes") {
  join("a");
  scripts["a"].answers = false;
  caf::scoped_actor self{*system};
  auto pending = self->request(head, caf::infinite, submit_atom::value, order("j1"), job_needs{});
  run();
  caf::anon_send(head, cancel_atom::value, std::string("r"));
  run();
  work_answer answer;
  pending.receive([&](const work_answer& a) { answer = a; }, [&](const caf::error&) {});
  CHECK(answer.failure.what().code == ec::interrupted);
  CHECK(scripts["a"].forgotten == std::vector<std::string>{"r"});
}

TEST_CASE_METHOD(fixture, "a head that stops gives out nothing more, and takes the answers that come") {
  join("a");
  scripts["a"].answers = false;
  for (const char* id : {"j1", "j2"}) caf::anon_send(head, submit_atom::value, order(id), job_needs{});
  run();
  REQUIRE(scripts["a"].got.size() == 1);
  CHECK(ask<uint64_t>(hold_atom::value).value() == 1);
  work_answer answer;
  answer.job = "j1";
  answer.node = "a";
  answer.ticket = scripts["a"].got[0].ticket;
  caf::anon_send(head, done_atom::value, answer);
  run();
  CHECK(scripts["a"].got.size() == 1); // not the second
  CHECK(ask<uint64_t>(hold_atom::value).value() == 0);
}

TEST_CASE_METHOD(fixture, "a run that is over: its jobs end, its nodes are told") {
  join("a");
  scripts["a"].answers = false;
  caf::anon_send(head, submit_atom::value, order("j1"), job_needs{});
  run();
  caf::anon_send(head, forget_atom::value, std::string("r"));
  run();
  CHECK(scripts["a"].forgotten == std::vector<std::string>{"r"});
  CHECK(ask<cluster_status>(status_atom::value)->in_flight == 0);
}

TEST_CASE_METHOD(fixture, "a run on a device: every one of its jobs holds the device, its checks as well as its measurements") {
  join("a"); // a processor only
  auto facts = hello("g");
  facts.facts.devices.push_back({"cuda:1", "cuda", "NVIDIA H200", "sm_90", 0, {}, {}});
  nodes["g"] = system->spawn(mock_node, &scripts["g"], "g", head);
  REQUIRE(ask<node_welcome>(join_atom::value, facts, nodes["g"])->refused.empty());
  scripts["g"].answers = false;
  auto place = std::make_shared<run_place>();
  place->run = "r";
  place->prefix = "word";
  place->needs.backend = "cuda";
  place->load.backend = "cuda";
  const auto checks = spawn_placed_verifier(*system, head, place);
  for (int i = 0; i < 2; ++i) caf::anon_send(checks, verify_atom::value, candidate{});
  run();
  REQUIRE(scripts["g"].got.size() == 1); // the second waits for the lease
  CHECK(scripts["g"].devices == std::vector<std::string>{"cuda:1"});
  CHECK(scripts["g"].got[0].load.backend == "cuda");
  CHECK(scripts["a"].got.empty());
  const auto status = ask<cluster_status>(status_atom::value);
  bool leased = false;
  for (const auto& m : status->members)
    for (const auto& lease : m.node.leases) leased = leased || (lease.device == "cuda:1" && lease.job == scripts["g"].got[0].job);
  CHECK(leased);
  CHECK(status->queued == 1);
  caf::anon_send_exit(checks, caf::exit_reason::user_shutdown);
  run();
}
