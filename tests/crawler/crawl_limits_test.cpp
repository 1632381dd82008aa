// How much a crawl takes: pace, connections, limits and scope; a plan, a crawl without the web, progress and cancel.
#include "crawl_fixture.hpp"

using namespace pragma;
using namespace pragma::test;

TEST_CASE("a host is asked no faster and by no more connections than agreed") {
  crawl_case c;
  std::vector<std::string> links;
  for (int i = 0; i < 6; ++i) links.push_back("p" + std::to_string(i) + ".html");
  c.site.set("/docs/", page_with("start", links));
  c.site.otherwise([](const site_request& r) -> std::optional<site_answer> {
    return r.target.starts_with("/docs/") ? std::optional(page_with(r.target)) : std::nullopt;
  });
  c.source.delay_seconds = 0.1;
  c.must();
  auto requests = c.site.requests();
  REQUIRE(requests.size() == 9); // robots.txt, sitemap.xml, 7 pages
  CHECK(std::chrono::duration<double>(requests.back().at - requests.front().at).count() >= 0.75);

  crawl_case slow;
  slow.site.set("/robots.txt", html("User-agent: pragma\nCrawl-delay: 0.3\n"));
  slow.site.set("/docs/", page_with("start", {"a.html"}));
  slow.site.set("/docs/a.html", page_with("a"));
  slow.must();
  requests = slow.site.requests();
  REQUIRE(requests.size() == 4);
  CHECK(std::chrono::duration<double>(requests[3].at - requests[1].at).count() >= 0.55);
}

TEST_CASE("no more requests at once than per_host") {
  crawl_case c;
  c.options.per_host = 3;
  std::vector<std::string> links;
  for (int i = 0; i < 40; ++i) links.push_back("p" + std::to_string(i) + ".html");
  c.site.set("/docs/", page_with("start", links));
  c.site.otherwise([](const site_request& r) -> std::optional<site_answer> {
    return r.target.starts_with("/docs/") ? std::optional(page_with(r.target)) : std::nullopt;
  });
  CHECK(c.must().fetched == 41);
  CHECK(c.site.most_at_once() <= 3);
}

TEST_CASE("each limit ends the crawl with its reason, and a raised one lets it go on") {
  crawl_case c;
  std::vector<std::string> links;
  for (int i = 0; i < 20; ++i) links.push_back("p" + std::to_string(i) + ".html");
  c.site.set("/docs/", page_with("start", links));
  c.site.otherwise([](const site_request& r) -> std::optional<site_answer> {
    return r.target.starts_with("/docs/") ? std::optional(page_with(r.target + std::string(1000, 'x'))) : std::nullopt;
  });
  c.source.max_pages = 5;
  auto result = c.must();
  CHECK_FALSE(result.complete);
  CHECK(result.fetched == 5);
  CHECK(result.reason == "the limit of 5 pages (max_pages) was reached; 16 pages are left");
  int told = 0;
  for (const auto& [url, record] : c.store.records)
    if (record.state == page_state::queued) {
      ++told;
      CHECK(has(record.reason, "not asked: the limit of 5 pages"));
    }
  CHECK(told == 16);

  c.source.max_pages = 12;
  result = c.must();
  CHECK(result.resumed);
  CHECK(result.generation == 1);
  CHECK(result.fetched == 12);
  // With the limit as it is, the next crawl begins anew: what was read may have changed.
  result = c.must();
  CHECK_FALSE(result.resumed);
  CHECK(result.generation == 2);

  crawl_case bytes;
  bytes.site.set("/docs/", page_with("start", links));
  bytes.site.otherwise([](const site_request& r) -> std::optional<site_answer> { return page_with(r.target + std::string(10'000, 'x')); });
  bytes.source.robots = false;
  bytes.source.max_bytes = 40'000;
  result = bytes.must();
  CHECK_FALSE(result.complete);
  CHECK(has(result.reason, "max_bytes"));
  CHECK(result.bytes < 80'000);

  crawl_case time;
  site_answer hang;
  hang.hang = true;
  time.site.set("/docs/", page_with("start", {"never.html"}));
  time.site.set("/docs/never.html", hang);
  time.source.max_seconds = 0.5;
  result = time.must();
  CHECK_FALSE(result.complete);
  CHECK(has(result.reason, "max_seconds"));
  CHECK(result.seconds < 5);
  CHECK(time.state("/docs/") == page_state::fetched);
}

TEST_CASE("a change of scope reads everything again and drops what is out of it") {
  crawl_case c;
  auto start = page_with("start", {"a.html", "b/x.html", "../more/y.html"});
  start.etag = "\"1\"";
  c.site.set("/docs/", start);
  c.site.set("/docs/a.html", page_with("a"));
  c.site.set("/docs/b/x.html", page_with("x"));
  c.site.set("/more/y.html", page_with("y"));
  CHECK(c.must().fetched == 3);
  c.source.deny = {"/docs/b/*"};
  c.must();
  CHECK(c.state("/docs/b/x.html") == page_state::excluded);
  CHECK(has(c.reason("/docs/b/x.html"), "denied by the pattern"));
  CHECK(c.segments("/docs/b/x.html") == 0);
  c.source.allow = {"/docs/", "/more/"}; // the links that an unchanged page never repeated
  c.must();
  CHECK(c.state("/more/y.html") == page_state::fetched);
}

TEST_CASE("a plan asks for robots.txt and sitemaps only and stores nothing") {
  crawl_case c;
  c.site.set("/robots.txt", html("User-agent: *\nDisallow: /docs/no\n"));
  c.site.set("/sitemap.xml", html("<urlset><url><loc>" + c.site.url("/docs/yes.html") + "</loc></url><url><loc>" + c.site.url("/docs/no.html") +
                                  "</loc></url><url><loc>" + c.site.url("/x.html") + "</loc></url></urlset>"));
  c.site.set("/docs/", page_with("start", {"linked.html"}));
  c.site.set("/docs/linked.html", page_with("linked"));
  c.site.set("/docs/yes.html", page_with("yes"));
  auto plan = plan_with(c.source, c.store, c.options, c.parts);
  REQUIRE(plan);
  CHECK(c.site.hits() == 2);
  CHECK(c.store.records.empty());
  CHECK(c.store.state.is_null());
  const auto state_of = [&](const std::string& path) {
    for (const auto& p : plan->pages)
      if (p.url == c.site.url(path)) return json(p.state).get<std::string>();
    return std::string("absent");
  };
  CHECK(state_of("/docs/") == "queued");
  CHECK(state_of("/docs/yes.html") == "queued");
  CHECK(state_of("/docs/no.html") == "excluded");
  CHECK(state_of("/x.html") == "excluded");
  CHECK(state_of("/docs/linked.html") == "absent");
  REQUIRE_FALSE(plan->rules.empty());
  CHECK(plan->rules[0] == "only below " + c.site.url("/docs/"));
  c.must();
  plan = plan_with(c.source, c.store, c.options, c.parts);
  REQUIRE(plan);
  CHECK(state_of("/docs/linked.html") == "queued"); // known by now
  CHECK(c.state("/docs/linked.html") == page_state::fetched);
}

TEST_CASE("offline, roots on the web fail with that reason and nothing is lost") {
  crawl_case c;
  c.site.set("/docs/", page_with("start", {"a.html"}));
  c.site.set("/docs/a.html", page_with("a"));
  c.must();
  c.site.forget();
  c.options.offline = true;
  const auto result = c.must();
  CHECK(c.site.hits() == 0);
  CHECK(c.state("/docs/") == page_state::failed);
  CHECK(has(c.reason("/docs/"), "offline"));
  CHECK(has(result.reason, "offline"));
  CHECK(c.segments("/docs/") == 1);
  CHECK(c.segments("/docs/a.html") == 1);
}

TEST_CASE("progress is told page by page, and cancel ends the crawl soon") {
  crawl_case c;
  std::vector<std::string> links;
  for (int i = 0; i < 30; ++i) links.push_back("p" + std::to_string(i) + ".html");
  c.site.set("/docs/", page_with("start", links));
  c.site.otherwise([](const site_request& r) -> std::optional<site_answer> {
    return r.target.starts_with("/docs/") ? std::optional(page_with(r.target)) : std::nullopt;
  });
  std::atomic<bool> cancel{false};
  int64_t seen = 0;
  c.options.cancel = &cancel;
  c.options.on_progress = [&](const crawl_progress& p) {
    CHECK(p.done == ++seen);
    if (seen == 10) cancel = true;
  };
  auto result = c.must();
  CHECK_FALSE(result.complete);
  CHECK(has(result.reason, "interrupted"));
  CHECK(result.fetched >= 10);
  CHECK(result.fetched < 31);
  cancel = false;
  c.options.on_progress = nullptr;
  result = c.must();
  CHECK(result.resumed);
  CHECK(result.complete);
  CHECK(result.fetched == 31);
  for (const auto& link : links) CHECK(c.site.hits("/docs/" + link) <= 2); // what was in flight may be asked again, no more
}
