// A crawl that is killed, or runs out of disk, goes on later and ends with what an uninterrupted one gives.
#include "crawl_fixture.hpp"

#include "base/subprocess.hpp"

#include <cstdlib>
#include <filesystem>

using namespace pragma;
using namespace pragma::test;

namespace {

constexpr int page_count = 60;

std::string page_name(int i) { return "/docs/p" + std::to_string(i) + ".html"; }

/// A site whose pages name their successors, a redirect, a twin, one that is gone and one outside.
void fill(site_server& site) {
  site.set("/docs/", page_with("start", {"p1.html", "p2.html", "old.html", "index.html", "missing.html", "/elsewhere"}));
  site.set("/docs/index.html", page_with("start", {"p1.html", "p2.html", "old.html", "index.html", "missing.html", "/elsewhere"}));
  site.set("/docs/old.html", redirect("p5.html", 301));
  for (int i = 1; i <= page_count; ++i)
    site.set(page_name(i), page_with("page " + std::to_string(i), {"p" + std::to_string(2 * i) + ".html", "p" + std::to_string(2 * i + 1) + ".html"}));
}

/// What a crawl has come to, without times.
std::string content_of(const test_store& store) {
  std::string out;
  for (const auto& [url, r] : store.records)
    out += url + " " + json(r.state).dump() + " " + r.reason + " " + std::to_string(r.depth) + " " + r.content_hash + " " + std::to_string(r.segments) + "\n";
  for (const auto& [url, segments] : store.segments)
    for (const auto& s : segments) out += url + " " + s.id + "\n";
  return out;
}

} // namespace

// Not a test: the process that gets killed. Started by the test below with a store and an address in its environment.
TEST_CASE("crawl in a child", "[.child]") {
  const char* log = std::getenv("CRAWL_LOG");
  const char* root = std::getenv("CRAWL_ROOT");
  REQUIRE(log);
  REQUIRE(root);
  test_store store(log);
  doc_source source;
  source.profiler = "tool";
  source.docs = {root};
  source.allow_private = true;
  source.delay_seconds = 0;
  const auto parts = plain_parts();
  crawl_options options;
  options.connections = options.per_host = 1; // one after the other: a page that is held back holds all
  CHECK(crawl_with(source, store, options, parts));
}

TEST_CASE("killed at any moment, a crawl goes on and ends with the same pages and segments") {
  crawl_case whole;
  fill(whole.site);
  whole.must();
  const auto wanted = content_of(whole.store);

  auto folder = temp_dir::create("pragma-crawl-");
  REQUIRE(folder);
  const auto log = (folder->path() / "log").string();
  crawl_case c;
  fill(c.site);
  size_t kills = 0;
  for (const int stop_at : {1, 2, 7, 30, 55}) {
    // The server holds this page back, so that the child is in the middle of things when it dies.
    site_answer hang;
    hang.hang = true;
    c.site.script(page_name(stop_at), {hang});
    const auto before = c.site.hits(page_name(stop_at));
    process_spec spec;
    spec.argv = {"/proc/self/exe", "crawl in a child"};
    std::error_code ignored;
    spec.argv[0] = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
    spec.env = {{"CRAWL_LOG", log}, {"CRAWL_ROOT", c.source.docs[0]}};
    auto child = child_process::start(spec);
    REQUIRE(child);
    REQUIRE(c.site.wait_for_hits(page_name(stop_at), before + 1, 20));
    child->kill();
    ++kills;
  }
  CHECK(kills == 5);
  // A line that the kill, or a power cut, has cut short.
  {
    auto text = read_file(log, 1u << 30);
    REQUIRE(text);
    REQUIRE(write_file_atomic(log, text->substr(0, text->size() - 20)));
  }
  test_store store(log);
  CHECK(store.state.at("complete") == false);
  size_t done = 0;
  for (const auto& [url, r] : store.records) done += r.state == page_state::fetched;
  CHECK(done > 10);
  CHECK(done < page_count);
  auto result = crawl_with(c.source, store, c.options, c.parts);
  REQUIRE(result);
  INFO(*result);
  CHECK(result->resumed);
  CHECK(result->complete);
  CHECK(result->generation == 1);
  // The two sites differ in their port only.
  auto got = content_of(store);
  const auto mine = c.site.url(""), theirs = whole.site.url("");
  for (size_t at = 0; (at = got.find(mine, at)) != std::string::npos; at += theirs.size()) got.replace(at, mine.size(), theirs);
  CHECK(got == wanted);
}

TEST_CASE("a store that fails after any number of commits ends the crawl with what it has, and the next goes on") {
  crawl_case whole;
  fill(whole.site);
  whole.must();
  const auto wanted = content_of(whole.store);
  const auto commits = whole.store.commits;
  REQUIRE(commits > page_count);
  for (int64_t stop = 0; stop < commits; stop += 7) {
    test_store store;
    store.commits_left = static_cast<int>(stop);
    auto failed = crawl_with(whole.source, store, whole.options, whole.parts);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().code == ec::io_error);
    CHECK(has(failed.error().message, "No space left on device"));
    CHECK(store.commits == stop);
    store.commits_left = -1;
    auto result = crawl_with(whole.source, store, whole.options, whole.parts);
    REQUIRE(result);
    CHECK(result->complete);
    CHECK(result->resumed);
    CHECK(content_of(store) == wanted);
  }
}

TEST_CASE("a later crawl that is interrupted keeps the old segments of pages that it has not come to") {
  crawl_case c;
  fill(c.site);
  c.must();
  const auto segments = c.must().segments;
  std::atomic<bool> cancel{false};
  c.options.cancel = &cancel;
  int64_t seen = 0;
  c.options.on_progress = [&](const crawl_progress&) { cancel = ++seen >= 5; };
  auto result = c.must();
  CHECK_FALSE(result.complete);
  CHECK(result.generation == 3);
  CHECK(result.segments == segments);
  cancel = false;
  c.options.on_progress = nullptr;
  result = c.must();
  CHECK(result.resumed);
  CHECK(result.generation == 3);
  CHECK(result.complete);
  CHECK(result.fetched == 0);
  CHECK(result.segments == segments);
  CHECK(result.gone == page_count + 2); // missing.html, and what the last pages name
}

TEST_CASE("a damaged crawl state and records of another version are errors, not crashes") {
  crawl_case c;
  c.site.set("/docs/", page_with("start"));
  c.store.state = {{"generation", "three"}, {"complete", false}};
  auto result = c.go();
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ec::parse_error);
  c.store.state = nullptr;
  page_record odd;
  odd.url = "no address";
  odd.generation = 1;
  odd.links = "zzzz";
  c.store.records[odd.url] = odd;
  const auto done = c.must();
  CHECK(done.complete);
  CHECK(c.store.records["no address"].state == page_state::failed);
  CHECK(c.state("/docs/") == page_state::fetched);
}

TEST_CASE("nonsense in a source is an error that names it") {
  crawl_case c;
  const auto message = [&] {
    auto result = c.go();
    return result ? std::string() : result.error().message;
  };
  c.source.docs = {};
  CHECK(has(message(), "no documentation root"));
  c.source.docs = {"gopher://x/"};
  CHECK(has(message(), "gopher"));
  c.source.docs = {c.site.url()};
  c.source.max_pages = 0;
  CHECK(has(message(), "limit"));
  c.source.max_pages = 1;
  c.source.delay_seconds = -1;
  CHECK(has(message(), "limit"));
  CHECK(c.store.records.empty());
}
