#include "cluster/link.hpp"

#include "base/sigpipe.hpp"
#include "base/text.hpp"
#include "cluster/door.hpp"
#include "cluster/messages.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <thread>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;

constexpr size_t read_bytes = 64u << 10;

clock::time_point in(double seconds) { return clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds)); }

/// False when time is up.
bool wait_for(int fd, short events, clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now()).count();
  pollfd p{fd, events, 0};
  return left > 0 && ::poll(&p, 1, static_cast<int>(left)) != 0;
}

expected<void> write_all(channel& wire, const std::string& text, clock::time_point end, const std::string& to) {
  for (size_t at = 0; at < text.size();) {
    size_t sent = 0;
    const auto done = wire.write(text.data() + at, text.size() - at, sent);
    if (done == channel::result::closed) return fail(ec::remote_failed, "cannot talk to " + to + ": " + wire.trouble());
    if (done == channel::result::again && !wait_for(wire.fd(), wire.wants(), end)) return fail(ec::timeout, to + " takes nothing");
    at += sent;
  }
  return {};
}

/// The first whole frame, and what follows it in `rest`.
expected<frame> read_frame(channel& wire, std::string& rest, size_t limit, clock::time_point end, const std::string& from) {
  std::string buffer(read_bytes, '\0');
  for (;;) {
    if (rest.size() >= frame_head_bytes) {
      const auto size = claimed_length(rest, limit);
      if (!size) return fail(ec::remote_failed, from + " does not speak as a head does: " + size.error().message, "is that a `pragma head`, of this version?");
      if (rest.size() - frame_head_bytes >= *size) {
        auto f = decode(std::string_view(rest).substr(frame_head_bytes, *size));
        rest.erase(0, frame_head_bytes + *size);
        return f;
      }
    }
    size_t got = 0;
    const auto done = wire.read(buffer.data(), buffer.size(), got);
    if (done == channel::result::closed)
      return fail(ec::remote_failed, from + " closed the connection: " + wire.trouble(), "all members need certificates of one CA: `pragma cluster ca issue NAME --role ROLE` on the CA's machine; does the head use TLS? then give --tls DIR here, too");
    if (done == channel::result::again && !wait_for(wire.fd(), wire.wants(), end))
      return fail(ec::timeout, from + " accepted the connection but did not answer", "is the head stopped or overloaded, or something else on that port? does it use TLS? then give --tls DIR here, too");
    rest.append(buffer, 0, got);
  }
}

error lost() { return {ec::remote_failed, "the link to the head is gone", ""}; }

} // namespace

class link::impl {
public:
  impl(channel wire, std::string rest, address head, size_t number, int days, const options& o)
      : head_(std::move(head)), number_(number), days_(days), node_(o.want == "node"), memory_(o.memory), wire_(std::move(wire)), in_(std::move(rest)), on_frame_(o.on_frame), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    thread_ = std::thread([this] { pump(); });
  }
  ~impl() {
    stop_ = true;
    wake();
    thread_.join();
  }

  const address head_;
  const size_t number_;
  const int days_;
  const bool node_;
  const std::shared_ptr<witness> memory_;
  bool alive() const { return alive_; }

  expected<json> ask(const std::string& kind, json body, double seconds) {
    const auto id = ++ids_;
    {
      const std::lock_guard lock(mutex_);
      if (!alive_) return fail(lost());
      waiting_[id] = std::nullopt;
    }
    send({kind, id, std::move(body), nullptr});
    std::unique_lock lock(mutex_);
    heard_.wait_until(lock, in(seconds), [&] { return waiting_[id].has_value() || !alive_; });
    auto answer = std::move(waiting_[id]);
    waiting_.erase(id);
    if (!answer) return alive_ ? fail(ec::timeout, "the head at " + head_.text() + " does not answer") : fail(lost());
    if (!answer->failure.is_null()) {
      auto why = from_json_value<failure>(answer->failure, "the head's refusal");
      return fail(why ? why->what() : why.error());
    }
    return std::move(answer->body);
  }
  void send(const frame& f) {
    {
      const std::lock_guard lock(mutex_);
      out_ += encode(f);
    }
    wake();
  }

private:
  void wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const auto ignored = ::write(wake_.fd, &one, sizeof one);
  }

  void pump() {
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    std::string buffer(read_bytes, '\0');
    bool good = whole_frames();
    while (good && !stop_) {
      good = write_some() && read_some(buffer) && whole_frames();
      if (!good || stop_) break;
      pollfd p[2] = {{wire_.fd(), POLLIN, 0}, {wake_.fd, POLLIN, 0}};
      if (unsent()) p[0].events |= POLLOUT;
      ::poll(p, 2, 1000);
      uint64_t count = 0;
      if (p[1].revents) [[maybe_unused]] const auto ignored = ::read(wake_.fd, &count, sizeof count);
    }
    const std::lock_guard lock(mutex_);
    alive_ = false;
    heard_.notify_all();
  }
  bool unsent() {
    const std::lock_guard lock(mutex_);
    return !out_.empty();
  }
  bool write_some() {
    for (;;) {
      std::string text;
      {
        const std::lock_guard lock(mutex_);
        if (out_.empty()) return true;
        text = out_.substr(0, read_bytes);
      }
      size_t sent = 0;
      const auto done = wire_.write(text.data(), text.size(), sent);
      if (done == channel::result::closed) return false;
      if (done == channel::result::again) return true;
      const std::lock_guard lock(mutex_);
      out_.erase(0, sent);
      if (out_.empty()) heard_.notify_all();
    }
  }
  bool read_some(std::string& buffer) {
    for (;;) {
      size_t got = 0;
      const auto done = wire_.read(buffer.data(), buffer.size(), got);
      if (done == channel::result::closed) return false;
      if (done == channel::result::again) return true;
      in_.append(buffer, 0, got);
      if (in_.size() > 2 * max_frame_bytes) return true; // first those that are there
    }
  }
  bool whole_frames() {
    size_t at = 0;
    while (in_.size() - at >= frame_head_bytes) {
      const auto view = std::string_view(in_).substr(at);
      const auto size = claimed_length(view, max_frame_bytes);
      if (!size) return false;
      if (view.size() - frame_head_bytes < *size) break;
      auto f = decode(view.substr(frame_head_bytes, *size));
      at += frame_head_bytes + *size;
      if (!f) return false;
      if (f->kind == "epoch" || f->kind == "vouch") {
        about_pair(*f);
        continue;
      }
      if (f->kind != "reply") {
        if (on_frame_) on_frame_(std::move(*f));
        continue;
      }
      const std::lock_guard lock(mutex_);
      if (const auto asked = waiting_.find(f->id); asked != waiting_.end()) asked->second = std::move(*f);
      heard_.notify_all();
    }
    in_.erase(0, at);
    return true;
  }

  /// The head goes on without the other one, or asks whether it may.
  void about_pair(const frame& f) {
    if (!memory_ || !f.body.is_number_unsigned()) return;
    const auto epoch = f.body.get<uint64_t>();
    if (f.kind == "epoch") memory_->served(epoch);
    else if (node_ && memory_->vouch(head_.text(), epoch)) send({"vouch", 0, epoch, nullptr});
  }

  channel wire_;
  std::string in_;
  std::function<void(frame)> on_frame_;
  open_socket wake_;
  std::mutex mutex_;
  std::condition_variable heard_;
  std::string out_;
  std::map<uint64_t, std::optional<frame>> waiting_;
  std::atomic<uint64_t> ids_ = 0;
  std::atomic<bool> alive_ = true, stop_ = false;
  std::thread thread_;
};

expected<std::unique_ptr<link>> link::dial(const options& o) {
  const sigpipe_guard quiet; // OpenSSL writes with write()
  std::shared_ptr<const tls_context> tls;
  if (o.tls) {
    auto loaded = tls_context::load(*o.tls);
    if (!loaded) return fail(loaded.error());
    tls = std::move(*loaded);
  }
  const int days = tls ? tls->own().days_left : -1;
  expected<std::unique_ptr<link>> answer = fail(ec::invalid_argument, "no head is named", "--head HOST:PORT, or PRAGMA_HEAD");
  for (size_t i = 0; i < o.heads.size(); ++i) {
    const auto number = (o.first + i) % o.heads.size();
    const auto& head = o.heads[number];
    const auto one = [&]() -> expected<std::unique_ptr<link>> {
      if (auto good = may_use(head, tls != nullptr, "dialling"); !good) return fail(good.error());
      const auto end = in(o.seconds);
      auto socket = connect_to(head, o.seconds);
      if (!socket) return fail(socket.error());
      channel wire(std::move(*socket), tls, false);
      for (;;) {
        const auto done = wire.handshake();
        if (done == channel::result::done) break;
        if (done == channel::result::closed)
          return fail(ec::remote_failed, head.text() + " and this machine do not trust each other: " + wire.trouble(), "all members need certificates of one CA: `pragma cluster ca issue NAME --role ROLE` on the CA's machine; or does the head serve without TLS?");
        if (!wait_for(wire.fd(), wire.wants(), end)) return fail(ec::timeout, head.text() + " accepted the connection but did not answer", "is the head stopped or overloaded, or something else on that port?");
      }
      if (const auto who = wire.peer(head.text()); tls && who.what != role::head)
        return fail(ec::remote_failed, "what listens on " + head.text() + " is " + printable(who.name) + ", whose certificate is not a head's", "only a certificate of --role head makes a head");
      if (const auto wrong = wire.what_is_wrong(); !wrong.empty()) return fail(ec::remote_failed, head.text() + ": " + wrong);
      auto own = own_greeting(o.want);
      own.node = o.node;
      if (o.memory) {
        own.epoch = o.memory->epoch();
        own.vouched = o.memory->vouched();
        own.misses = o.want == "node" && o.memory->misses(head.text());
      }
      if (auto said = write_all(wire, encode({"hello", 1, own, nullptr}), end, head.text()); !said) return fail(said.error());
      std::string rest;
      auto reply = read_frame(wire, rest, max_greeting_bytes, end, head.text());
      if (!reply) return fail(reply.error());
      const auto theirs = from_json_value<greeting>(reply->body, "the head's greeting");
      if (!theirs || reply->kind != "welcome") return fail(ec::remote_failed, "what listens on " + head.text() + " is no head of this version", "install the same version on all members");
      if (own.misses) o.memory->counted(head.text(), theirs->counts ? theirs->epoch + 1 : 0);
      // Also of one that stands by: the head that this member gave its word to may have begun, and be gone again before the member could come back to it.
      if (o.memory && theirs->for_now) o.memory->served(theirs->epoch);
      if (theirs->for_now) return fail(ec::locked, "the head at " + head.text() + " does not serve now: " + printable(theirs->refused), "it is one of two: name both, with a comma between");
      if (!theirs->refused.empty()) return fail(ec::unsupported, "the head at " + head.text() + " refuses: " + printable(theirs->refused));
      if (theirs->epoch < own.epoch)
        return fail(ec::remote_failed, "the head at " + head.text() + " is an older one (epoch " + std::to_string(theirs->epoch) + ", and " + std::to_string(own.epoch) + " was here): another has taken over",
                    "it finds that out when it reaches the other; was it set up anew? then start this again");
      if (o.memory) o.memory->served(theirs->epoch);
      return std::unique_ptr<link>(new link(std::make_unique<impl>(std::move(wire), std::move(rest), head, number, days, o)));
    };
    answer = one();
    if (answer) return answer;
  }
  return answer;
}

link::link(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
link::~link() = default;
const address& link::head() const { return impl_->head_; }
size_t link::number() const { return impl_->number_; }
int link::certificate_days() const { return impl_->days_; }
bool link::alive() const { return impl_->alive(); }
expected<json> link::ask(const std::string& kind, json body, double seconds) { return impl_->ask(kind, std::move(body), seconds); }
void link::tell(const std::string& kind, json body) { impl_->send({kind, 0, std::move(body), nullptr}); }

} // namespace pragma
