#include "cluster/standby.hpp"

#include "actors/store.hpp"
#include "base/text.hpp"
#include "cluster/link.hpp"
#include "cluster/log.hpp"
#include "cluster/replica.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <set>

namespace pragma {

namespace {

namespace fs = std::filesystem;
using clock = std::chrono::steady_clock;

constexpr double dial_seconds = 1.5, word_seconds = 2, answer_seconds = 3;
constexpr auto pause = std::chrono::milliseconds(200);
constexpr double rival_seconds = 2;
constexpr uint64_t beyond = 1000;         ///< epochs: more than members can have heard of from the other head

double since(clock::time_point then) { return std::chrono::duration<double>(clock::now() - then).count(); }

link::options to_other(const address& peer, const std::optional<fs::path>& tls, double seconds) {
  link::options o;
  o.heads = {peer};
  o.tls = tls;
  o.want = "head";
  o.seconds = seconds;
  return o;
}

/// The door of a head that does not serve: members are told so, and counted while the other head is away from here; the other head is answered.
class waiting_door {
public:
  waiting_door(const standby_options& o, std::function<pair_state()> own, const std::atomic<bool>& away) : options_(o), own_(std::move(own)), away_(away) {}

  expected<void> open() {
    door::options d;
    d.listen = options_.listen;
    d.inherited = options_.listening;
    d.tls = options_.tls;
    d.log = options_.log;
    d.epoch = [this] { return own_().epoch; };
    d.turn_away = [this](const greeting& g, const identity& who, greeting& answer) { turn_away(g, who, answer); };
    d.on_event = [this](door_event event) { asked(event); };
    auto opened = door::open(std::move(d));
    if (!opened) return fail(opened.error());
    const std::lock_guard lock(mutex_);
    door_ = std::move(*opened);
    return {};
  }
  void look(pair_view& view) {
    const std::lock_guard lock(mutex_);
    if (!away_) came_.clear();
    view.newest_epoch = newest_;
    view.vouched_epoch = vouched_;
    for (const auto& [name, when] : came_)
      if (since(when) < witness_seconds) {
        view.anybody = true;
        view.nodes += name.starts_with("node ");
      }
  }

private:
  void turn_away(const greeting& g, const identity& who, greeting& answer) {
    if (who.what == role::head) return;
    const std::lock_guard lock(mutex_);
    newest_ = std::max(newest_, g.epoch);
    vouched_ = std::max(vouched_, g.vouched);
    std::erase_if(came_, [this](const auto& c) { return !away_ || since(c.second) >= witness_seconds; });
    answer.counts = away_ && g.misses && may_be_called(who, g.node);
    if (answer.counts) came_["node " + g.node] = clock::now();
    if (away_ && who.what != role::node) came_["user " + who.name] = clock::now();
    answer.refused = "this head stands by; ask the other, " + options_.peer.text();
  }
  /// In the door's thread.
  void asked(const door_event& event) {
    if (event.kind != door_event::asked) return;
    const std::lock_guard lock(mutex_);
    if (!door_) return;
    const auto& f = event.said;
    if (f.kind == "who") return door_->send(event.connection, {"reply", f.id, json(own_()), nullptr});
    door_->send(event.connection, {"reply", f.id, nullptr, {{"code", static_cast<int>(ec::locked)}, {"message", "this head stands by"}, {"hint", ""}}});
  }

  const standby_options& options_;
  const std::function<pair_state()> own_;
  const std::atomic<bool>& away_;
  mutable std::mutex mutex_;
  std::map<std::string, clock::time_point> came_; ///< "node NAME", "user NAME"
  uint64_t newest_ = 0, vouched_ = 0;     ///< epochs
  std::unique_ptr<door> door_;            ///< last: its thread uses the others
};

class standing_by {
public:
  standing_by(const standby_options& o, const std::atomic<bool>& stop) : options_(o), stop_(stop) {}

  expected<std::optional<pair_state>> run() {
    auto known = state_of_home(options_.state, options_.runs);
    if (!known) return fail(known.error());
    state_ = std::move(*known);
    const auto own = [this] {
      const std::lock_guard lock(mutex_);
      return state_;
    };
    waiting_door at_door(options_, own, away_);
    if (auto opened = at_door.open(); !opened) return fail(opened.error());
    log_event(log_level::info, "standing by", {{"other", options_.peer.text()}, {"epoch", state_.epoch}});
    for (; !stop_; std::this_thread::sleep_for(pause)) {
      if (options_.alive) options_.alive();
      pair_view view;
      ask(view);
      at_door.look(view);
      const auto decided = decide(state_, view);
      if (decided.why != told_) log_event(log_level::info, decided.why);
      told_ = decided.why;
      // First it claims to, and then looks once more: two that come to it at once see each other.
      if (decided.what == turn::serve && state_.claims) return serve(decided.epoch);
      claim(decided.what == turn::serve);
      if (decided.what != turn::follow) continue;
      auto ended = follow();
      if (!ended && ended.error().code != ec::remote_failed && ended.error().code != ec::timeout && ended.error().code != ec::locked) return fail(ended.error());
      if (!stop_) log_event(log_level::warn, "the other head is not followed any more", {{"reason", ended ? "" : ended.error().message}});
    }
    return std::optional<pair_state>{};
  }

private:
  void claim(bool so) {
    const std::lock_guard lock(mutex_);
    state_.claims = so;
  }

  expected<std::optional<pair_state>> serve(uint64_t epoch) {
    auto now = state_;
    now.epoch = epoch;
    now.whole = now.served = true;
    now.told = now.claims = false;
    if (auto kept = keep(now); !kept) return fail(kept.error());
    log_event(log_level::warn, "this head serves", {{"epoch", now.epoch}, {"reason", told_}});
    return std::optional<pair_state>(std::move(now));
  }

  void ask(pair_view& view) {
    if (!link_ || !link_->alive()) {
      auto dialled = link::dial(to_other(options_.peer, options_.tls, dial_seconds));
      link_ = dialled ? std::move(*dialled) : nullptr;
      if (!dialled) {
        view.refused = refused(dialled.error());
        if (dialled.error().message != trouble_) log_event(log_level::info, trouble_ = dialled.error().message);
      }
    }
    if (link_) {
      auto word = link_->ask_for<pair_state>("who", nullptr, word_seconds);
      if (word) {
        trouble_.clear();
        heard_ = clock::now();
        view.other = std::move(*word);
      } else {
        link_.reset();
      }
    }
    view.away_seconds = since(heard_);
    away_ = !view.other;
  }

  expected<void> keep(const pair_state& now) {
    const std::lock_guard lock(mutex_);
    state_ = now;
    return keep_pair_state(options_.state, now);
  }

  /// A copy beside the store, then each batch into it, until the other head is away.
  expected<void> follow() {
    const fs::path copy = options_.runs.string() + ".copy";
    std::error_code ignored;
    fs::remove_all(copy, ignored);
    auto made = open_runs(copy, run_store::mode::read_write);
    if (!made) return fail(made.error());
    std::optional<run_store> store(std::move(*made));
    std::string stream;
    bool whole = false;
    for (follow_ask ask{true, 0}; !stop_; ask.begin = false) {
      if (options_.alive) options_.alive();
      auto answer = link_->ask_for<follow_answer>("follow", ask, answer_seconds);
      if (!answer) {
        link_.reset();
        return fail(answer.error());
      }
      heard_ = clock::now();
      ask.taken += answer->bytes.size();
      stream += answer->bytes;
      auto entries = take_entries(stream);
      if (!entries) return fail(entries.error());
      std::vector<store_change> changes;
      bool ends = false;
      for (auto& entry : *entries) {
        ends = ends || entry.empty();
        std::move(entry.begin(), entry.end(), std::back_inserter(changes));
      }
      if (!changes.empty())
        if (auto applied = store->apply(changes); !applied) return applied;
      auto now = state_;
      now.epoch = answer->epoch;
      now.nodes = answer->nodes;
      if (ends && !whole) {
        store.reset();
        if (auto put = put_in_place(copy, now); !put) return put;
        auto again = open_runs(options_.runs, run_store::mode::read_write);
        if (!again) return fail(again.error());
        store.emplace(std::move(*again));
        whole = true;
        log_event(log_level::info, "this head has all that the other has, and follows it", {{"epoch", now.epoch}});
      } else if (whole && (now.epoch != state_.epoch || now.nodes != state_.nodes)) {
        if (auto kept = keep(now); !kept) return kept;
      }
    }
    return {};
  }

  /// What this head wrote itself is kept beside it; a copy of before is not.
  expected<void> put_in_place(const fs::path& copy, pair_state now) {
    auto meanwhile = state_;
    meanwhile.whole = false;
    if (auto kept = keep(meanwhile); !kept) return kept;
    std::error_code problem;
    if (fs::exists(options_.runs, problem)) {
      fs::path aside = options_.runs.string() + ".before-" + std::to_string(now.epoch);
      for (int i = 1; fs::exists(aside, problem); ++i) aside = options_.runs.string() + ".before-" + std::to_string(now.epoch) + "-" + std::to_string(i);
      if (meanwhile.served) {
        fs::rename(options_.runs, aside, problem);
        log_event(log_level::warn, "what this head recorded before it followed is put aside", {{"folder", aside.string()}});
      } else {
        fs::remove_all(options_.runs, problem);
      }
    }
    if (!problem) fs::rename(copy, options_.runs, problem);
    if (problem) return fail(ec::io_error, "cannot put " + copy.string() + " in the place of " + options_.runs.string() + ": " + problem.message());
    now.whole = true;
    now.served = false;
    return keep(now);
  }

  const standby_options& options_;
  const std::atomic<bool>& stop_;
  std::mutex mutex_;                      ///< of state_, which the door's thread reads
  pair_state state_;
  std::atomic<bool> away_ = true;         ///< the other head, when it was asked last
  std::unique_ptr<link> link_;
  clock::time_point heard_ = clock::now();
  std::string told_, trouble_;
};

} // namespace

expected<pair_state> state_of_home(const fs::path& file, const fs::path& runs) {
  auto state = read_pair_state(file);
  if (!state) return state;
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    state->whole = state->served = fs::exists(runs / "CURRENT", ignored);
    if (auto kept = keep_pair_state(file, *state); !kept) return fail(kept.error());
  }
  return state;
}

expected<uint64_t> epoch_without_pair(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return uint64_t{0};
  auto state = read_pair_state(file);
  if (!state) return fail(state.error());
  ++state->epoch;
  state->whole = state->served = true;
  if (auto kept = keep_pair_state(file, *state); !kept) return fail(kept.error());
  return state->epoch;
}

expected<void> serve_next_time(const fs::path& file, const fs::path& runs) {
  auto state = state_of_home(file, runs);
  if (!state) return fail(state.error());
  state->epoch += beyond;
  state->told = true;
  return keep_pair_state(file, *state);
}

expected<std::optional<pair_state>> stand_by(const standby_options& options, const std::atomic<bool>& stop) { return standing_by(options, stop).run(); }

expected<pair_state> ask_other_head(const address& peer, const std::optional<fs::path>& tls, double seconds) {
  auto to = link::dial(to_other(peer, tls, seconds));
  if (!to) return fail(to.error());
  return (*to)->ask_for<pair_state>("who", nullptr, seconds);
}

rival_watch::rival_watch(address peer, std::optional<fs::path> tls, std::function<pair_state()> own, std::function<bool()> wanted)
    : thread_([this, peer = std::move(peer), tls = std::move(tls), own = std::move(own), wanted = std::move(wanted)] {
        auto last = clock::now();
        for (; !stop_; std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
          if (since(last) < rival_seconds || !wanted()) continue;
          last = clock::now();
          const auto other = ask_other_head(peer, tls, dial_seconds);
          if (!other || !other->whole || !is_ahead(*other, own()) || !(other->serves || other->epoch > own().epoch)) continue;
          log_event(log_level::error, "the other head has the better right to serve", {{"other", peer.text()}, {"epoch", other->epoch}});
          must_ = true;
        }
      }) {}

rival_watch::~rival_watch() {
  stop_ = true;
  thread_.join();
}

} // namespace pragma
