#include "cluster/gate.hpp"

#include "base/text.hpp"
#include "cluster/log.hpp"

#include <algorithm>
#include <map>

namespace pragma {

namespace {

constexpr auto answer_time = std::chrono::minutes(5); ///< the first question may build the compendium's indexes
constexpr size_t longest_name = 200, most_devices = 64;
constexpr int most_slots = 1024;

using shared_door = std::shared_ptr<std::unique_ptr<door>>;

struct stand_in_state {
  static inline const char* name = "far_node";
};
/// A node on another machine, as placement sees it.
node_actor::behavior_type stand_in(node_actor::stateful_pointer<stand_in_state>, shared_door out, uint64_t connection) {
  return {
      [=](do_atom, const work_order& order, const std::string& device) { (*out)->send(connection, {"do", 0, {{"order", order}, {"device", device}}, nullptr}); },
      [=](forget_atom, const std::string& run) { (*out)->send(connection, {"forget", 0, {{"run", run}}, nullptr}); },
  };
}

struct gate_state {
  static inline const char* name = "gate";
  using pointer = gate_actor::stateful_pointer<gate_state>;
  struct member {
    identity who;
    std::string node;                     ///< that it joined as
    node_actor handle;
    caller as() const { return {who.name, who.what == role::admin}; }
  };

  pointer self = nullptr;
  shared_door out;
  cluster_actor places;
  scheduler_actor users;
  std::shared_ptr<replica> pair;
  std::map<uint64_t, member> members;
  size_t joined = 0;                      ///< nodes
  std::shared_ptr<void> in_hand;          ///< of the frame that is looked at

  void refuse(uint64_t connection, uint64_t id, const error& why) {
    if (id != 0) (*out)->send(connection, {"reply", id, nullptr, json(failure::of(why))});
  }

  /// Asks an agent here and sends on what it answers.
  template <class Result, class Agent, class... Words> void pass(uint64_t connection, uint64_t id, const Agent& whom, Words&&... words) {
    self->request(whom, answer_time, std::forward<Words>(words)...)
        .then([this, connection, id, keep = in_hand](const Result& result) { (*out)->send(connection, {"reply", id, json(result), nullptr}); },
              [this, connection, id, keep = in_hand](const caf::error& e) { refuse(connection, id, from_caf(self->system(), e)); });
  }

  void closed(uint64_t connection, const std::string& reason) {
    const auto m = members.find(connection);
    if (m == members.end()) return;
    log_event(log_level::debug, "connection closed", {{"who", m->second.who.name}, {"address", m->second.who.address}, {"reason", reason}});
    if (m->second.handle) caf::anon_send_exit(m->second.handle, caf::exit_reason::user_shutdown);
    if (m->second.handle && pair) pair->nodes(joined - 1);
    joined -= m->second.handle != nullptr;
    if (pair && m->second.who.what == role::head) pair->gone(connection);
    members.erase(m);
  }

  void join(uint64_t connection, uint64_t id, member& m, const json& body) {
    auto hello = from_json_value<node_hello>(body, "a greeting");
    if (!hello) return refuse(connection, id, hello.error());
    auto& node = hello->facts.name;
    std::string refused;
    if (node.empty() || node.size() > longest_name || node != printable(node) || node.find('/') != std::string::npos) refused = "a node cannot be called " + printable(node.substr(0, 80));
    else if (!may_be_called(m.who, node)) refused = "the certificate is of " + m.who.name + ": its nodes are called " + m.who.name + ", or " + m.who.name + ".SOMETHING (--name)";
    else if (hello->facts.devices.size() > most_devices || hello->missing.size() > most_devices) refused = "a node offers at most " + std::to_string(most_devices) + " devices";
    else if (m.handle) refused = "this connection has joined already";
    if (!refused.empty()) {
      log_event(log_level::warn, "node refused", {{"node", node.substr(0, longest_name)}, {"certificate", m.who.name}, {"reason", refused}});
      node_welcome answer;
      answer.refused = refused;
      return (*out)->send(connection, {"reply", id, json(answer), nullptr});
    }
    hello->facts.slots = std::clamp(hello->facts.slots, 1, most_slots);
    m.node = node;
    m.handle = self->spawn(stand_in, out, connection);
    ++joined;
    if (pair) pair->nodes(joined); // before it has work
    hello->certificate_days = m.who.days_left;
    self->request(places, answer_time, join_atom::value, *hello, m.handle)
        .then(
            [this, connection, id, keep = in_hand](const node_welcome& answer) {
              if (const auto found = members.find(connection); found != members.end() && !answer.refused.empty()) {
                caf::anon_send_exit(found->second.handle, caf::exit_reason::user_shutdown);
                found->second.handle = nullptr;
                if (--joined; pair) pair->nodes(joined);
                found->second.node.clear();
              }
              (*out)->send(connection, {"reply", id, json(answer), nullptr});
            },
            [this, connection, id, keep = in_hand](const caf::error& e) { refuse(connection, id, from_caf(self->system(), e)); });
  }

  void of_node(uint64_t connection, member& m, frame& f) {
    if (f.kind == "join") return join(connection, f.id, m, f.body);
    if (m.node.empty()) return refuse(connection, f.id, {ec::invalid_argument, "join first", ""});
    if (f.kind == "beat") {
      auto beat = from_json_value<heartbeat>(f.body, "a heartbeat");
      if (!beat) return refuse(connection, f.id, beat.error());
      beat->node = m.node;
      return pass<bool>(connection, f.id, places, beat_atom::value, *beat);
    }
    if (f.kind == "done") {
      auto answer = from_json_value<work_answer>(f.body, "an answer");
      if (!answer) return (*out)->close(connection, answer.error().message);
      answer->node = m.node;
      return self->send(places, done_atom::value, std::move(*answer));
    }
    if (f.kind == "drain") return self->send(places, drain_atom::value, m.node);
    if (f.kind == "vouch") {
      if (pair && f.body.is_number_unsigned()) pair->vouched(m.node, f.body.get<uint64_t>());
      return;
    }
    self->send(places, leave_atom::value, m.node);
  }

  void of_user(uint64_t connection, const member& m, frame& f) {
    const auto word = [&](const char* key) { return f.body.is_object() && f.body.contains(key) && f.body[key].is_string() ? f.body[key].get<std::string>() : std::string(); };
    const auto run = word("run");
    const auto number = [&](const char* key) { return f.body.is_object() && f.body.contains(key) && f.body[key].is_number_unsigned() ? f.body[key].get<uint64_t>() : 0; };
    if (f.kind == "start") {
      auto order = from_json_value<run_order>(f.body, "an order");
      if (!order) return refuse(connection, f.id, order.error());
      return pass<std::string>(connection, f.id, users, start_atom::value, std::move(*order), m.as());
    }
    if (f.kind == "news") return pass<run_news>(connection, f.id, users, news_atom::value, run, number("from"), m.as());
    if (f.kind == "fetch") return pass<text_slice>(connection, f.id, users, fetch_atom::value, run, number("offset"), m.as());
    if (f.kind == "list") return pass<std::vector<cluster_run>>(connection, f.id, users, list_atom::value, m.as());
    if (f.kind == "halt") return pass<bool>(connection, f.id, users, halt_atom::value, run, m.as());
    if (f.kind == "cancel") return pass<bool>(connection, f.id, users, cancel_atom::value, run, m.as());
    if (f.kind == "status") return pass<cluster_status>(connection, f.id, places, status_atom::value);
    if (f.kind == "ask") return pass<std::string>(connection, f.id, users, ask_atom::value, f.body.dump(-1, ' ', false, json::error_handler_t::replace));
    pass<bool>(connection, f.id, places, release_atom::value, word("node"));
  }

  static bool is_text(const json& body) {
    try {
      (void)body.dump();
      return true;
    } catch (const json::type_error&) {
      return false;
    }
  }

  /// The other head of a pair.
  void of_head(uint64_t connection, const frame& f) {
    if (!pair) return refuse(connection, f.id, {ec::unsupported, "this head is not one of two", "start it with --peer, too"});
    if (f.kind == "who") return (*out)->send(connection, {"reply", f.id, json(pair->state()), nullptr});
    auto ask = from_json_value<follow_ask>(f.body, "a question of a standby");
    if (!ask) return refuse(connection, f.id, ask.error());
    pair->follow(connection, *ask, [out = out, connection, id = f.id](const expected<json>& answer) {
      (*out)->send(connection, answer ? frame{"reply", id, *answer, nullptr} : frame{"reply", id, nullptr, json(failure::of(answer.error()))});
    });
  }

  void hear(door_event& event) {
    if (event.kind == door_event::opened) {
      log_event(log_level::debug, "connection opened", {{"who", event.who.name}, {"role", name_of(event.who.what)}, {"address", event.who.address}});
      members[event.connection] = {std::move(event.who), {}, {}};
      return;
    }
    if (event.kind == door_event::closed) return closed(event.connection, event.reason);
    const auto m = members.find(event.connection);
    if (m == members.end()) return;
    in_hand = std::move(event.in_hand);
    if (event.said.kind != "done" && !is_text(event.said.body)) return refuse(event.connection, event.said.id, {ec::invalid_argument, "the question has text that is no UTF-8", ""});
    if (m->second.who.what == role::head) of_head(event.connection, event.said);
    else if (m->second.who.what == role::node) of_node(event.connection, m->second, event.said);
    else of_user(event.connection, m->second, event.said);
  }
  static std::string name_of(role r) { return pragma::name(r); }
};

gate_actor::behavior_type gate(gate_state::pointer self, shared_door out, cluster_actor places, scheduler_actor users, std::shared_ptr<replica> pair) {
  auto& state = self->state;
  state.self = self;
  state.out = std::move(out);
  state.places = std::move(places);
  state.users = std::move(users);
  state.pair = std::move(pair);
  return {[self](const gate_event& event) {
    const auto connection = event.what->connection;
    try { // what one member sends must not end the gate for all
      self->state.hear(*event.what);
      self->state.in_hand = nullptr;
    } catch (const std::exception& e) {
      self->state.in_hand = nullptr;
      log_event(log_level::error, "a frame could not be handled", {{"reason", e.what()}});
      (*self->state.out)->close(connection, "a frame could not be handled");
    }
  }};
}

} // namespace

gate_actor spawn_gate(caf::actor_system& system, std::shared_ptr<std::unique_ptr<door>> out, cluster_actor places, scheduler_actor users, std::shared_ptr<replica> pair) {
  return system.spawn(gate, std::move(out), std::move(places), std::move(users), std::move(pair));
}

} // namespace pragma
