#include "cluster/client.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "cluster/network.hpp"

#include <chrono>
#include <thread>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;
constexpr double dial_seconds = 5;
constexpr auto answer_time = std::chrono::seconds(30); ///< the first question may build the compendium's indexes
constexpr auto news_pause = std::chrono::milliseconds(200);
constexpr int most_changes = 20;                       ///< of a record while it is fetched

} // namespace

struct head_client::impl {
  address head;
  std::unique_ptr<network> net;
  cluster_actor cluster;
  desk_actor desk;

  expected<void> dial() {
    auto found = net->dial(head, dial_seconds);
    if (!found) return fail(found.error());
    auto its_desk = ask<desk_actor>(*found, desk_atom::value);
    if (!its_desk) return fail(its_desk.error());
    cluster = std::move(*found);
    desk = std::move(*its_desk);
    return {};
  }

  template <class Result, class Agent, class... Words> expected<Result> ask(const Agent& whom, const Words&... words) {
    caf::scoped_actor self{net->system()};
    expected<Result> result = fail(ec::internal, "no answer");
    self->request(whom, answer_time, words...)
        .receive([&](Result& r) { result = std::move(r); },
                 [&](const caf::error& e) {
                   if (e == caf::sec::request_timeout || e == caf::sec::request_receiver_down) result = fail(ec::remote_failed, "the head at " + head.text() + " does not answer");
                   else result = fail(from_caf(net->system(), e));
                 });
    return result;
  }

  expected<run_result> record(const std::string& run) {
    std::string text, hash;
    for (int changes = 0;;) {
      auto slice = ask<text_slice>(desk, fetch_atom::value, run, static_cast<uint64_t>(text.size()));
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
    auto begun = ask<std::string>(desk, start_atom::value, order);
    if (!begun) return fail(begun.error());
    const auto id = *begun;
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
        caf::anon_send(desk, halt_atom::value, id);
      }
      auto news = away ? expected<run_news>(fail(ec::remote_failed, "")) : ask<run_news>(desk, news_atom::value, id, next);
      if (!news) {
        if (!away) note("the head is away: the run is safe there; dialling until it is back");
        away = true;
        if (std::chrono::duration<double>(clock::now() - heard).count() > patience || stop)
          return fail(ec::remote_failed, "the head at " + head.text() + " is away", "the run goes on when it is back: `pragma resume " + id + " --head " + head.text() + "`");
        std::this_thread::sleep_for(std::chrono::seconds(1));
        if (auto again = dial(); again) {
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
      if (news->state != "running") return record(id);
      if (news->events.empty()) std::this_thread::sleep_for(news_pause);
    }
  }
};

head_client::head_client(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
head_client::~head_client() = default;

expected<std::unique_ptr<head_client>> head_client::connect(const address& head, const std::optional<std::filesystem::path>& tls) {
  auto net = network::start({tls, 1});
  if (!net) return fail(net.error());
  auto p = std::make_unique<impl>();
  p->head = head;
  p->net = std::move(*net);
  std::unique_ptr<head_client> client(new head_client(std::move(p)));
  if (auto up = client->impl_->dial(); !up) return fail(up.error());
  return client;
}

expected<run_result> head_client::run(run_order order, const std::function<void(const run_event&)>& on_event, const std::atomic<bool>& stop,
                                      double patience_seconds) {
  return impl_->run(std::move(order), on_event, stop, patience_seconds);
}
expected<run_result> head_client::record(const std::string& run) { return impl_->record(run); }
expected<std::vector<cluster_run>> head_client::runs() { return impl_->ask<std::vector<cluster_run>>(impl_->desk, list_atom::value); }
expected<cluster_status> head_client::status() {
  auto s = impl_->ask<cluster_status>(impl_->cluster, status_atom::value);
  if (!s) return s;
  auto all = runs();
  if (!all) return fail(all.error());
  s->runs = std::move(*all);
  return s;
}
expected<void> head_client::release(const std::string& node) {
  auto done = impl_->ask<bool>(impl_->cluster, release_atom::value, node);
  if (!done) return fail(done.error());
  return {};
}
expected<json> head_client::ask(const json& question) {
  auto answer = impl_->ask<std::string>(impl_->desk, ask_atom::value, question.dump());
  if (!answer) return fail(answer.error());
  return parse_json(*answer, "the head's answer");
}

} // namespace pragma
