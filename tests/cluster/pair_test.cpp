// Which of two heads serves, and what of its writing may be told: decisions and streams, without sockets and without a clock.
#include "actors/store.hpp"
#include "cluster/pair.hpp"
#include "cluster/replica.hpp"
#include "cluster/standby.hpp"

#include "base/files.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <mutex>
#include <random>
#include <set>
#include <thread>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

pair_state head(uint64_t epoch, bool served, const std::string& name = "a") {
  pair_state s;
  s.name = name;
  s.epoch = epoch;
  s.served = served;
  return s;
}

/// A second store, filled from a replica as a standby does it.
struct follower {
  run_store store;
  std::string stream;
  uint64_t taken = 0;
  int whole = 0;
  struct letters {
    std::mutex mutex;
    std::vector<json> all;
  };
  std::shared_ptr<letters> came = std::make_shared<letters>();

  void ask(replica& from, bool begin = false) {
    from.follow(7, {begin, taken}, [to = came](const expected<json>& answer) {
      const std::lock_guard lock(to->mutex);
      if (answer) to->all.push_back(*answer);
    });
  }
  bool has_news() const {
    const std::lock_guard lock(came->mutex);
    return !came->all.empty();
  }
  /// Takes what came; false: nothing did.
  bool take() {
    std::vector<json> answers;
    {
      const std::lock_guard lock(came->mutex);
      answers.swap(came->all);
    }
    if (answers.empty()) return false;
    for (const auto& answer : answers) {
      const auto a = from_json_value<follow_answer>(answer, "an answer");
      REQUIRE(a);
      taken += a->bytes.size();
      stream += a->bytes;
    }
    auto entries = take_entries(stream);
    REQUIRE(entries);
    for (const auto& entry : *entries) {
      whole += entry.empty();
      if (!entry.empty()) REQUIRE(store.apply(entry));
    }
    return true;
  }
};

struct pair_of_stores {
  temp_dir dir = std::move(*temp_dir::create("pragma-pair-"));
  std::atomic<double> now = 0;
  std::shared_ptr<run_store> store = std::make_shared<run_store>(std::move(*open_runs(dir.path() / "runs", run_store::mode::read_write)));
  std::shared_ptr<replica> first;
  std::optional<follower> second;

  void begin(uint64_t nodes = 0) {
    auto state = head(4, true);
    state.nodes = nodes;
    first = std::make_shared<replica>(state, dir.path() / "pair.json", store, [this] { return now.load(); });
    store->follow(first);
    second.emplace(follower{std::move(*open_runs(dir.path() / "copy", run_store::mode::read_write)), "", 0, 0});
  }
  ~pair_of_stores() { store->follow(nullptr); }
  void catch_up() {
    second->ask(*first, true);
    for (int i = 0; i < 1000 && second->whole == 0; ++i) {
      REQUIRE(second->take());
      second->ask(*first);
    }
    REQUIRE(second->whole == 1);
    second->take();
  }
  std::future<bool> write(const std::string& run) {
    return std::async(std::launch::async, [this, run] { return store->put_run(run, {{"started", run}}).has_value(); });
  }
  static bool done(std::future<bool>& f, int milliseconds) { return f.wait_for(std::chrono::milliseconds(milliseconds)) == std::future_status::ready; }
};

} // namespace

TEST_CASE("a head follows one that serves, unless its own records are newer") {
  pair_view seen;
  seen.other = head(3, true, "b");
  seen.other->serves = true;
  CHECK(decide(head(3, false), seen).what == turn::follow);
  CHECK(decide(head(2, true), seen).what == turn::follow);
  CHECK(decide(head(4, true), seen).what == turn::wait); // the other finds out, and stands down
  auto broken = head(4, true);
  broken.whole = false;
  CHECK(decide(broken, seen).what == turn::follow);
}

TEST_CASE("two heads of which none serves: exactly one begins, the one that is ahead") {
  for (const auto& [a, b] : {std::pair{head(3, true, "a"), head(3, false, "b")}, {head(4, false, "a"), head(3, true, "b")}, {head(3, true, "b"), head(3, true, "a")}, {head(0, false, "b"), head(0, false, "a")}}) {
    pair_view of_a, of_b;
    of_a.other = b;
    of_b.other = a;
    CHECK(decide(a, of_a).what == turn::serve);
    CHECK(decide(a, of_a).epoch == a.epoch + 1); // what it writes the other does not have yet: who has heard of it lets no other begin
    CHECK(decide(b, of_b).what == turn::wait);
  }
  // A new head beside one with runs; two new ones.
  auto empty = head(0, false, "z"), other_empty = head(0, false, "y");
  empty.whole = other_empty.whole = false;
  pair_view seen;
  seen.other = head(0, true, "a");
  CHECK(decide(empty, seen).what == turn::wait);
  seen.other = other_empty;
  CHECK(decide(empty, seen).what == turn::serve);
  seen.other.reset();
  seen.away_seconds = 100;
  seen.anybody = true;
  CHECK(decide(empty, seen).what == turn::wait); // never alone with nothing
  empty.told = true;
  CHECK(decide(empty, seen).what == turn::serve);
}

TEST_CASE("a head takes over when the other is gone and half of the nodes miss it, never when it is behind") {
  auto own = head(3, false);
  own.nodes = 3;
  pair_view seen;
  seen.refused = true;
  seen.away_seconds = gone_seconds;
  seen.anybody = true;
  seen.nodes = 1;
  CHECK(decide(own, seen).what == turn::wait); // a cable between the heads, perhaps
  seen.nodes = 2;
  CHECK(decide(own, seen).what == turn::serve);
  CHECK(decide(own, seen).epoch == 4);
  seen.vouched_epoch = 4; // the other may have gone on without this one
  CHECK(decide(own, seen).what == turn::wait);
  seen.vouched_epoch = 3;
  own.served = true; // then the other is satisfied with half of the nodes, and this one is not
  CHECK(decide(own, seen).what == turn::serve);
  own.nodes = 4;
  CHECK(decide(own, seen).what == turn::wait);
  own.nodes = 3;
  own.served = false;
  seen.refused = false;
  CHECK(decide(own, seen).what == turn::wait);
  seen.away_seconds = silent_seconds;
  CHECK(decide(own, seen).what == turn::serve);
  seen.newest_epoch = 4; // the other went on without this one
  CHECK(decide(own, seen).what == turn::wait);
  seen.newest_epoch = 3;
  own.whole = false;
  CHECK(decide(own, seen).what == turn::wait);
  own.whole = true;
  own.nodes = 0; // no nodes: anybody will do
  seen.nodes = 0;
  CHECK(decide(own, seen).what == turn::serve);
  seen.anybody = false;
  CHECK(decide(own, seen).what == turn::wait);
}

TEST_CASE("a serving head whose nodes did not vouch, and the other: they find each other, and one begins in an epoch beyond") {
  auto server = head(3, true, "a"), standby = head(3, false, "b");
  server.nodes = standby.nodes = 4;
  server.proposed = 4;
  pair_view of_server, of_standby;
  of_server.other = standby;
  of_standby.other = server;
  of_server.vouched_epoch = of_standby.vouched_epoch = 4; // of two nodes, which was not enough
  CHECK(decide(server, of_server).what == turn::serve);
  CHECK(decide(server, of_server).epoch == 5);
  CHECK(decide(standby, of_standby).what == turn::wait);
  of_server.other.reset(); // alone, it knows that it asked for that epoch itself
  of_server.refused = true;
  of_server.away_seconds = 10;
  of_server.nodes = 3;
  CHECK(decide(server, of_server).what == turn::serve);
  CHECK(decide(server, of_server).epoch == 5);
  of_standby.other->claims = true;
  standby.served = true; // whoever is ahead: the other said it first
  CHECK(decide(standby, of_standby).what == turn::wait);
}

TEST_CASE("a node gives its word to one of two heads") {
  witness node;
  node.served(3);
  CHECK(node.misses("b"));
  node.counted("b", 4);
  CHECK_FALSE(node.vouch("a", 4)); // b may have begun, and not have been able to say so
  CHECK_FALSE(node.misses("a"));
  CHECK(node.misses("b"));
  node.counted("a", 0);            // nobody asked that one
  CHECK_FALSE(node.vouch("a", 4));
  node.counted("b", 0);            // b hears the other head
  CHECK(node.vouch("a", 4));
  CHECK(node.vouched() == 4);
  CHECK(node.vouch("a", 4));       // its answer was lost, perhaps
  CHECK_FALSE(node.vouch("b", 4));
  CHECK_FALSE(node.vouch("a", 3));
  CHECK(node.epoch() == 3);        // asked is not served
  CHECK(node.misses("b"));         // and no answer came
  CHECK_FALSE(node.vouch("a", 5));
  node.served(4);                  // one of them did begin: what was promised for that epoch is over
  CHECK(node.vouch("a", 5));
  node.served(6);
  CHECK_FALSE(node.vouch("a", 6));
}

TEST_CASE("however nodes come and go between two heads that lost each other, at most one goes on") {
  int took_over = 0, alone = 0;
  std::mt19937 random(7);
  for (int trial = 0; trial < 4000; ++trial) {
    const uint64_t known = 1 + random() % 7;
    auto server = head(3, true, "a"), standby = head(3, false, "b");
    server.nodes = standby.nodes = known;
    std::vector<witness> nodes(known);
    std::vector<double> came(known, -100);
    std::set<size_t> vouched;
    uint64_t vouched_epoch = 0;
    bool server_goes_on = false, standby_serves = false;
    for (double now = 0; now < 30; now += 0.5) { // where each node is at a time is chance, as long as frozen heads and cut cables are
      for (size_t n = 0; n < known; ++n) {
        if (random() % 3 == 0) {
          vouched_epoch = std::max(vouched_epoch, nodes[n].vouched());
          if (nodes[n].misses("b")) came[n] = now;
        } else if (random() % 3 == 0 && nodes[n].vouch("a", 4)) {
          vouched.insert(n);
        }
      }
      pair_view seen;
      seen.away_seconds = now;
      seen.vouched_epoch = vouched_epoch;
      seen.nodes = static_cast<size_t>(std::count_if(came.begin(), came.end(), [&](double t) { return now - t < witness_seconds; }));
      standby_serves = standby_serves || decide(standby, seen).what == turn::serve;
      server_goes_on = server_goes_on || may_go_on_alone(server, vouched.size());
    }
    CHECK_FALSE((standby_serves && server_goes_on));
    took_over += standby_serves;
    alone += server_goes_on;
  }
  CHECK(took_over > 100); // and both do happen
  CHECK(alone > 100);
}

TEST_CASE_METHOD(pair_of_stores, "a copy is the same as the store, with what was written while it was made") {
  for (int i = 0; i < 300; ++i) REQUIRE(store->put_iteration("run" + std::to_string(i % 7), 1 + i, {{"text", std::string(8000, 'x')}}, {{"started", std::to_string(i)}}));
  REQUIRE(store->put_task("task", "text\xff"));
  begin();
  second->ask(*first, true);
  REQUIRE(second->take());
  CHECK(second->whole == 0); // 2.4 MB: several slices
  CHECK(first->standby() == "copying");
  REQUIRE(store->put_run("between", {{"started", "now"}})); // does not wait: nobody could take over with it
  REQUIRE(store->remove_run("run3"));
  for (int i = 0; i < 1000 && second->whole == 0; ++i) {
    second->ask(*first);
    REQUIRE(second->take());
  }
  CHECK(first->standby() == "copying"); // it has not said that it has it
  second->ask(*first);
  CHECK(first->standby() == "in step");
  CHECK(json(*second->store.list_runs()) == json(*store->list_runs()));
  const auto all = *store->list_runs();
  CHECK(all.size() == 7);
  for (const auto& [id, header] : all) CHECK(*second->store.iterations(id) == *store->iterations(id));
  CHECK_FALSE(second->store.get_run("run3"));
  CHECK(second->store.get_run("between"));
  CHECK(second->store.get_task("task")->has_value());
}

TEST_CASE_METHOD(pair_of_stores, "a write returns when the standby has it") {
  begin();
  catch_up();
  auto written = write("one");
  CHECK_FALSE(done(written, 50));
  while (!second->take()) std::this_thread::yield();
  CHECK(second->store.get_run("one"));
  CHECK_FALSE(done(written, 50)); // it has not said so
  second->ask(*first);
  CHECK(written.get());
  CHECK(first->look().stand_down.empty());
}

TEST_CASE_METHOD(pair_of_stores, "a standby that is lost: a new epoch first, then the write returns; cut off from the nodes as well, it never does") {
  begin(4);
  catch_up();
  CHECK(first->look().new_epoch == false);
  auto written = write("one");
  while (!second->has_news()) std::this_thread::yield();
  SECTION("its connection ended") {
    CHECK_FALSE(done(written, 20));
    first->gone(7);
    CHECK_FALSE(first->look().new_epoch); // a moment, for one that comes back
    CHECK_FALSE(done(written, 20));
    now = now + 1;
    const auto asked = first->look();
    CHECK(asked.ask_nodes == 5);
    CHECK_FALSE(asked.new_epoch); // that they are connected says nothing: a head that was frozen finds them so, and they have left
    for (const char* node : {"n1", "n2", "n2"}) first->vouched(node, 5);
    first->vouched("n3", 4); // for another epoch
    CHECK_FALSE(first->look().new_epoch);
    first->vouched("n3", 5);
    CHECK(first->look().new_epoch);
    CHECK(written.get());
    CHECK(first->standby() == "none");
    CHECK(first->state().epoch == 5);
    CHECK(read_pair_state(dir.path() / "pair.json")->epoch == 5);
    CHECK(store->put_run("two", {{"started", "later"}})); // waits for nobody
  }
  SECTION("silent, and half of the nodes with it") {
    now = now + fence_seconds / 2 + 1;
    CHECK(first->look().stand_down.empty());
    CHECK(first->standby() == "none");
    now = now + fence_seconds;
    CHECK(first->look().ask_nodes == 5);
    first->vouched("n1", 5);
    first->vouched("n2", 5);
    CHECK(first->look().stand_down.empty());
    CHECK(first->look().ask_nodes == 0);
    now = now + 1;
    CHECK(first->look().ask_nodes == 5); // once more: a promise to the other may be over
    now = now + vouch_seconds;
    const auto looked = first->look();
    CHECK_FALSE(looked.stand_down.empty());
    CHECK_FALSE(looked.new_epoch);
    CHECK(first->state().epoch == 4);
    CHECK_FALSE(done(written, 50)); // nobody is told of it
    first->vouched("n3", 5);        // for this test's end: a third node is back
    CHECK(first->look().new_epoch);
    CHECK(written.get());
  }
}

TEST_CASE_METHOD(pair_of_stores, "a standby that comes back while nodes are asked: what waited for it waits until it has the new copy") {
  begin(4);
  catch_up();
  auto written = write("one");
  while (!second->has_news()) std::this_thread::yield();
  first->gone(7);
  now = now + 1;
  CHECK(first->look().ask_nodes == 5);
  second.emplace(follower{std::move(*open_runs(dir.path() / "copy2", run_store::mode::read_write)), "", 0, 0});
  second->ask(*first, true);
  CHECK(first->look().new_epoch); // nodes may have vouched for it, and would let nobody begin in an older one
  CHECK(first->state().epoch == 5);
  while (second->whole == 0) {
    REQUIRE(second->take());
    CHECK_FALSE(done(written, 20));
    if (second->whole == 0) second->ask(*first);
  }
  CHECK(second->store.get_run("one"));
  CHECK_FALSE(done(written, 20));
  second->ask(*first);
  CHECK(written.get());
}

TEST_CASE_METHOD(pair_of_stores, "a head that was frozen does not believe that it never had nodes") {
  begin();
  catch_up();
  first->nodes(2); // the other head is told at once
  while (!second->take()) std::this_thread::yield();
  second->ask(*first);
  CHECK(first->state().nodes == 2);
  first->nodes(0);
  now = now + 60; // frozen, and thawed: nodes have left it, which is seen before the standby's end
  CHECK_FALSE(first->look().new_epoch);
  CHECK_FALSE(first->look().new_epoch);
  first->gone(7);
  now = now + 1;
  const auto looked = first->look();
  CHECK(looked.ask_nodes == 5);
  CHECK_FALSE(looked.new_epoch);
  now = now + vouch_seconds + 1;
  CHECK_FALSE(first->look().stand_down.empty());
}

TEST_CASE_METHOD(pair_of_stores, "what a follower may ask, and what of a stream is believed") {
  begin();
  int refused = 0;
  const auto count = [&](const expected<json>& answer) { refused += !answer; };
  first->follow(7, {false, 0}, count); // it never began
  CHECK(refused == 1);
  catch_up();
  first->follow(8, {false, 0}, count); // another connection
  first->follow(7, {false, 1u << 30}, count);
  CHECK(refused == 3);
  std::string huge("\xff\xff\xff\xff", 4), broken = std::string("\x02\0\0\0", 4) + "\xff\xff", part = stream_entry({{"put", "runs", "a", "b"}}).substr(0, 9);
  CHECK_FALSE(take_entries(huge));
  CHECK_FALSE(take_entries(broken));
  CHECK(take_entries(part)->empty());
  CHECK(part.size() == 9);
  CHECK_FALSE(second->store.apply({{"put", "default", "schema", "9"}}));
  CHECK_FALSE(second->store.apply({{"put", "no such family", "a", "b"}}));
  CHECK_FALSE(second->store.apply({{"drop", "runs", "a", "b"}}));
}

TEST_CASE("what a home says of its head") {
  auto dir = std::move(*temp_dir::create("pragma-home-"));
  const auto file = dir.path() / "pair.json", runs = dir.path() / "runs";
  CHECK(*epoch_without_pair(file) == 0);
  CHECK_FALSE(fs::exists(file));
  const auto fresh = state_of_home(file, runs);
  REQUIRE(fresh);
  CHECK_FALSE(fresh->whole); // never to serve with nothing, where the other may have runs
  CHECK(fresh->name.size() == 16);
  CHECK(state_of_home(file, runs)->name == fresh->name);
  auto serving = *fresh;
  serving.serves = true; // as a head that was killed while it served left it
  REQUIRE(keep_pair_state(file, serving));
  CHECK_FALSE(state_of_home(file, runs)->serves);
  CHECK(*epoch_without_pair(file) == 1); // alone: the other does not get what it writes
  CHECK(state_of_home(file, runs)->served);
  REQUIRE(serve_next_time(file, runs));
  CHECK(state_of_home(file, runs)->told);
  CHECK(state_of_home(file, runs)->epoch > 900);
  fs::remove(file);
  REQUIRE(open_runs(runs, run_store::mode::read_write));
  CHECK(state_of_home(file, runs)->served); // runs that are there are not to be lost to an empty standby
  REQUIRE(write_file_atomic(file, "{\"epoch\": -"));
  CHECK_FALSE(state_of_home(file, runs));
  CHECK_FALSE(epoch_without_pair(file));
}
