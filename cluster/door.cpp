#include "cluster/door_connection.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pragma {

using namespace door_detail;

namespace {

constexpr rlim_t wanted_files = 65536;    ///< a connection is a file
constexpr size_t other_files = 128;       ///< of stores, logs and libraries
constexpr auto round_time = std::chrono::milliseconds(250); ///< between looks at deadlines
constexpr double files_seconds = 2;       ///< between looks at the certificate's files
constexpr size_t accepts_a_round = 64, reads_a_round = 4;
constexpr size_t read_bytes = 64u << 10;
constexpr size_t nodes_of_a_certificate = 16; ///< a rack may share one: so many times a user's measure

size_t files_allowed() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const auto want = limit.rlim_max == RLIM_INFINITY ? wanted_files : std::min(wanted_files, limit.rlim_max);
  if (limit.rlim_cur < want) {
    limit.rlim_cur = want;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    ::getrlimit(RLIMIT_NOFILE, &limit);
  }
  return limit.rlim_cur;
}

std::string text_of(const sockaddr_storage& from) {
  char text[INET6_ADDRSTRLEN] = "";
  const bool six = from.ss_family == AF_INET6;
  const auto* where = six ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(from).sin6_addr) : &reinterpret_cast<const sockaddr_in&>(from).sin_addr;
  ::inet_ntop(from.ss_family, where, text, sizeof text);
  const auto port = ntohs(six ? reinterpret_cast<const sockaddr_in6&>(from).sin6_port : reinterpret_cast<const sockaddr_in&>(from).sin_port);
  return address{text, port}.text();
}

std::atomic<uint64_t> next_id = 1;

} // namespace

class door::impl {
public:
  impl(options o, open_socket socket, std::shared_ptr<const tls_context> tls) : options_(std::move(o)), listening_(std::move(socket)), tls_(std::move(tls)) {
    epoll_ = open_socket(::epoll_create1(EPOLL_CLOEXEC));
    wake_ = open_socket(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const auto files = files_allowed();
    limits_ = options_.limits;
    limits_.connections = std::min(limits_.connections, files > 2 * other_files ? files - other_files : files / 2);
    limits_.strangers = std::min(limits_.strangers, std::max<size_t>(1, limits_.connections / 2));
    watch(listening_.fd, 0, EPOLLIN, EPOLL_CTL_ADD);
    watch(wake_.fd, 1, EPOLLIN, EPOLL_CTL_ADD);
    days_ = tls_ ? tls_->own().days_left : -1;
    stamp_ = stamp();
    thread_ = std::thread([this] { serve(); });
  }
  ~impl() {
    stop_ = true;
    wake();
    thread_.join();
  }

  uint16_t port() const { return port_of(listening_.fd); }
  int days() const { return days_; }
  door_counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  void post(std::function<void()> what) {
    {
      const std::lock_guard lock(mutex_);
      posted_.push_back(std::move(what));
    }
    wake();
  }
  void send(uint64_t id, const frame& f) {
    post([this, id, reply = f.kind == "reply", text = encode(f)] {
      const auto c = all_.find(id);
      if (c == all_.end() || c->second.last_words) return;
      if (reply && c->second.unanswered > 0) --c->second.unanswered;
      if (c->second.out.size() - c->second.sent + text.size() > limits_.unsent_bytes) return drop(id, "it does not take what is sent to it");
      say(c->second, text);
      c->second.more = true; // it may have waited for this answer
    });
  }
  void tell_all(const frame& f) {
    post([this, text = encode(f)] {
      for (auto& [id, c] : all_)
        if (c.at == connection::stage::open && !c.last_words) say(c, text);
    });
  }
  void close(uint64_t id, const std::string& reason) {
    post([this, id, reason] { drop(id, reason); });
  }
  void stop_accepting() {
    post([this] { ::epoll_ctl(epoll_.fd, EPOLL_CTL_DEL, listening_.fd, nullptr); });
  }

private:
  void wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const auto ignored = ::write(wake_.fd, &one, sizeof one);
  }
  void watch(int fd, uint64_t id, uint32_t events, int how) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    ::epoll_ctl(epoll_.fd, how, fd, &event);
  }
  void count(uint64_t door_counts::*which, uint64_t by = 1) {
    const std::lock_guard lock(mutex_);
    counts_.*which += by;
  }
  void log(const char* level, const std::string& what, const identity& who) const {
    if (options_.log) options_.log(level, what, who);
  }

  // -- the round -----------------------------------------------------------------------------------------------------

  void serve() {
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    std::array<epoll_event, 256> events{};
    auto looked = clock::now();
    while (!stop_) {
      const bool busy = std::any_of(all_.begin(), all_.end(), [&](auto& c) { return c.second.more && may_read(c.second); });
      const int n = ::epoll_wait(epoll_.fd, events.data(), static_cast<int>(events.size()), busy ? 0 : static_cast<int>(round_time.count()));
      for (int i = 0; i < n; ++i) {
        const auto id = events[static_cast<size_t>(i)].data.u64;
        if (id == 0) accept_some();
        else if (id == 1) drain_wake();
        else if (const auto c = all_.find(id); c != all_.end()) {
          c->second.more = true;
          if ((events[static_cast<size_t>(i)].events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) && !may_read(c->second)) drop(id, "the connection is gone");
        }
      }
      for (auto& what : take_posted()) what();
      std::vector<uint64_t> ready;
      for (const auto& [id, c] : all_)
        if (c.more || c.out.size() > c.sent) ready.push_back(id);
      for (const auto id : ready) serve(id);
      if (clock::now() - looked < round_time) continue;
      looked = clock::now();
      look_at_deadlines();
      look_at_files();
    }
  }
  void drain_wake() const {
    uint64_t count = 0;
    [[maybe_unused]] const auto ignored = ::read(wake_.fd, &count, sizeof count);
  }
  std::vector<std::function<void()>> take_posted() {
    const std::lock_guard lock(mutex_);
    counts_.open = all_.size();
    counts_.strangers = strangers_;
    return std::exchange(posted_, {});
  }

  void accept_some() {
    for (size_t i = 0; i < accepts_a_round; ++i) {
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      open_socket s(::accept4(listening_.fd, reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (s.fd < 0) {
        if ((errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) && !make_room()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return;
      }
      if (strangers_ >= limits_.strangers || all_.size() >= limits_.connections) make_room();
      if (all_.size() >= limits_.connections) {
        count(&door_counts::refused);
        continue;
      }
      count(&door_counts::accepted);
      const int yes = 1;
      ::setsockopt(s.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      const auto id = ++next_id; // never 0 or 1
      const int fd = s.fd;
      connection c(id, channel(std::move(s), tls_, true), text_of(from));
      c.watched = EPOLLIN;
      c.more = true;
      if (!tls_) c.at = connection::stage::greeting;
      all_.emplace(id, std::move(c));
      ++strangers_;
      watch(fd, id, EPOLLIN, EPOLL_CTL_ADD);
    }
  }

  /// Who has dawdled longest with its greeting goes. False: there is nobody like that.
  bool make_room() {
    const connection* oldest = nullptr;
    for (const auto& [id, c] : all_)
      if (c.at != connection::stage::open && (!oldest || c.began < oldest->began)) oldest = &c;
    if (!oldest) return false;
    count(&door_counts::evicted);
    drop(oldest->id, "");
    return true;
  }

  void look_at_deadlines() {
    std::vector<std::pair<uint64_t, std::string>> late;
    for (const auto& [id, c] : all_) {
      if (c.at != connection::stage::open && since(c.began) > limits_.handshake_seconds) late.emplace_back(id, "it did not finish its greeting in time");
      else if (c.at == connection::stage::open && since(c.heard) > limits_.idle_seconds && c.unanswered == 0) late.emplace_back(id, "it was silent");
      else if (c.out.size() > c.sent && since(c.moved) > limits_.stuck_seconds) late.emplace_back(id, "it does not take what is sent to it");
    }
    for (const auto& [id, why] : late) drop(id, why);
  }

  // -- certificates that change -----------------------------------------------------------------------------------------

  std::string stamp() const { return options_.tls ? stamp_of(tls_files::in(*options_.tls)) : std::string(); }
  void look_at_files() {
    if (!options_.tls || since(files_looked_) < files_seconds) return;
    files_looked_ = clock::now();
    std::vector<std::pair<uint64_t, std::string>> gone;
    if (const auto now = stamp(); now != stamp_) {
      auto fresh = tls_context::load(*options_.tls);
      if (!fresh) {
        if (complained_ != now) log("warn", "the changed certificate files are not used: " + fresh.error().message, {});
        complained_ = now;
        return; // half written, perhaps: looked at again
      }
      stamp_ = now;
      tls_ = std::move(*fresh);
      days_ = tls_->own().days_left;
      log("info", "read the changed certificate files (valid for " + std::to_string(days_) + " days)", {});
    }
    for (const auto& [id, c] : all_) {
      if (c.at != connection::stage::open) continue;
      if (tls_->revoked(c.who.serial)) gone.emplace_back(id, "its certificate is revoked");
      else if (const auto wrong = c.wire.what_is_wrong(); !wrong.empty()) gone.emplace_back(id, wrong);
    }
    for (const auto& [id, why] : gone) drop(id, why);
  }

  // -- one connection -----------------------------------------------------------------------------------------------------

  bool may_read(connection& c) const {
    if (c.last_words || c.unanswered >= limits_.unanswered) return false;
    const size_t times = c.who.what == role::node ? nodes_of_a_certificate : 1;
    if (c.hands && (c.hands->frames >= times * limits_.in_work || c.hands->bytes >= times * limits_.in_work_bytes)) return false;
    const auto now = clock::now();
    c.allowance = std::min(limits_.frames_a_second, c.allowance + std::chrono::duration<double>(now - c.allowed_at).count() * limits_.frames_a_second);
    c.allowed_at = now;
    return c.at != connection::stage::open || c.allowance >= 1;
  }

  void serve(uint64_t id) {
    auto found = all_.find(id);
    if (found == all_.end()) return;
    auto& c = found->second;
    if (c.at == connection::stage::handshake && !shake(c)) return;
    if (c.out.size() > c.sent && !flush(c)) return;
    if (c.more && may_read(c) && !take(c)) return;
    // A user who has left wants no answers; what a node said before it left counts.
    const auto waits = c.who.what == role::node ? 0u : static_cast<uint32_t>(EPOLLRDHUP);
    uint32_t wanted = (may_read(c) || c.last_words) ? static_cast<uint32_t>(EPOLLIN) : waits;
    if (c.out.size() > c.sent || (c.at == connection::stage::handshake && c.wire.wants() == POLLOUT)) wanted |= EPOLLOUT;
    if (wanted != c.watched) watch(c.wire.fd(), c.id, c.watched = wanted, EPOLL_CTL_MOD);
  }

  bool shake(connection& c) {
    const auto done = c.wire.handshake();
    if (done == channel::result::again) {
      c.more = false;
      return true;
    }
    if (done == channel::result::closed) {
      count(&door_counts::handshakes_failed);
      return drop(c.id, c.wire.trouble()), false;
    }
    c.at = connection::stage::greeting;
    return true;
  }

  bool flush(connection& c) {
    while (c.out.size() > c.sent) {
      size_t sent = 0;
      const auto done = c.wire.write(c.out.data() + c.sent, c.out.size() - c.sent, sent);
      if (done == channel::result::closed) return drop(c.id, c.wire.trouble()), false;
      if (done == channel::result::again) return true;
      c.sent += sent;
      c.moved = clock::now();
      count(&door_counts::bytes_out, sent);
    }
    c.out.clear();
    c.sent = 0;
    if (c.last_words) return drop(c.id, ""), false;
    return true;
  }

  /// What has come in, and the whole frames in it.
  bool take(connection& c) {
    std::string& buffer = scratch_;
    buffer.resize(read_bytes);
    for (size_t i = 0; i < reads_a_round; ++i) {
      size_t got = 0;
      const auto done = c.wire.read(buffer.data(), buffer.size(), got);
      if (done == channel::result::again) {
        c.more = false;
        break;
      }
      if (done == channel::result::closed) return drop(c.id, c.wire.trouble()), false;
      count(&door_counts::bytes_in, got);
      c.in.append(buffer, 0, got);
    }
    const auto limit = c.at == connection::stage::open ? max_frame_bytes : max_greeting_bytes;
    size_t at = 0;
    while (c.in.size() - at >= frame_head_bytes && may_read(c)) {
      const auto view = std::string_view(c.in).substr(at);
      const auto size = claimed_length(view, limit);
      if (!size) return bad(c, size.error().message), false;
      if (view.size() - frame_head_bytes < *size) break;
      auto f = decode(view.substr(frame_head_bytes, *size));
      at += frame_head_bytes + *size;
      if (!f) return bad(c, f.error().message), false;
      c.allowance -= 1;
      const auto id = c.id;
      if (!(c.at == connection::stage::open ? heard(c, std::move(*f), *size) : greeted(c, *f)) || !all_.contains(id)) return false;
      if (c.last_words || c.at != connection::stage::open) break;
    }
    if (at > 0) c.in.erase(0, at);
    if (c.in.empty()) c.in.shrink_to_fit();
    if (c.in.size() >= frame_head_bytes && !may_read(c)) c.more = true; // whole frames may wait in here
    return true;
  }

  void bad(connection& c, const std::string& why) {
    count(&door_counts::bad_frames);
    log("warn", "closed: " + why, c.who);
    drop(c.id, why);
  }

  bool greeted(connection& c, const frame& f) {
    const auto theirs = f.kind == "hello" ? from_json_value<greeting>(f.body, "a greeting") : expected<greeting>(fail(ec::parse_error, "no greeting"));
    if (!theirs) return bad(c, "it did not greet"), false;
    c.who = c.wire.peer(c.from);
    if (!tls_) c.who.what = role_for(theirs->want);
    auto answer = own_greeting("head");
    answer.refused = c.wire.what_is_wrong();
    if (answer.refused.empty() && tls_ && tls_->revoked(c.who.serial)) answer.refused = "the certificate of " + printable(c.who.name) + " is revoked";
    if (answer.refused.empty()) answer.refused = version_problem(answer, *theirs);
    if (answer.refused.empty()) answer.refused = role_problem(c.who, theirs->want);
    if (answer.refused.empty() && tls_ && c.who.what != role::node && std::count_if(all_.begin(), all_.end(), [&](const auto& o) { return o.second.at == connection::stage::open && o.second.who.serial == c.who.serial; }) >= static_cast<long>(limits_.per_user))
      answer.refused = "too many connections of " + printable(c.who.name) + " (" + std::to_string(limits_.per_user) + ")";
    if (answer.refused.empty() && options_.turn_away) {
      options_.turn_away(*theirs, c.who, answer);
      answer.for_now = !answer.refused.empty();
    }
    answer.epoch = options_.epoch ? options_.epoch() : 0;
    say(c, encode({"welcome", f.id, answer, nullptr}));
    if (!answer.refused.empty()) {
      count(&door_counts::refused);
      log(answer.for_now ? "debug" : "warn", "refused: " + answer.refused, c.who);
      c.last_words = true;
      return flush(c);
    }
    c.at = connection::stage::open;
    auto& known = hands_[name(c.who.what) + c.who.serial];
    c.hands = known.lock();
    if (!c.hands) known = c.hands = std::make_shared<work_in_hand>();
    c.heard = clock::now();
    c.allowance = limits_.frames_a_second;
    --strangers_;
    door_event event;
    event.kind = door_event::opened;
    event.connection = c.id;
    event.who = c.who;
    event.want = theirs->want;
    options_.on_event(std::move(event));
    return flush(c);
  }

  bool heard(connection& c, frame f, size_t bytes) {
    c.heard = clock::now();
    if (!may(c.who.what, f.kind)) {
      count(&door_counts::forbidden);
      log("warn", "may not: " + printable(f.kind), c.who);
      json why = {{"code", static_cast<int>(ec::unsupported)}, {"message", "a " + name(c.who.what) + " may not ask for '" + printable(f.kind) + "' here"}, {"hint", "docs/cluster.md says what each role can do"}};
      if (f.id != 0) say(c, encode({"reply", f.id, nullptr, std::move(why)}));
      return flush(c);
    }
    if (f.id != 0) ++c.unanswered;
    door_event event;
    event.kind = door_event::asked;
    event.connection = c.id;
    event.said = std::move(f);
    event.in_hand = take_in_hand(c.hands, bytes);
    options_.on_event(std::move(event));
    return true;
  }

  void say(connection& c, const std::string& text) {
    if (c.out.size() == c.sent) c.moved = clock::now();
    c.out += text;
  }

  void drop(uint64_t id, std::string reason) { // a copy: it may be the connection's own text
    const auto c = all_.find(id);
    if (c == all_.end()) return;
    const bool open = c->second.at == connection::stage::open;
    if (!open) --strangers_;
    if (!open && !reason.empty()) log("debug", "no greeting from " + c->second.from + ": " + reason, c->second.who);
    ::epoll_ctl(epoll_.fd, EPOLL_CTL_DEL, c->second.wire.fd(), nullptr);
    all_.erase(c);
    if (!open) return;
    door_event event;
    event.kind = door_event::closed;
    event.connection = id;
    event.reason = std::move(reason);
    options_.on_event(std::move(event));
  }

  options options_;
  door_limits limits_;
  open_socket listening_, epoll_, wake_;
  std::shared_ptr<const tls_context> tls_;
  std::map<uint64_t, connection> all_;
  size_t strangers_ = 0;
  std::map<std::string, std::weak_ptr<work_in_hand>> hands_; ///< by certificate
  std::string scratch_, stamp_, complained_;
  clock::time_point files_looked_ = clock::now();
  mutable std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
  door_counts counts_;
  std::atomic<int> days_ = -1;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

expected<void> may_use(const address& a, bool tls, const char* doing) {
  if (tls || a.loopback()) return {};
  return fail(ec::invalid_argument, std::string(doing) + " " + a.text() + " without TLS is refused: whoever reaches the port could run programs here",
              "`pragma cluster ca init DIR` and `pragma cluster ca issue NAME --role ROLE` make what --tls needs");
}

expected<std::unique_ptr<door>> door::open(options o) {
  if (auto good = may_use(o.listen, o.tls.has_value(), "listening on"); !good) return fail(good.error());
  std::shared_ptr<const tls_context> tls;
  if (o.tls) {
    auto loaded = tls_context::load(*o.tls);
    if (!loaded) return fail(loaded.error());
    if ((*loaded)->own().role != "head")
      return fail(ec::invalid_argument, "the certificate in " + o.tls->string() + " is for a " + (*loaded)->own().role + ", not for a head", "`pragma cluster ca issue NAME --role head`");
    tls = std::move(*loaded);
  }
  auto socket = o.inherited >= 0 ? expected<open_socket>(open_socket(::fcntl(o.inherited, F_DUPFD_CLOEXEC, 0))) : listen_on(o.listen);
  if (!socket) return fail(socket.error());
  return std::unique_ptr<door>(new door(std::make_unique<impl>(std::move(o), std::move(*socket), std::move(tls))));
}

door::door(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
door::~door() = default;
uint16_t door::port() const { return impl_->port(); }
int door::certificate_days() const { return impl_->days(); }
door_counts door::counts() const { return impl_->counts(); }
void door::send(uint64_t connection, const frame& f) { impl_->send(connection, f); }
void door::close(uint64_t connection, const std::string& reason) { impl_->close(connection, reason); }
void door::tell_all(const frame& f) { impl_->tell_all(f); }
void door::stop_accepting() { impl_->stop_accepting(); }

} // namespace pragma
