// Members with a valid certificate who send what they like: a generator of frames against the real head. The head lives, answers others, stays below a
// bound of memory. PRAGMA_FUZZ_SECONDS says for how long (default 20), PRAGMA_FUZZ_SEED which frames.
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "cluster/link.hpp"
#include "cluster/messages.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include <poll.h>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

constexpr int senders = 4;
constexpr long most_kib = 300 * 1024;

double seconds_wanted() {
  const char* text = std::getenv("PRAGMA_FUZZ_SECONDS");
  return text ? std::atof(text) : 20;
}
uint64_t seed_wanted() {
  const char* text = std::getenv("PRAGMA_FUZZ_SEED");
  return text ? std::strtoull(text, nullptr, 10) : std::random_device()();
}

class generator {
public:
  explicit generator(uint64_t seed) : random_(seed) {}
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  bool one_in(size_t n) { return below(n) == 0; }

  std::string text() {
    static const std::vector<std::string> known{"", "cpu", "a", "b", "run", "../../etc/passwd", "20261121-101502-3fa9c1", "verify", "t.py", "\xff\xfe", std::string("\0x", 2), "\x1b[2J", "cuda", "builtin", "llm", "openai", "find", "{}"};
    if (one_in(40)) return std::string(taken(below(200'000)), 'x');
    return known[below(known.size())];
  }
  json value(int depth) {
    switch (below(depth > 0 ? 10 : 8)) {
      case 0: return nullptr;
      case 1: return one_in(2);
      case 2: return static_cast<int64_t>(random_());
      case 3: return random_();
      case 4: return std::bit_cast<double>(random_());
      case 5: return static_cast<int>(below(5)) - 2;
      case 6:
      case 7: return text();
      case 8: {
        json all = json::array();
        for (size_t i = taken(below(one_in(50) ? 20'000 : 6)); i > 0; --i) all.push_back(value(depth - 1));
        return all;
      }
      default: {
        json all = json::object();
        for (size_t i = taken(below(6)); i > 0; --i) all[text()] = value(depth - 1);
        return all;
      }
    }
  }
  /// What a member would send, with some of it replaced.
  json body(const std::string& kind) {
    json b;
    if (kind == "join") {
      node_hello h;
      h.facts = {"a", "0", 2, {{"cpu", "cpu", "m", "a", 1, {"perf"}, {}, {}}}, 256, "host"};
      b = h;
    } else if (kind == "beat") {
      b = heartbeat{"a", 1, {1, 2}};
    } else if (kind == "done") {
      b = work_answer{};
    } else if (kind == "start") {
      run_order o;
      o.task = {"t.py", "class Model: pass", ""};
      b = o;
    } else if (kind == "ask") {
      b = {{"text", "which counter shows cache misses"}, {"count", 3}};
    } else {
      b = {{"run", text()}, {"from", random_()}, {"offset", below(1000)}, {"node", text()}};
    }
    for (size_t i = below(4); i > 0; --i) spoil(b, 6);
    return b;
  }
  std::string frame_bytes() {
    left_ = one_in(50) ? 1'500'000 : 20'000;
    const auto& kinds = frame_kinds();
    const auto kind = one_in(30) ? text().substr(0, 20) : kinds[below(kinds.size())];
    auto bytes = encode({kind, one_in(3) ? 0 : random_() >> below(60), one_in(5) ? value(5) : body(kind), one_in(30) ? value(2) : json(nullptr)});
    if (one_in(25)) // the bytes themselves
      for (size_t i = 1 + below(8); i > 0; --i) bytes[below(bytes.size())] = static_cast<char>(random_());
    if (one_in(60)) bytes.resize(below(bytes.size()));
    return bytes;
  }

private:
  void spoil(json& b, int depth) {
    if (depth > 0 && b.is_object() && !b.empty() && !one_in(5)) {
      auto it = b.begin();
      std::advance(it, static_cast<long>(below(b.size())));
      return spoil(it.value(), depth - 1);
    }
    if (depth > 0 && b.is_array() && !b.empty() && !one_in(3)) return spoil(b[below(b.size())], depth - 1);
    b = value(3);
  }
  /// A frame has only so much in it.
  size_t taken(size_t wanted) {
    wanted = std::min(wanted, left_);
    left_ -= wanted;
    return wanted;
  }
  std::mt19937_64 random_;
  size_t left_ = 20'000;
};

bool write_all(channel& wire, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    size_t sent = 0;
    const auto done = wire.write(text.data() + at, text.size() - at, sent);
    if (done == channel::result::closed) return false;
    at += sent;
    if (done == channel::result::done) continue;
    pollfd p{wire.fd(), wire.wants(), 0};
    if (::poll(&p, 1, 2000) <= 0) return false;
  }
  return true;
}
/// Reads what is there and throws it away.
bool drain(channel& wire) {
  char buffer[65536];
  for (;;) {
    size_t got = 0;
    const auto done = wire.read(buffer, sizeof buffer, got);
    if (done == channel::result::closed) return false;
    if (done == channel::result::again) return true;
  }
}

long peak_kib(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmHWM:")) return std::atol(line.c_str() + 6);
  return 0;
}

} // namespace

TEST_CASE("frames of all kinds, from members with certificates: the head lives and serves others") {
  ::signal(SIGPIPE, SIG_IGN); // the head closes where it must
  auto dir = std::move(*temp_dir::create("pragma-fuzz-"));
  const auto ca = dir.path() / "ca";
  REQUIRE(create_ca(ca, "fuzz"));
  for (const auto& [name, what] : {std::pair{"head", role::head}, {"a", role::node}, {"u", role::user}, {"m", role::admin}, {"other", role::admin}}) REQUIRE(issue_certificate(ca, name, what));
  process_spec spec;
  // Its log goes to a file: nobody reads a pipe here, and what it said last is shown when it is gone.
  const auto log = dir.path() / "log";
  spec.argv = {"sh", "-c", "exec \"$0\" \"$@\" >'" + log.string() + "' 2>&1", PRAGMA_EXE, "head", "--listen", "127.0.0.1:0", "--tls", (ca / "head").string(), "--ready-file", (dir.path() / "ready").string(), "--no-supervisor", "--log-level", "error"};
  spec.env = {{"PRAGMA_HOME", (dir.path() / "home").string()}};
  spec.limits.wall_seconds = seconds_wanted() + 120;
  auto head = child_process::start(spec);
  REQUIRE(head);
  int port = 0;
  for (int i = 0; i < 400 && port == 0; ++i, std::this_thread::sleep_for(std::chrono::milliseconds(50))) std::ifstream(dir.path() / "ready") >> port;
  REQUIRE(port > 0);
  const address where{"127.0.0.1", static_cast<uint16_t>(port)};

  const auto seed = seed_wanted();
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds_wanted());
  std::atomic<uint64_t> frames = 0, connections = 0;
  std::vector<std::thread> all;
  for (int i = 0; i < senders; ++i)
    all.emplace_back([&, i] {
      generator g(seed + static_cast<uint64_t>(i));
      while (std::chrono::steady_clock::now() < end) {
        const bool node = g.one_in(2);
        auto tls = tls_context::load(ca / (node ? "a" : g.one_in(2) ? "u" : "m"));
        auto socket = connect_to(where, 5);
        if (!tls || !socket) continue;
        channel wire(std::move(*socket), *tls, false);
        for (int tries = 0; tries < 50 && wire.handshake() == channel::result::again; ++tries) {
          pollfd p{wire.fd(), wire.wants(), 0};
          ::poll(&p, 1, 1000);
        }
        ++connections;
        bool good = g.one_in(20) || write_all(wire, encode({"hello", 1, own_greeting(node ? "node" : "user"), nullptr}));
        for (int n = 0; good && n < 2000 && std::chrono::steady_clock::now() < end; ++n, ++frames) good = write_all(wire, g.frame_bytes()) && drain(wire);
      }
    });
  for (auto& t : all) t.join();
  INFO("seed " << seed << ", " << frames << " frames over " << connections << " connections, peak " << peak_kib(head->pid()) / 1024 << " MiB");
  WARN("seed " << seed << ", " << frames << " frames over " << connections << " connections, peak " << peak_kib(head->pid()) / 1024 << " MiB");
  CHECK(frames > 100);
  const auto said = read_file(log);
  INFO((said ? said->substr(said->size() - std::min<size_t>(said->size(), 3000)) : "no log"));
  REQUIRE(head->alive());
  CHECK(peak_kib(head->pid()) < most_kib);
  link::options o;
  o.heads = {where};
  o.tls = ca / "other"; // the others have locked themselves out for a while
  o.want = "user";
  auto other = link::dial(o);
  INFO((other ? "in" : other.error().message));
  REQUIRE(other);
  CHECK((*other)->ask_for<cluster_status>("status", nullptr, 30));
  CHECK((*other)->ask("list", nullptr, 30));
  ::kill(head->pid(), SIGTERM);
  for (int i = 0; i < 300 && head->alive(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK_FALSE(head->alive());
  CHECK(head->kill().exit_code == 0);
}
