#include "cluster/replica.hpp"

#include "cluster/log.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>

namespace pragma {

namespace {

constexpr size_t slice_bytes = 512u << 10;   ///< of the stream, in one answer
constexpr size_t most_waiting = 64u << 20;   ///< bytes that a follower may be behind; then it has to begin again
constexpr double longest_wait = 0.5;         ///< seconds until an answer without news
constexpr double closed_seconds = 0.3;       ///< after a follower's connection ended, until it counts as gone
constexpr double fewer_seconds = 30;         ///< for which there have to be fewer nodes until they are fewer: a restart, a cable
constexpr double ask_again_seconds = 0.5;    ///< nodes that have not vouched: one may have come since, or its promise to the other head be over
constexpr size_t length_bytes = 4, most_entry_bytes = 256u << 20;

} // namespace

std::string stream_entry(const std::vector<store_change>& changes) {
  const auto body = json::to_cbor(json(changes));
  std::string entry;
  for (size_t i = 0; i < length_bytes; ++i) entry += static_cast<char>(body.size() >> (8 * i) & 255);
  return entry.append(body.begin(), body.end());
}

expected<std::vector<std::vector<store_change>>> take_entries(std::string& stream) {
  std::vector<std::vector<store_change>> all;
  size_t at = 0;
  while (stream.size() - at >= length_bytes) {
    size_t size = 0;
    for (size_t i = 0; i < length_bytes; ++i) size |= static_cast<size_t>(static_cast<unsigned char>(stream[at + i])) << (8 * i);
    if (size > most_entry_bytes) return fail(ec::parse_error, "an entry of the stream between the heads claims " + std::to_string(size) + " bytes");
    if (stream.size() - at - length_bytes < size) break;
    const auto parsed = json::from_cbor(stream.substr(at + length_bytes, size), true, false);
    if (parsed.is_discarded()) return fail(ec::parse_error, "an entry of the stream between the heads cannot be read");
    auto changes = from_json_value<std::vector<store_change>>(parsed, "an entry of the stream between the heads");
    if (!changes) return fail(changes.error());
    all.push_back(std::move(*changes));
    at += length_bytes + size;
  }
  stream.erase(0, at);
  return all;
}

struct replica::impl {
  /// The other head's connection.
  struct follower {
    uint64_t connection = 0;
    std::string unsent;                   ///< of the stream
    uint64_t sent = 0, taken = 0;         ///< bytes of it
    std::optional<run_store::place> copying = run_store::place{};
    std::string since;                    ///< entries written while it is copied
    std::deque<std::pair<uint64_t, uint64_t>> marks; ///< (end of an entry in the stream, number of its batch)
    answer reply;                         ///< it waits for news
    double asked = 0, answered = 0;       ///< times
    uint64_t nodes = 0;                   ///< that it was told of last
    uint64_t whole_at = 0;                ///< bytes of the stream until the copy's end
  };

  mutable std::mutex mutex;
  std::condition_variable settled;
  pair_state state;
  std::filesystem::path file;
  std::shared_ptr<const run_store> store;
  clock_seconds now;
  std::optional<follower> other;
  bool in_step = false;                   ///< the other may take over: it has to have what is told to anybody
  double lost = -1;                       ///< since when a follower in step is gone; below 0: it is not
  bool silent = false;                    ///< ... without its machine's saying so
  /// To go on alone. Only words that are given now count: a head that was frozen finds connections and heartbeats of nodes that have left it.
  struct proposal {
    uint64_t epoch = 0;
    double since = 0, asked = -1e9;       ///< times
    std::set<std::string> nodes;          ///< that vouch
  };
  std::optional<proposal> alone;
  bool tell_epoch = false;                ///< to members
  uint64_t nodes_now = 0, nodes_needed = 0; ///< ... here; ... of which the other head may know, when it is lost
  uint64_t joined = 0;
  double enough_seen = 0;                 ///< when there were nodes_now
  uint64_t written = 0, safe = 0;         ///< numbers of batches: the last, and the last that the other has

  void keep() {
    if (auto kept = keep_pair_state(file, state); !kept) log_event(log_level::error, "the state of the pair is not kept", {{"reason", kept.error().message}});
  }

  /// Records, or, once all are copied, what was written since and the mark that it is whole.
  expected<void> more_of_the_copy() {
    auto& o = *other;
    while (o.copying && o.unsent.size() < slice_bytes) {
      auto records = store->records_after(*o.copying, slice_bytes);
      if (!records) return fail(records.error());
      if (!records->empty()) {
        o.unsent += stream_entry(*records);
        continue;
      }
      o.copying.reset();
      o.unsent += std::exchange(o.since, {}) + stream_entry({});
      o.whole_at = o.sent + o.unsent.size();
      o.marks.emplace_back(o.whole_at, written);
      in_step = true; // what is written from now on waits for it, and so does what waited for the one before
      lost = -1;
      if (alone) raise(); // nodes may know that epoch, and would not let the other head begin in an older one
    }
    return {};
  }

  void give() {
    auto& o = *other;
    follow_answer a;
    a.epoch = state.epoch;
    a.nodes = o.nodes = nodes_now;
    a.bytes = o.unsent.substr(0, slice_bytes);
    o.unsent.erase(0, a.bytes.size());
    o.sent += a.bytes.size();
    o.answered = now();
    std::exchange(o.reply, nullptr)(json(a));
  }

  void took(uint64_t bytes) {
    auto& o = *other;
    o.taken = bytes;
    while (!o.marks.empty() && o.marks.front().first <= bytes) {
      safe = std::max(safe, o.marks.front().second);
      o.marks.pop_front();
    }
    settled.notify_all();
  }

  /// The other head is told at once of one more; of fewer when that lasts.
  void count(double at) {
    if (joined >= nodes_now) enough_seen = at;
    if (joined >= nodes_now || at - enough_seen > fewer_seconds) nodes_now = joined;
    if (other && other->reply && other->nodes != nodes_now) give();
  }

  void raise() {
    state.epoch = alone->epoch;
    alone.reset();
    tell_epoch = true;
    keep();
  }

  /// Whether enough nodes vouch. Asks those that have not, now and then.
  bool may_go_on(double at, looked& result) {
    if (!alone) {
      alone = proposal{std::max(state.epoch, state.proposed) + 1, at, -1e9, {}};
      state.proposed = alone->epoch;
      keep();
    }
    auto known = state;
    known.nodes = nodes_needed;
    if (may_go_on_alone(known, alone->nodes.size())) return true;
    if (at - alone->since > vouch_seconds) {
      result.stand_down = "the standby is away, and of the " + std::to_string(nodes_needed) + " nodes that there were only " + std::to_string(alone->nodes.size()) + " vouch for this head: it may serve the others";
    } else if (at - alone->asked >= ask_again_seconds) {
      alone->asked = at;
      result.ask_nodes = alone->epoch;
    }
    return false;
  }

  void lose(bool closed) {
    if (!other) return;
    if (in_step && lost < 0) {
      nodes_needed = std::max(state.nodes, other->nodes);
      lost = closed ? now() : other->answered;
      silent = !closed;
    }
    other.reset();
    log_event(log_level::warn, "the standby is away", {{"reason", closed ? "its connection ended" : "silent"}});
  }
};

replica::replica(pair_state state, std::filesystem::path file, std::shared_ptr<const run_store> store, clock_seconds now) : impl_(std::make_unique<impl>()) {
  impl_->state = std::move(state);
  impl_->state.serves = true;
  impl_->nodes_now = impl_->state.nodes;
  impl_->enough_seen = now();
  impl_->file = std::move(file);
  impl_->store = std::move(store);
  impl_->now = std::move(now);
}
replica::~replica() = default;

uint64_t replica::wrote(const std::vector<store_change>& batch) {
  auto& p = *impl_;
  const std::lock_guard lock(p.mutex);
  ++p.written;
  if (!p.other) return p.written;
  auto& o = *p.other;
  auto entry = stream_entry(batch);
  if (o.unsent.size() + o.since.size() + entry.size() > most_waiting) {
    p.lose(true);
    return p.written;
  }
  if (o.copying) o.since += entry;
  else {
    o.unsent += entry;
    o.marks.emplace_back(o.sent + o.unsent.size(), p.written);
    if (o.reply) p.give();
  }
  return p.written;
}

void replica::settle(uint64_t number) {
  auto& p = *impl_;
  std::unique_lock lock(p.mutex);
  p.settled.wait(lock, [&] { return !p.in_step || p.safe >= number; });
}

pair_state replica::state() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->state;
}

std::string replica::standby() const {
  const std::lock_guard lock(impl_->mutex);
  const auto& o = impl_->other;
  return !o ? "none" : o->copying || o->taken < o->whole_at || impl_->state.nodes != impl_->nodes_now ? "copying" : "in step";
}

void replica::follow(uint64_t connection, const follow_ask& ask, answer reply) {
  auto& p = *impl_;
  const std::lock_guard lock(p.mutex);
  if (ask.begin) {
    if (p.other && p.other->reply) p.other->reply(fail(ec::locked, "another head follows now"));
    p.other.emplace();
    p.other->connection = connection;
    p.other->answered = p.now();
    p.other->nodes = p.state.nodes;
    log_event(log_level::info, "a standby follows", {{"epoch", p.state.epoch}});
  }
  if (!p.other || p.other->connection != connection) return reply(fail(ec::invalid_argument, "begin with a copy"));
  if (ask.taken > p.other->sent) return reply(fail(ec::invalid_argument, "more was taken than was sent"));
  auto& o = *p.other;
  o.asked = p.now();
  o.reply = std::move(reply);
  p.took(ask.taken);
  if (p.state.nodes != o.nodes) { // both know now: what only this head has seen may be a freeze of its own
    p.state.nodes = o.nodes;
    p.keep();
  }
  if (auto copied = p.more_of_the_copy(); !copied) {
    std::exchange(o.reply, nullptr)(fail(copied.error()));
    return p.lose(true);
  }
  if (!o.unsent.empty()) p.give();
}

void replica::gone(uint64_t connection) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->other && impl_->other->connection == connection) impl_->lose(true);
}

void replica::nodes(size_t count) {
  const std::lock_guard lock(impl_->mutex);
  impl_->joined = count;
  impl_->count(impl_->now());
}

void replica::vouched(const std::string& node, uint64_t epoch) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->alone && impl_->alone->epoch == epoch) impl_->alone->nodes.insert(node);
}

replica::looked replica::look() {
  auto& p = *impl_;
  looked result;
  const std::lock_guard lock(p.mutex);
  const double now = p.now();
  result.new_epoch = std::exchange(p.tell_epoch, false);
  if (p.other) {
    if (p.other->reply && now - p.other->asked > longest_wait) p.give();
    else if (!p.other->reply && now - p.other->answered > fence_seconds / 2) p.lose(false);
  }
  p.count(now);
  if (p.lost < 0 || now - p.lost < (p.silent ? fence_seconds : closed_seconds)) return result;
  if (!p.may_go_on(now, result)) return result;
  p.raise();
  p.in_step = p.tell_epoch = false;
  p.lost = -1;
  result.new_epoch = true;
  log_event(log_level::warn, "this head goes on without a standby", {{"epoch", p.state.epoch}});
  p.settled.notify_all();
  return result;
}

} // namespace pragma
