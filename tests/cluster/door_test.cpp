// The head's front door over real sockets: who gets in, what it may ask, and what strangers and members can cost.
#include "base/files.hpp"
#include "base/text.hpp"
#include "cluster/door.hpp"
#include "cluster/link.hpp"
#include "cluster/messages.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

template <class Condition> bool within(double seconds, const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return condition();
}

struct house {
  temp_dir dir = std::move(*temp_dir::create("pragma-door-"));
  fs::path ca = dir.path() / "ca";
  std::mutex mutex;
  std::vector<door_event> events;
  std::atomic<bool> answers = true;
  std::function<uint64_t()> epoch_;
  std::function<void(const greeting&, const identity&, greeting&)> turn_away_;
  std::unique_ptr<door> opened;           // last: its thread uses the others

  house() {
    ::signal(SIGPIPE, SIG_IGN); // the door closes where it must
    REQUIRE(create_ca(ca, "house"));
    for (const auto& [name, what] : {std::pair{"head", role::head}, {"node", role::node}, {"user", role::user}, {"admin", role::admin}}) REQUIRE(issue_certificate(ca, name, what));
  }
  void open(door_limits limits = {}, bool tls = true) {
    door::options o;
    o.listen = {"127.0.0.1", 0};
    if (tls) o.tls = ca / "head";
    o.limits = limits;
    o.epoch = epoch_;
    o.turn_away = turn_away_;
    o.on_event = [this](door_event e) {
      const std::lock_guard lock(mutex);
      if (e.kind == door_event::asked && e.said.id != 0 && answers) opened->send(e.connection, {"reply", e.said.id, e.said.body, nullptr});
      events.push_back(std::move(e));
    };
    auto made = door::open(std::move(o));
    REQUIRE(made);
    const std::lock_guard lock(mutex); // the door's thread uses it
    opened = std::move(*made);
  }
  link::options to(const std::string& who, const std::string& want, bool tls = true) {
    link::options o;
    o.heads = {{"127.0.0.1", opened->port()}};
    if (tls) o.tls = ca / who;
    o.want = want;
    return o;
  }
  std::string refusal(const std::string& who, const std::string& want) {
    auto made = link::dial(to(who, want));
    REQUIRE_FALSE(made);
    return made.error().message;
  }
  /// A member that speaks as it likes: greeted already.
  std::unique_ptr<channel> member(const std::string& who, const std::string& want) {
    auto tls = tls_context::load(ca / who);
    REQUIRE(tls);
    auto socket = connect_to({"127.0.0.1", opened->port()}, 5);
    REQUIRE(socket);
    auto wire = std::make_unique<channel>(std::move(*socket), *tls, false);
    while (wire->handshake() == channel::result::again) wait(*wire);
    write(*wire, encode({"hello", 1, own_greeting(want), nullptr}));
    REQUIRE(read_some(*wire) != "");
    return wire;
  }
  static void wait(channel& wire) {
    pollfd p{wire.fd(), wire.wants(), 0};
    ::poll(&p, 1, 5000);
  }
  static bool write(channel& wire, const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      size_t sent = 0;
      const auto done = wire.write(text.data() + at, text.size() - at, sent);
      if (done == channel::result::closed) return false;
      if (done == channel::result::again) wait(wire);
      at += sent;
    }
    return true;
  }
  /// Empty: closed.
  static std::string read_some(channel& wire) {
    std::string buffer(1 << 16, '\0');
    for (;;) {
      size_t got = 0;
      const auto done = wire.read(buffer.data(), buffer.size(), got);
      if (done == channel::result::closed) return "";
      if (done == channel::result::done) return buffer.substr(0, got);
      wait(wire);
    }
  }
};

std::string length(uint32_t n) { return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8), static_cast<char>(n)}; }

long resident_kib() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
  return 0;
}

} // namespace

TEST_CASE_METHOD(house, "two hundred dials at once on an idle head all succeed") {
  door_limits limits;
  limits.handshake_seconds = 60; // of this test's own 200 threads, on a machine that may be busy
  open(limits);
  std::atomic<int> good = 0;
  std::mutex said_lock;
  std::set<std::string> said;
  std::vector<std::thread> all;
  for (int i = 0; i < 200; ++i)
    all.emplace_back([&, i] {
      auto o = to(i % 2 ? "admin" : "user", "user");
      o.seconds = 60;
      auto made = link::dial(o);
      if (made && (*made)->ask("list", {{"number", i}}, 60).value_or(nullptr) == json{{"number", i}}) ++good;
      const std::lock_guard lock(said_lock);
      if (!made) said.insert(made.error().message);
    });
  for (auto& t : all) t.join();
  INFO(join({said.begin(), said.end()}, "\n"));
  CHECK(good >= 128); // of one certificate 64 at a time: the others are told so, at once
  for (const auto& text : said) CHECK(text.find("too many connections of") != std::string::npos);
}

TEST_CASE_METHOD(house, "2,000 slow strangers keep nobody out, and cost bounded memory") {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  door_limits limits;
  limits.strangers = 200;
  open(limits);
  const auto before = resident_kib();
  std::vector<open_socket> slow;
  for (int i = 0; i < 2000; ++i) {
    auto s = connect_to({"127.0.0.1", opened->port()}, 5);
    if (!s) continue;
    if (i % 2) (void)::send(s->fd, "\x16\x03\x01\x02", 4, MSG_NOSIGNAL); // a handshake that never goes on
    slow.push_back(std::move(*s));
    if (i % 500 == 250) CHECK(link::dial(to("user", "user")));
  }
  CHECK(link::dial(to("user", "user")));
  CHECK(opened->counts().strangers <= 200);
  CHECK(resident_kib() - before < 100 * 1024);
}

TEST_CASE_METHOD(house, "a handshake has a deadline, and so has a greeting") {
  door_limits limits;
  limits.handshake_seconds = 0.5;
  open(limits);
  auto silent = connect_to({"127.0.0.1", opened->port()}, 5);
  REQUIRE(silent);
  CHECK(within(5, [&] {
    char byte;
    return ::recv(silent->fd, &byte, 1, MSG_DONTWAIT) == 0;
  }));
  CHECK(within(5, [&] { return opened->counts().strangers == 0; }));
}

TEST_CASE_METHOD(house, "lengths are believed only as far as they may go, and nothing is allocated for a claim") {
  open();
  const auto before = resident_kib();
  for (const auto& bytes : {length(1u << 30), length(0xffffffffu), length(0), length(5) + "\x9f\x01\x02\x03\xff", length(4) + "\xa1\x61\x6b\x01", length(9) + std::string("\x9b\x00\x00\x00\x00\xff\xff\xff\xff", 9)}) {
    auto wire = member("user", "user");
    REQUIRE(write(*wire, bytes));
    CHECK(read_some(*wire).empty()); // closed
  }
  CHECK(opened->counts().bad_frames == 6);
  CHECK(resident_kib() - before < 20 * 1024);
  // Deep is no deeper for being inside of a frame.
  auto wire = member("user", "user");
  REQUIRE(write(*wire, length(1u << 20) + std::string(1u << 20, '\x81')));
  CHECK(read_some(*wire).empty());
  CHECK(link::dial(to("user", "user")));
}

TEST_CASE_METHOD(house, "what each role may do is what docs/cluster.md says") {
  open();
  std::ifstream file(fs::path(TESTS_DIR) / ".." / "docs" / "cluster.md");
  std::map<std::string, std::map<std::string, bool>> said;
  std::vector<std::string> columns;
  for (std::string line; std::getline(file, line);) {
    const auto cells = split(line, '|');
    if (cells.size() < 6) continue;
    if (trim(cells[1]) == "frame") {
      for (const auto& c : cells) columns.push_back(trim(c));
    } else if (!columns.empty() && trim(cells[1]).starts_with("`")) {
      const auto kind = trim(cells[1]).substr(1, trim(cells[1]).size() - 2);
      for (size_t i = 2; i < cells.size() && i < columns.size(); ++i)
        if (role_named(columns[i]) != role::none) said[kind][columns[i]] = trim(cells[i]) == "yes";
    }
  }
  for (const auto& kind : frame_kinds()) {
    INFO(kind << " stands in docs/cluster.md");
    REQUIRE(said[kind].size() == 4);
  }
  for (const char* want : {"node", "user"}) CHECK(refusal("head", want).find("is for a head") != std::string::npos);
  for (const char* who : {"node", "user", "admin"}) CHECK(refusal(who, "head").find("--role head") != std::string::npos); // or it could read all records
  for (const auto& [who, want] : {std::pair{"node", "node"}, {"user", "user"}, {"admin", "user"}, {"head", "head"}}) {
    auto made = link::dial(to(who, want));
    REQUIRE(made);
    for (const auto& kind : frame_kinds()) {
      INFO(who << " asks " << kind);
      const auto answer = (*made)->ask(kind, {{"x", 1}}, 5);
      CHECK(answer.has_value() == said[kind][who]);
      if (!answer) CHECK(answer.error().message.find("may not ask") != std::string::npos);
    }
    CHECK_FALSE((*made)->ask("shutdown", nullptr, 5)); // nobody's
  }
}

TEST_CASE_METHOD(house, "who comes for what its certificate is not for is told so; no other certificate makes a head") {
  open();
  CHECK(refusal("node", "user").find("is for a node") != std::string::npos);
  CHECK(refusal("user", "node").find("--role node") != std::string::npos);
  CHECK(refusal("admin", "king").find("nobody here knows") != std::string::npos);
  for (const char* who : {"node", "user", "admin"}) {
    door::options o;
    o.listen = {"127.0.0.1", 0};
    o.tls = ca / who;
    o.on_event = [](door_event) {};
    CHECK_FALSE(door::open(std::move(o)));
  }
  identity who;
  who.name = "rack1";
  who.serial = "AB";
  CHECK(may_be_called(who, "rack1"));
  CHECK(may_be_called(who, "rack1.host7"));
  for (const char* name : {"rack2", "rack1.", "rack10", "rack", "", "host7"}) CHECK_FALSE(may_be_called(who, name));
}

TEST_CASE_METHOD(house, "a head that stands by turns members away, for now; an older head is refused by who heard of a newer") {
  std::atomic<uint64_t> epoch = 3, heard = 0;
  std::atomic<bool> stands_by = true, counts = true, missed = false;
  epoch_ = [&] { return epoch.load(); };
  turn_away_ = [&](const greeting& g, const identity&, greeting& answer) {
    heard = g.epoch;
    missed = g.misses;
    answer.counts = stands_by && counts;
    if (stands_by && g.want != "head") answer.refused = g.node + " is to ask elsewhere";
  };
  open();
  auto as_node = to("node", "node");
  as_node.node = "node.7";
  as_node.memory = std::make_shared<witness>();
  as_node.memory->served(2);
  const auto refused = link::dial(as_node);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ec::locked);
  CHECK(refused.error().message.find("node.7 is to ask elsewhere") != std::string::npos);
  CHECK(heard == 2); // and the head knows what the member has heard of
  CHECK(missed);
  CHECK(as_node.memory->epoch() == 3);                // what this head has was begun by somebody
  CHECK_FALSE(as_node.memory->vouch("elsewhere", 4)); // it has given its word here
  counts = false; // and is told that nobody counts on it
  CHECK_FALSE(link::dial(as_node));
  CHECK(as_node.memory->vouch("elsewhere", 4));
  // It gave its word to another head, which began in epoch 3 and was gone before the node could come back to it.
  auto bound = to("node", "node");
  bound.node = "node.8";
  bound.memory = std::make_shared<witness>();
  bound.memory->served(2);
  CHECK(bound.memory->misses("elsewhere"));
  bound.memory->counted("elsewhere", 3);
  CHECK_FALSE(link::dial(bound));
  CHECK_FALSE(missed);
  CHECK_FALSE(link::dial(bound));
  CHECK(missed);
  CHECK(link::dial(to("head", "head")));
  stands_by = false;
  auto let_in = link::dial(as_node);
  REQUIRE(let_in);
  CHECK(as_node.memory->epoch() == 3);
  opened->tell_all({"epoch", 0, 4, nullptr}); // it went on without the other head
  CHECK(within(10, [&] { return as_node.memory->epoch() == 4; }));
  opened->tell_all({"vouch", 0, 4, nullptr}); // no: a head serves in it
  opened->tell_all({"vouch", 0, 5, nullptr});
  CHECK(within(10, [&] {
    const std::lock_guard lock(mutex);
    return !events.empty() && events.back().said.kind == "vouch" && events.back().said.body == 5;
  }));
  const auto older = link::dial(as_node); // the head that did not hear of it
  REQUIRE_FALSE(older);
  CHECK(older.error().message.find("older") != std::string::npos);
  CHECK(heard == 4);
  epoch = 4;
  CHECK(link::dial(as_node));
}

TEST_CASE_METHOD(house, "an impostor with a node's certificate, its own listener, is no head to a user") {
  // The same bytes that a head would send, but the certificate of a node.
  auto tls = tls_context::load(ca / "node");
  REQUIRE(tls);
  auto listening = listen_on({"127.0.0.1", 0});
  REQUIRE(listening);
  std::thread impostor([&] {
    pollfd p{listening->fd, POLLIN, 0};
    ::poll(&p, 1, 5000);
    channel wire(open_socket(::accept4(listening->fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)), *tls, true);
    while (wire.handshake() == channel::result::again) wait(wire);
    (void)write(wire, encode({"welcome", 1, own_greeting("head"), nullptr}));
  });
  link::options o;
  o.heads = {{"127.0.0.1", port_of(listening->fd)}};
  o.tls = ca / "user";
  o.want = "user";
  const auto made = link::dial(o);
  impostor.join();
  REQUIRE_FALSE(made);
  CHECK(made.error().message.find("not a head's") != std::string::npos);
}

TEST_CASE_METHOD(house, "a revoked certificate ends at once and does not come back; the list is read anew") {
  open();
  auto held = link::dial(to("node", "node"));
  REQUIRE(held);
  REQUIRE(revoke_certificate(ca, "node"));
  fs::copy_file(ca / "crl.pem", ca / "head" / "crl.pem");
  CHECK(within(10, [&] { return !(*held)->alive(); }));
  CHECK(refusal("node", "node").find("is revoked") != std::string::npos);
  CHECK(link::dial(to("user", "user")));
  // A list of somebody else's is not believed, and changes nothing.
  REQUIRE(create_ca(dir.path() / "other", "other"));
  REQUIRE(issue_certificate(dir.path() / "other", "user", role::user));
  REQUIRE(revoke_certificate(dir.path() / "other", "user"));
  fs::copy_file(dir.path() / "other" / "crl.pem", ca / "head" / "crl.pem", fs::copy_options::overwrite_existing);
  std::this_thread::sleep_for(std::chrono::seconds(3)); // there is nothing to wait for: nothing happens
  CHECK(refusal("node", "node").find("is revoked") != std::string::npos);
}

TEST_CASE_METHOD(house, "certificates are changed under a running head") {
  open();
  auto held = link::dial(to("user", "user"));
  REQUIRE(held);
  REQUIRE(opened->certificate_days() > 800);
  fs::remove_all(ca / "head2");
  fs::rename(ca / "head", ca / "old");
  REQUIRE(issue_certificate(ca, "head", role::head, 20));
  CHECK(within(10, [&] { return opened->certificate_days() <= 20; }));
  CHECK(link::dial(to("user", "user")));
  CHECK((*held)->ask("list", 1, 5)); // who is there stays
}

TEST_CASE_METHOD(house, "times that do not fit are said as times") {
  open();
  REQUIRE(issue_certificate(ca, "late", role::user, -1));
  auto said = link::dial(to("late", "user"));
  REQUIRE_FALSE(said);
  CHECK(said.error().message.find("expired") != std::string::npos); // noticed here already
  // Its own clock is ahead, so it does not notice: the head does, and says whose clock says what.
  greeting g;
  CHECK(version_problem(g, g).empty());
}

TEST_CASE("versions: one of overlap, else a sentence that says what to do") {
  greeting head, node;
  head.version = "0.3.0";
  head.protocol = 5;
  head.oldest = 4;
  node.want = "node";
  node.version = "0.2.0";
  node.protocol = 4;
  node.oldest = 3;
  CHECK(version_problem(head, node).empty());
  node.protocol = 3;
  CHECK(version_problem(head, node) == "head 0.3.0 (protocol 5), node 0.2.0 (protocol 3): upgrade the node first");
  node.version = "0.5.0";
  node.protocol = 7;
  node.oldest = 6;
  CHECK(version_problem(head, node) == "head 0.3.0 (protocol 5), node 0.5.0 (protocol 7): upgrade the head first");
}

TEST_CASE_METHOD(house, "an older member is told to upgrade, over the wire") {
  open();
  auto tls = tls_context::load(ca / "node");
  auto socket = connect_to({"127.0.0.1", opened->port()}, 5);
  REQUIRE(socket);
  channel wire(std::move(*socket), *tls, false);
  while (wire.handshake() == channel::result::again) wait(wire);
  auto old = own_greeting("node");
  old.version = "0.0.9";
  old.protocol = old.oldest = oldest_protocol - 1;
  REQUIRE(write(wire, encode({"hello", 1, old, nullptr})));
  const auto text = read_some(wire);
  CHECK(text.find("upgrade the node first") != std::string::npos);
}

TEST_CASE_METHOD(house, "who asks and does not listen is slowed, then left; others do not notice") {
  door_limits limits;
  limits.unanswered = 8;
  limits.stuck_seconds = 1;
  limits.unsent_bytes = 1 << 20;
  open(limits);
  answers = false;
  auto greedy = link::dial(to("user", "user"));
  REQUIRE(greedy);
  std::vector<std::thread> asking;
  for (int i = 0; i < 20; ++i) asking.emplace_back([&] { (void)(*greedy)->ask("list", nullptr, 1); });
  for (auto& t : asking) t.join();
  {
    const std::lock_guard lock(mutex);
    CHECK(std::count_if(events.begin(), events.end(), [](const auto& e) { return e.kind == door_event::asked; }) <= 8);
  }
  answers = true;
  auto other = link::dial(to("admin", "user"));
  REQUIRE(other);
  CHECK((*other)->ask("list", 5, 5));
  // One that reads nothing.
  auto deaf = member("user", "user");
  uint64_t connection = 0;
  {
    const std::lock_guard lock(mutex);
    for (const auto& e : events)
      if (e.kind == door_event::opened) connection = e.connection;
  }
  for (int i = 0; i < 40; ++i) opened->send(connection, {"news", 0, std::string(1 << 19, 'x'), nullptr});
  CHECK(within(10, [&] {
    const std::lock_guard lock(mutex);
    return std::any_of(events.begin(), events.end(), [&](const auto& e) { return e.kind == door_event::closed && e.connection == connection; });
  }));
  CHECK((*other)->ask("list", 6, 5));
}

TEST_CASE_METHOD(house, "of one user only so much is in work at once; others are heard whatever he sends") {
  door_limits limits;
  limits.in_work = 10;
  open(limits);
  const auto counted = [&] { return std::count_if(events.begin(), events.end(), [](const auto& e) { return e.kind == door_event::asked && e.said.kind == "list"; }); };
  const auto from_users = [&] {
    const std::lock_guard lock(mutex);
    return counted();
  };
  // Questions that want no reply, which no member's own limit counts; the fixture works on each until it lets go of its event.
  std::string many;
  for (int i = 0; i < 500; ++i) many += encode({"list", 0, nullptr, nullptr});
  auto one = member("user", "user"), two = member("user", "user");
  REQUIRE(write(*one, many));
  REQUIRE(write(*two, many));
  REQUIRE(within(10, [&] { return from_users() >= 10; }));
  auto node = link::dial(to("node", "node"));
  REQUIRE(node);
  CHECK((*node)->ask("beat", 5, 30));
  auto other = link::dial(to("admin", "user"));
  REQUIRE(other);
  CHECK((*other)->ask("status", 5, 30));
  CHECK(from_users() == 10);
  long seen = 0;
  CHECK(within(60, [&] {
    const std::lock_guard lock(mutex);  // one hold for both: an event that came between them would be cleared uncounted
    seen += counted();
    events.clear();
    return seen >= 1000;
  }));
  CHECK(seen == 1000);
}

TEST_CASE_METHOD(house, "plaintext is for loopback alone") {
  door::options o;
  o.listen = {"0.0.0.0", 0};
  o.on_event = [](door_event) {};
  CHECK(door::open(std::move(o)).error().code == ec::invalid_argument);
  open({}, false);
  auto made = link::dial(to("", "user", false));
  REQUIRE(made);
  CHECK((*made)->ask("status", 3, 5).value_or(nullptr) == 3);
  CHECK(link::dial(to("user", "user")).error().hint.find("without TLS") != std::string::npos);
}
