// What a user sees of a crawl of a web site: which pages are read, what is asked again, what each address ends as.
#include "crawl_fixture.hpp"

using namespace pragma;
using namespace pragma::test;

TEST_CASE("a small site is read, each page once, and every address ends in a state") {
  crawl_case c;
  c.site.set("/docs/", page_with("start", {"a.html", "a.html#x", "b.html", "/docs/c.html", "../outside.html", "https://example.org/", "mailto:x@y", "pic.png"}));
  c.site.set("/docs/a.html", page_with("page a", {"b.html", "license.html"}));
  c.site.set("/docs/b.html", page_with("page b", {"./"}));
  c.site.set("/docs/c.html", page_with("page c"));
  const auto result = c.must();
  INFO(result);
  CHECK(result.complete);
  CHECK(result.generation == 1);
  CHECK_FALSE(result.resumed);
  CHECK(result.fetched == 4);
  CHECK(result.segments == 4);
  CHECK(result.failed == 0);
  CHECK(result.excluded == 4); // outside.html, example.org, pic.png, license.html
  for (const char* path : {"/docs/", "/docs/a.html", "/docs/b.html", "/docs/c.html"}) {
    INFO(path);
    CHECK(c.state(path) == page_state::fetched);
    CHECK(c.site.hits(path) == 1);
    CHECK(c.segments(path) == 1);
    CHECK(c.reason(path).empty());
  }
  CHECK(c.page("/docs/a.html").title == "page a");
  CHECK(c.page("/docs/a.html").from == c.site.url("/docs/"));
  CHECK(c.page("/docs/a.html").depth == 1);
  CHECK(c.page("/docs/a.html").charset == "utf-8");
  CHECK(c.page("/docs/a.html").status == 200);
  CHECK(c.reason("/outside.html") == "outside the folder of every root");
  CHECK(has(c.reason("/docs/license.html"), "licence page"));
  CHECK(has(c.reason("/docs/pic.png"), "binary"));
  CHECK(c.state("https://example.org/") == page_state::excluded);
  CHECK(c.site.hits("/outside.html") == 0);
  CHECK(c.site.hits("/docs/pic.png") == 0);
  CHECK(c.store.state.at("complete") == true);
  CHECK(c.site.requests().at(0).target == "/robots.txt");
  CHECK(has(c.site.requests().at(0).header("user-agent"), "pragma/"));
}

TEST_CASE("a second crawl asks only whether pages changed") {
  crawl_case c;
  auto start = page_with("start", {"etag.html", "dated.html", "plain.html", "edited.html", "removed.html", "dropped.html"});
  start.etag = "\"s1\"";
  auto etag = page_with("etag");
  etag.etag = "\"e1\"";
  auto dated = page_with("dated", {"below.html"});
  dated.modified = "Mon, 06 Jan 2025 10:00:00 GMT";
  c.site.set("/docs/", start);
  c.site.set("/docs/etag.html", etag);
  c.site.set("/docs/dated.html", dated);
  c.site.set("/docs/plain.html", page_with("plain"));
  c.site.set("/docs/edited.html", page_with("before"));
  c.site.set("/docs/removed.html", page_with("removed"));
  c.site.set("/docs/dropped.html", page_with("dropped"));
  c.site.set("/docs/below.html", page_with("below"));
  CHECK(c.must().fetched == 8);
  const auto first_read = c.page("/docs/plain.html").fetched;
  c.site.forget();
  c.store.rewritten = 0;

  c.site.set("/docs/edited.html", page_with("after"));
  c.site.remove("/docs/removed.html");
  const auto again = c.must();
  INFO(again);
  CHECK(again.generation == 2);
  CHECK(again.complete);
  CHECK(again.fetched == 1);
  CHECK(again.unchanged == 6);
  CHECK(again.gone == 1);
  CHECK(c.site.not_modified() == 3);
  CHECK(c.state("/docs/etag.html") == page_state::unchanged);
  CHECK(c.state("/docs/dated.html") == page_state::unchanged);
  CHECK(c.state("/docs/plain.html") == page_state::unchanged); // 200, but the same bytes
  CHECK(c.page("/docs/plain.html").fetched == first_read);
  CHECK(c.state("/docs/below.html") == page_state::unchanged); // named only by a page that sent no body
  CHECK(c.store.segments.at(c.site.url("/docs/edited.html")).at(0).text == "after");
  CHECK(c.state("/docs/removed.html") == page_state::gone);
  CHECK(has(c.reason("/docs/removed.html"), "404"));
  CHECK(c.segments("/docs/removed.html") == 0);
  CHECK(c.store.rewritten == 1); // only what changed is summarised again

  // Named by no page any more: gone, although the server still has it.
  c.site.set("/docs/", page_with("start", {"etag.html", "dated.html", "plain.html", "edited.html"}));
  const auto third = c.must();
  INFO(third);
  CHECK(c.state("/docs/dropped.html") == page_state::gone);
  CHECK(has(c.reason("/docs/dropped.html"), "no longer linked"));
  CHECK(c.segments("/docs/dropped.html") == 0);
  CHECK(c.state("/docs/below.html") == page_state::unchanged);

  // And back again.
  c.site.set("/docs/", page_with("start", {"etag.html", "dated.html", "plain.html", "edited.html", "dropped.html"}));
  c.must();
  CHECK(c.state("/docs/dropped.html") == page_state::fetched);
  CHECK(c.segments("/docs/dropped.html") == 1);
}

TEST_CASE("a page that failed keeps what was read of it, and what it led to") {
  crawl_case c;
  c.site.set("/docs/", page_with("start", {"a.html"}));
  c.site.set("/docs/a.html", page_with("a", {"b.html"}));
  c.site.set("/docs/b.html", page_with("b"));
  c.must();
  for (const auto& broken : {with_status(500), with_status(403), html("PARSE-ERROR")}) {
    c.site.set("/docs/a.html", broken);
    const auto result = c.must();
    INFO(result);
    CHECK(result.complete);
    CHECK(result.failed == 1);
    CHECK(c.state("/docs/a.html") == page_state::failed);
    CHECK_FALSE(c.reason("/docs/a.html").empty());
    CHECK(c.segments("/docs/a.html") == 1);
    CHECK(c.page("/docs/a.html").segments == 1);
    CHECK(c.state("/docs/b.html") == page_state::unchanged);
  }
  c.site.set("/docs/a.html", page_with("a", {"b.html"}));
  CHECK(c.must().unchanged == 3);
}

TEST_CASE("when a root fails nothing that was known is thrown away") {
  crawl_case c;
  c.site.set("/docs/", page_with("start", {"a.html"}));
  c.site.set("/docs/a.html", page_with("a"));
  c.must();
  c.site.set("/docs/", with_status(404));
  const auto result = c.must();
  INFO(result);
  CHECK(result.complete);
  CHECK(has(result.reason, "HTTP 404"));
  CHECK(has(result.reason, "1 page known from earlier kept"));
  CHECK(c.state("/docs/") == page_state::gone);
  CHECK(c.segments("/docs/a.html") == 1);
  CHECK(c.page("/docs/a.html").state != page_state::gone);
}

TEST_CASE("robots.txt is asked first and honoured, unless the source says otherwise") {
  crawl_case c;
  auto robots = html("User-agent: *\nDisallow: /docs/private\nAllow: /docs/private/open\n");
  robots.type = "text/plain";
  c.site.set("/robots.txt", robots);
  c.site.set("/docs/", page_with("start", {"private/a.html", "private/open.html", "b.html"}));
  for (const char* page : {"/docs/private/a.html", "/docs/private/open.html", "/docs/b.html"}) c.site.set(page, page_with(page));
  c.must();
  CHECK(c.state("/docs/private/a.html") == page_state::excluded);
  CHECK(c.reason("/docs/private/a.html") == "robots.txt: Disallow: /docs/private");
  CHECK(c.site.hits("/docs/private/a.html") == 0);
  CHECK(c.state("/docs/private/open.html") == page_state::fetched);
  CHECK(c.site.hits("/robots.txt") == 1);

  c.source.robots = false;
  c.site.forget();
  c.must();
  CHECK(c.state("/docs/private/a.html") == page_state::fetched);
  CHECK(c.site.hits("/robots.txt") == 0);

  // Disallowed later: what was read is removed.
  c.source.robots = true;
  c.must();
  CHECK(c.state("/docs/private/a.html") == page_state::excluded);
  CHECK(c.segments("/docs/private/a.html") == 0);
}

TEST_CASE("a robots.txt that cannot be had for now stops the host, and keeps what is known") {
  crawl_case c;
  c.site.set("/docs/", page_with("start"));
  c.must();
  c.site.set("/robots.txt", with_status(503));
  const auto result = c.must();
  INFO(result);
  CHECK(c.state("/docs/") == page_state::failed);
  CHECK(has(c.reason("/docs/"), "robots.txt answered HTTP 503"));
  CHECK(c.segments("/docs/") == 1);
  c.site.set("/robots.txt", with_status(403)); // no rules for anybody
  CHECK(c.must().unchanged == 1);
}

TEST_CASE("robots.txt may be behind a redirect") {
  crawl_case c;
  c.site.set("/robots.txt", redirect("/r/robots.txt"));
  c.site.set("/r/robots.txt", html("User-agent: *\nDisallow: /docs/x"));
  c.site.set("/docs/", page_with("start", {"x"}));
  c.site.set("/docs/x", page_with("x"));
  c.must();
  CHECK(c.state("/docs/x") == page_state::excluded);
  c.site.set("/robots.txt", redirect("/robots.txt")); // a circle is as good as none
  c.must();
  CHECK(c.state("/docs/x") == page_state::fetched);
}

TEST_CASE("pages may ask not to be indexed or followed") {
  crawl_case c;
  c.site.set("/docs/", page_with("start", {"noindex.html", "nofollow.html", "header.html", "other.html"}));
  c.site.set("/docs/noindex.html", html("<meta name=robots content=\"noindex\"><a href=\"behind.html\">x</a><p>x</p>"));
  c.site.set("/docs/behind.html", page_with("behind"));
  c.site.set("/docs/nofollow.html", html("<meta name=robots content=\"index,nofollow\"><a href=\"never.html\">x</a><p>y</p>"));
  auto header = page_with("by header");
  header.headers = {{"X-Robots-Tag", "googlebot: nofollow"}, {"X-Robots-Tag", "noindex"}};
  c.site.set("/docs/header.html", header);
  auto other = page_with("for others");
  other.headers = {{"X-Robots-Tag", "googlebot: noindex"}};
  c.site.set("/docs/other.html", other);
  c.must();
  CHECK(c.state("/docs/noindex.html") == page_state::excluded);
  CHECK(has(c.reason("/docs/noindex.html"), "not to index"));
  CHECK(c.state("/docs/behind.html") == page_state::fetched);
  CHECK(c.state("/docs/nofollow.html") == page_state::fetched);
  CHECK(c.store.records.count(c.site.url("/docs/never.html")) == 0);
  CHECK(c.state("/docs/header.html") == page_state::excluded);
  CHECK(c.state("/docs/other.html") == page_state::fetched);
  c.must();
  CHECK(c.state("/docs/behind.html") == page_state::unchanged);
}

TEST_CASE("sitemaps give pages that no link names, within the scope") {
  crawl_case c;
  c.site.set("/robots.txt", html("Sitemap: " + c.site.url("/index.xml") + "\nSitemap: http://elsewhere.example/sitemap.xml\nSitemap: file:///etc/passwd\nSitemap: " +
                                 c.site.url("/broken.xml") + "\n"));
  c.site.set("/index.xml", html("<sitemapindex><sitemap><loc>" + c.site.url("/pages.xml") + "</loc></sitemap><sitemap><loc>http://169.254.169.254/latest</loc></sitemap></sitemapindex>"));
  c.site.set("/pages.xml", html("<urlset><url><loc>" + c.site.url("/docs/hidden.html") + "</loc></url><url><loc>" + c.site.url("/other/x.html") +
                                "</loc></url><url><loc>http://elsewhere.example/docs/y.html</loc></url><url><loc>file:///etc/shadow</loc></url></urlset>"));
  c.site.set("/broken.xml", html("<html>not a sitemap</html>"));
  c.site.set("/docs/", page_with("start"));
  c.site.set("/docs/hidden.html", page_with("hidden"));
  const auto result = c.must();
  INFO(result);
  CHECK(c.state("/docs/hidden.html") == page_state::fetched);
  CHECK(c.page("/docs/hidden.html").from == c.site.url("/pages.xml"));
  CHECK(c.state("/other/x.html") == page_state::excluded);
  CHECK(c.state("http://elsewhere.example/docs/y.html") == page_state::excluded);
  CHECK(has(c.reason("http://elsewhere.example/sitemap.xml"), "another host"));
  CHECK(has(c.reason("http://169.254.169.254/latest"), "another host"));
  CHECK(has(c.reason("file:///etc/passwd"), "local file"));
  CHECK(has(c.reason("file:///etc/shadow"), "local files"));
  CHECK(c.state("/broken.xml") == page_state::failed);
  CHECK(has(c.reason("/broken.xml"), "no sitemap"));
  c.must();
  CHECK(c.state("/docs/hidden.html") == page_state::unchanged);
}

TEST_CASE("a sitemap that fails for now takes no page away") {
  crawl_case c;
  const auto map = html("<urlset><url><loc>" + c.site.url("/docs/hidden.html") + "</loc></url></urlset>");
  c.site.set("/sitemap.xml", map);
  c.site.set("/docs/", page_with("start"));
  c.site.set("/docs/hidden.html", page_with("hidden"));
  c.must();
  c.site.set("/sitemap.xml", with_status(500));
  const auto result = c.must();
  CHECK(has(result.reason, "sitemap"));
  CHECK(c.segments("/docs/hidden.html") == 1);
  CHECK(c.state("/docs/hidden.html") != page_state::gone);
  c.site.remove("/sitemap.xml"); // there is none any more
  c.must();
  CHECK(c.state("/docs/hidden.html") == page_state::gone);
}

TEST_CASE("/sitemap.xml is tried where robots.txt names none, and its dates spare requests") {
  crawl_case c;
  c.site.set("/sitemap.xml", html("<urlset><url><loc>" + c.site.url("/docs/old.html") + "</loc><lastmod>2020-01-01</lastmod></url><url><loc>" +
                                  c.site.url("/docs/new.html") + "</loc><lastmod>2999-01-01</lastmod></url></urlset>"));
  c.site.set("/docs/", page_with("start"));
  c.site.set("/docs/old.html", page_with("old"));
  c.site.set("/docs/new.html", page_with("new"));
  CHECK(c.must().fetched == 3);
  c.site.forget();
  CHECK(c.must().unchanged == 3);
  CHECK(c.site.hits("/docs/old.html") == 0);
  CHECK(c.site.hits("/docs/new.html") == 1);
}

TEST_CASE("packed pages and packed sitemaps are read") {
  crawl_case c;
  site_answer map = html(gzip_of("<urlset><url><loc>" + c.site.url("/docs/packed.html") + "</loc></url></urlset>"));
  map.type = "application/gzip"; // a file that is packed, not an encoding of the transfer
  c.site.set("/robots.txt", html("Sitemap: " + c.site.url("/sitemap.xml.gz")));
  c.site.set("/sitemap.xml.gz", map);
  c.site.set("/docs/", page_with("start"));
  auto packed = page_with(std::string(50'000, 'p'));
  const auto size = packed.body.size();
  packed.body = gzip_of(packed.body);
  packed.headers = {{"Content-Encoding", "gzip"}};
  c.site.set("/docs/packed.html", packed);
  c.must();
  CHECK(c.state("/docs/packed.html") == page_state::fetched);
  CHECK(c.page("/docs/packed.html").bytes == size);
  CHECK(c.store.segments.at(c.site.url("/docs/packed.html")).at(0).text.size() == 50'000);
}

TEST_CASE("a redirect makes its target the page") {
  crawl_case c;
  c.source.docs = {c.site.url("/docs")};
  c.site.set("/docs", redirect("/docs/", 301));
  c.site.set("/docs/", page_with("start", {"old.html", "older.html", "new.html"}));
  c.site.set("/docs/old.html", redirect("new.html", 308));
  c.site.set("/docs/older.html", redirect("old.html", 302));
  c.site.set("/docs/new.html", page_with("new"));
  const auto result = c.must();
  INFO(result);
  CHECK(result.complete);
  CHECK(result.reason.empty()); // the root is answered by what it leads to
  CHECK(c.state("/docs") == page_state::excluded);
  CHECK(c.page("/docs").final_url == c.site.url("/docs/"));
  CHECK(c.state("/docs/") == page_state::fetched);
  CHECK(c.page("/docs/").depth == 0);
  CHECK(c.page("/docs/older.html").final_url == c.site.url("/docs/old.html"));
  CHECK(has(c.reason("/docs/old.html"), "HTTP 308 to " + c.site.url("/docs/new.html")));
  CHECK(c.site.hits("/docs/new.html") == 1);
  CHECK(c.segments("/docs/new.html") == 1);
  const auto again = c.must();
  CHECK(again.unchanged == 2);
  CHECK(again.gone == 0);
}

TEST_CASE("two addresses with the same content count once, whichever answers first") {
  for (const bool index_first : {false, true}) {
    crawl_case c;
    c.options.connections = c.options.per_host = 1;
    c.source.docs = {c.site.url(index_first ? "/docs/index.html" : "/docs/")};
    const auto start = page_with("start", {"./", "index.html", "a.html"});
    c.site.set("/docs/", start);
    c.site.set("/docs/index.html", start);
    c.site.set("/docs/a.html", page_with("a"));
    const auto result = c.must();
    INFO(result);
    CHECK(result.reason.empty());
    CHECK(c.state("/docs/") == page_state::fetched);
    CHECK(c.segments("/docs/") == 1);
    CHECK(c.state("/docs/index.html") == page_state::excluded);
    CHECK(c.reason("/docs/index.html") == "same content as " + c.site.url("/docs/"));
    CHECK(c.segments("/docs/index.html") == 0);
    CHECK(result.segments == 2);
    const auto again = c.must();
    CHECK(again.segments == 2);
    CHECK(again.gone == 0);
    CHECK(c.state("/docs/index.html") == page_state::excluded);
    // The better address goes away: the other has to be read in full.
    c.site.set("/docs/", with_status(404));
    c.site.set("/docs/a.html", page_with("a2", {"index.html"}));
    c.source.docs = {c.site.url("/docs/a.html")};
    c.must();
    CHECK(c.state("/docs/index.html") == page_state::fetched);
    CHECK(c.segments("/docs/index.html") == 1);
  }
}

TEST_CASE("links are followed as deep as the shortest way says") {
  crawl_case c;
  c.source.max_depth = 2;
  // The long way to `deep` is walked first: the short way's page answers only when the long one was read.
  c.site.set("/docs/", page_with("start", {"a.html", "slow.html"}));
  c.site.set("/docs/a.html", page_with("a", {"b.html"}));
  c.site.set("/docs/b.html", page_with("b", {"deep.html"}));
  c.site.set("/docs/slow.html", page_with("slow", {"deep.html"}));
  c.site.set("/docs/deep.html", page_with("deep", {"too-deep.html"}));
  c.site.otherwise([](const site_request&) -> std::optional<site_answer> { return page_with("other"); });
  c.site.script("/docs/slow.html", {with_status(503)});
  c.parts.retry_seconds = 0.4;
  c.must();
  CHECK(c.page("/docs/deep.html").depth == 2);
  CHECK(c.state("/docs/deep.html") == page_state::fetched);
  CHECK(c.state("/docs/too-deep.html") == page_state::excluded);
  CHECK(has(c.reason("/docs/too-deep.html"), "more than 2 links"));
}

TEST_CASE("Retry-After is honoured, and the whole host waits") {
  crawl_case c;
  c.site.set("/docs/", page_with("start", {"a.html", "b.html"}));
  c.site.set("/docs/a.html", page_with("a"));
  c.site.set("/docs/b.html", page_with("b"));
  c.site.script("/docs/", {with_status(429, {{"Retry-After", "1"}})});
  c.must();
  CHECK(c.state("/docs/") == page_state::fetched);
  std::vector<std::chrono::steady_clock::time_point> times;
  for (const auto& r : c.site.requests())
    if (r.target == "/docs/") times.push_back(r.at);
  REQUIRE(times.size() == 2);
  CHECK(std::chrono::duration<double>(times[1] - times[0]).count() >= 0.95);

  c.site.script("/docs/a.html", {with_status(503, {{"Retry-After", "86400"}})});
  c.must();
  CHECK(c.state("/docs/a.html") == page_state::failed);
  CHECK(has(c.reason("/docs/a.html"), "asks to wait"));
}

TEST_CASE("passing trouble is tried again, lasting trouble is a reason") {
  crawl_case c;
  c.site.set("/docs/", page_with("start", {"shaky.html", "down.html"}));
  site_answer reset;
  reset.reset = true;
  auto torn = page_with(std::string(5000, 't'));
  torn.truncate = true;
  c.site.script("/docs/shaky.html", {torn, reset});
  c.site.set("/docs/shaky.html", page_with("shaky"));
  c.site.set("/docs/down.html", with_status(502));
  const auto result = c.must();
  CHECK(c.state("/docs/shaky.html") == page_state::fetched);
  CHECK(c.site.hits("/docs/down.html") == 3);
  CHECK(c.reason("/docs/down.html") == "HTTP 502 (bad gateway); asked 3 times");
  CHECK(result.failed == 1);
}
