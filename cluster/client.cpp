#include "cluster/client.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "cluster/link.hpp"

#include <chrono>
#include <mutex>
#include <random>
#include <thread>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;
constexpr double dial_seconds = 5, dial_one_of_two = 2;
constexpr double takeover_seconds = 15;                 ///< for one of several heads to serve
constexpr double news_seconds = 10;                     ///< then the head is as good as away
constexpr double answer_seconds = 30;                   ///< the first question may build the compendium's indexes
constexpr auto news_pause = std::chrono::milliseconds(200);
constexpr int most_changes = 20;                       ///< of a record while it is fetched

} // namespace

struct head_client::impl {
  link::options dialling;
  std::mutex mutex;                       ///< several runs may share a client
  std::shared_ptr<link> to;

  std::string heads() const { return text_of(dialling.heads); }
  std::shared_ptr<link> current() {
    const std::lock_guard lock(mutex);
    return to;
  }

  /// Unless there is a link already, other than one that was found silent.
  expected<void> dial(const std::shared_ptr<link>& silent = nullptr) {
    const std::lock_guard lock(mutex);
    if (to && to->alive() && to != silent) return {};
    const auto begun = clock::now();
    auto found = link::dial(dialling);
    // Busy, not gone: once more, at a moment of its own. Of two heads one may be about to serve.
    const auto may_pass = [&](int again) {
      const auto code = found.error().code;
      if (dialling.heads.size() > 1) return (code == ec::locked || code == ec::timeout || code == ec::remote_failed) && std::chrono::duration<double>(clock::now() - begun).count() < takeover_seconds;
      return code == ec::timeout && again < 2;
    };
    for (int again = 0; !found && may_pass(again); ++again) {
      std::this_thread::sleep_for(std::chrono::milliseconds(std::random_device()() % 1000));
      found = link::dial(dialling);
    }
    if (!found) return fail(found.error());
    to = std::move(*found);
    return {};
  }

  /// What may be asked twice is asked again where the link ends before the answer.
  template <class Result> expected<Result> ask(const std::string& kind, const json& body = nullptr) {
    for (bool again = kind == "start";; again = true) {
      if (const auto now = current(); !now->alive()) // an idle link is ended by the head: that is nobody's trouble
        if (auto dialled = dial(); !dialled) return fail(dialled.error());
      const auto asked = current();
      auto answer = asked->ask_for<Result>(kind, body, answer_seconds);
      if (answer || again || asked->alive()) return answer;
    }
  }

  expected<run_result> record(const std::string& run) {
    std::string text, hash;
    for (int changes = 0;;) {
      auto slice = ask<text_slice>("fetch", {{"run", run}, {"offset", text.size()}});
      if (!slice) return fail(slice.error());
      if (slice->offset != text.size() || (!hash.empty() && slice->sha256 != hash)) { // it changed meanwhile
        if (++changes > most_changes) return fail(ec::remote_failed, "the record of run " + printable(run) + " changes while it is fetched", "ask again when the run is over");
        text.clear();
        hash.clear();
        continue;
      }
      hash = slice->sha256;
      text += slice->bytes;
      if (text.size() >= slice->total || slice->bytes.empty()) break;
    }
    if (sha256_hex(text) != hash) return fail(ec::remote_failed, "the record of run " + printable(run) + " arrived damaged", "ask again");
    const auto parsed = json::from_cbor(text, true, false);
    if (parsed.is_discarded()) return fail(ec::parse_error, "the record of run " + printable(run) + " cannot be read");
    return from_json_value<run_result>(parsed, "run " + run);
  }

  expected<run_result> run(run_order order, const std::function<void(const run_event&)>& on_event, const std::atomic<bool>& stop, double patience) {
    auto begun = ask<std::string>("start", order);
    if (!begun) return fail(begun.error());
    return stay(*begun, on_event, stop, patience);
  }

  expected<run_result> stay(const std::string& id, const std::function<void(const run_event&)>& on_event, const std::atomic<bool>& stop, double patience) {
    uint64_t next = 0;
    bool halted = false;
    auto heard = clock::now();
    const auto note = [&](const std::string& text) {
      run_event event;
      event.what = "note";
      event.text = text;
      on_event(event);
    };
    for (bool away = false;;) {
      if (stop && !halted) {
        halted = true;
        current()->tell("halt", {{"run", id}});
      }
      const auto asked = current();
      auto news = away ? expected<run_news>(fail(ec::remote_failed, "")) : asked->ask_for<run_news>("news", {{"run", id}, {"from", next}}, news_seconds);
      if (!news) {
        if (!away && news.error().code != ec::remote_failed && news.error().code != ec::timeout) return fail(news.error()); // the head's own words
        if (!away) note("the head is away: the run is safe there; dialling until it is back");
        away = true;
        if (std::chrono::duration<double>(clock::now() - heard).count() > patience || stop)
          return fail(ec::remote_failed, "the head at " + heads() + " is away", "the run goes on when it is back: `pragma resume " + id + " --head " + heads() + "`");
        std::this_thread::sleep_for(std::chrono::milliseconds(500 + std::random_device()() % 1000));
        if (auto again = dial(asked); again) {
          away = false;
          next = 0; // a restarted head counts anew
          note("the head is back");
        }
        continue;
      }
      heard = clock::now();
      for (const auto& event : news->events) on_event(event);
      next = news->next;
      if (news->state == "failed") return fail(news->failure.what());
      if (news->state != "running" && news->state != "queued") return record(id);
      if (news->events.empty()) std::this_thread::sleep_for(news_pause);
    }
  }
};

head_client::head_client(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
head_client::~head_client() = default;

expected<std::unique_ptr<head_client>> head_client::connect(const std::vector<address>& heads, const std::optional<std::filesystem::path>& tls) {
  auto p = std::make_unique<impl>();
  p->dialling.heads = heads;
  p->dialling.tls = tls;
  p->dialling.want = "user";
  p->dialling.seconds = heads.size() > 1 ? dial_one_of_two : dial_seconds;
  p->dialling.memory = std::make_shared<witness>();
  std::unique_ptr<head_client> client(new head_client(std::move(p)));
  if (auto up = client->impl_->dial(); !up) return fail(up.error());
  return client;
}

expected<run_result> head_client::run(run_order order, const std::function<void(const run_event&)>& on_event, const std::atomic<bool>& stop,
                                      double patience_seconds) {
  return impl_->run(std::move(order), on_event, stop, patience_seconds);
}
expected<run_result> head_client::attach(const std::string& run, const std::function<void(const run_event&)>& on_event, const std::atomic<bool>& stop,
                                         double patience_seconds) {
  return impl_->stay(run, on_event, stop, patience_seconds);
}
expected<bool> head_client::cancel(const std::string& run) { return impl_->ask<bool>("cancel", {{"run", run}}); }
expected<run_result> head_client::record(const std::string& run) { return impl_->record(run); }
expected<std::vector<cluster_run>> head_client::runs() { return impl_->ask<std::vector<cluster_run>>("list"); }
expected<run_news> head_client::news(const std::string& run, uint64_t from) { return impl_->ask<run_news>("news", {{"run", run}, {"from", from}}); }
expected<cluster_status> head_client::status() {
  auto s = impl_->ask<cluster_status>("status");
  if (!s) return s;
  auto all = runs();
  if (!all) return fail(all.error());
  s->runs = std::move(*all);
  return s;
}
expected<void> head_client::release(const std::string& node) {
  auto done = impl_->ask<bool>("release", {{"node", node}});
  if (!done) return fail(done.error());
  return {};
}
expected<json> head_client::ask(const json& question) {
  auto answer = impl_->ask<std::string>("ask", question);
  if (!answer) return fail(answer.error());
  return parse_json(*answer, "the head's answer");
}

} // namespace pragma
