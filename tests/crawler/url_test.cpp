// Addresses, scope, robots.txt, sitemaps, network addresses, statuses: the parts of the crawl that need no network.
#include "crawler/address.hpp"
#include "crawler/gunzip.hpp"
#include "crawler/outcome.hpp"
#include "crawler/robots.hpp"
#include "crawler/scope.hpp"
#include "crawler/sitemap.hpp"
#include "crawler/url.hpp"

#include <catch2/catch.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>

using namespace pragma;

namespace {

std::string normal(std::string_view text) {
  auto url = parse_url(text);
  return url ? url->text() : "error: " + url.error().message;
}

std::string resolved(std::string_view base, std::string_view reference) {
  auto from = parse_url(base);
  if (!from) return "bad base";
  auto to = resolve_url(*from, reference);
  return to ? to->text() + (to->fragment.empty() ? "" : "#" + to->fragment) : "error: " + to.error().message;
}

std::string kind_of(const std::string& text) {
  sockaddr_in6 six{};
  sockaddr_in four{};
  if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    return special_address(reinterpret_cast<const sockaddr*>(&four));
  }
  if (::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) != 1) return "not an address";
  six.sin6_family = AF_INET6;
  return special_address(reinterpret_cast<const sockaddr*>(&six));
}

std::string refused_by(const doc_source& source, std::string_view url) {
  auto scope = crawl_scope::from(source);
  if (!scope) return "error: " + scope.error().message;
  auto parsed = parse_url(url);
  return parsed ? scope->refused(*parsed) : "error: " + parsed.error().message;
}

} // namespace

TEST_CASE("an address has one written form") {
  CHECK(normal("HTTP://Example.COM:80") == "http://example.com/");
  CHECK(normal("https://example.com:443/a/./b/../c") == "https://example.com/a/c");
  CHECK(normal("https://example.com:8443/a") == "https://example.com:8443/a");
  CHECK(normal("http://h/%7euser/%2e%2e/x%2fy") == "http://h/x%2Fy");
  CHECK(normal("http://h/a b?c d#frag") == "http://h/a%20b?c%20d");
  CHECK(normal(" http://h/a\nb\t ") == "http://h/ab");
  CHECK(normal("http://h/../../..") == "http://h/");
  CHECK(normal("http://h/%zz%4") == "http://h/%25zz%254");
  CHECK(normal("http://h?q=1") == "http://h/?q=1");
  CHECK(normal("http://h/x?") == "http://h/x");
  CHECK(normal("http:\\\\h\\a\\b") == "http://h/a/b");
  CHECK(normal("http://h./x") == "http://h/x");
  CHECK(normal("http://[::1]:8080/x") == "http://[::1]:8080/x");
  CHECK(normal("http://[0:0:0:0:0:0:0:1]/") == "http://[::1]/");
  CHECK(normal("http://h/\xc3\xa4") == "http://h/%C3%A4");
  CHECK(normal("file:///usr/share/doc/a%20b.html#x") == "file:///usr/share/doc/a%20b.html");
  CHECK(normal("file://localhost/a?b") == "file:///a");
  CHECK(normal("man:perf-stat(1)") == "man:perf-stat.1");
  CHECK(normal("man:CA.pl.1ssl") == "man:CA.pl.1ssl");
  // Normalising twice changes nothing: the store's key is found again.
  for (const char* text : {"http://h/a%2Fb/%25zz?x=%20&y=%41#z", "file:///a%3Fb%23c", "https://[2001:db8::1]/x;y=1"})
    CHECK(normal(normal(text)) == normal(text));
}

TEST_CASE("what is no address of a page is refused") {
  for (const char* text : {"", "x", "/docs/", "http:/h/x", "http://", "http:///x", "http://h:0/", "http://h:99999/", "http://h:8x/", "http://[::1/",
                           "http://[1.2.3.4]/", "http://user@h/", "http://user:secret@h/", "http://h\xc3\xa4.de/", "http://h%2e/", "http://.h/",
                           "file://other/etc/passwd", "man:", "man:../../x.1", "man:perf", "man:-x.1", "javascript:alert(1)", "mailto:a@b", "ftp://h/x",
                           "data:text/html,x", "gopher://h/", "about:blank"}) {
    INFO(text);
    CHECK_FALSE(parse_url(text));
  }
  CHECK(parse_url("ftp://h/x").error().code == ec::unsupported);
  CHECK_FALSE(parse_url("http://h/" + std::string(5000, 'x')));
  CHECK(parse_url("http://user:secret@h/").error().message.find("secret") == std::string::npos);
}

TEST_CASE("references are resolved as RFC 3986 says") {
  const std::string base = "http://a/b/c/d;p?q";
  CHECK(resolved(base, "g") == "http://a/b/c/g");
  CHECK(resolved(base, "./g") == "http://a/b/c/g");
  CHECK(resolved(base, "g/") == "http://a/b/c/g/");
  CHECK(resolved(base, "/g") == "http://a/g");
  CHECK(resolved(base, "//g") == "http://g/");
  CHECK(resolved(base, "?y") == "http://a/b/c/d;p?y");
  CHECK(resolved(base, "g?y#s") == "http://a/b/c/g?y#s");
  CHECK(resolved(base, "#s") == "http://a/b/c/d;p?q#s");
  CHECK(resolved(base, "") == "http://a/b/c/d;p?q");
  CHECK(resolved(base, "..") == "http://a/b/");
  CHECK(resolved(base, "../../../g") == "http://a/g");
  CHECK(resolved(base, "g/./h/../i") == "http://a/b/c/g/i");
  CHECK(resolved(base, "https://x/y") == "https://x/y");
  CHECK(resolved("file:///a/b.html", "c.html#d") == "file:///a/c.html#d");
  CHECK(resolved("file:///a/b.html", "../../../etc/passwd") == "file:///etc/passwd"); // and then the scope refuses it
  CHECK(resolved(base, "\\\\evil/x") == "http://evil/x");
}

TEST_CASE("a path becomes a file address and back") {
  const std::string path = "/tmp/a b#c?d%e/\xc3\xa4.html";
  const auto url = file_url(path);
  CHECK(*file_path(url) == path);
  CHECK(normal(url.text()) == url.text());
  CHECK_FALSE(file_path(*parse_url("file:///a%00b")));
  CHECK(parse_root("/usr/share/doc/")->text() == "file:///usr/share/doc");
  CHECK(parse_root("man:ls.1")->text() == "man:ls.1");
  CHECK_FALSE(parse_root("  "));
  CHECK_FALSE(parse_root("ftp://h/x"));
}

TEST_CASE("only addresses of the public Internet are public") {
  for (const char* text : {"8.8.8.8", "93.184.216.34", "172.15.0.1", "172.32.0.1", "100.63.255.255", "100.128.0.0", "169.253.1.1", "223.255.255.255",
                           "192.0.1.1", "198.20.0.1", "2606:2800:220:1::1", "2a00:1450:4001::1", "2400::1"})
    CHECK(kind_of(text) == "");
  CHECK(kind_of("127.0.0.1") == "loopback");
  CHECK(kind_of("127.255.255.255") == "loopback");
  CHECK(kind_of("10.1.2.3") == "private");
  CHECK(kind_of("172.16.0.1") == "private");
  CHECK(kind_of("172.31.255.255") == "private");
  CHECK(kind_of("192.168.0.1") == "private");
  CHECK(kind_of("169.254.169.254") == "link-local"); // clouds keep their secrets there
  CHECK(kind_of("100.64.0.1") == "carrier-grade NAT");
  CHECK(kind_of("0.0.0.0") == "unspecified");
  CHECK(kind_of("224.0.0.1") == "multicast");
  CHECK(kind_of("255.255.255.255") == "reserved");
  CHECK(kind_of("192.0.2.5") == "documentation");
  CHECK(kind_of("198.19.255.255") == "benchmarking");
  CHECK(kind_of("::1") == "loopback");
  CHECK(kind_of("::") == "unspecified");
  CHECK(kind_of("::ffff:8.8.8.8") == "IPv4-mapped");
  CHECK(kind_of("::ffff:127.0.0.1") == "IPv4-mapped");
  CHECK(kind_of("::127.0.0.1") == "IPv4-compatible");
  CHECK(kind_of("64:ff9b::7f00:1") == "NAT64");
  CHECK(kind_of("64:ff9b:1::1") == "NAT64");
  CHECK(kind_of("2002:7f00:1::1") == "6to4");
  CHECK(kind_of("2001::1") == "Teredo");
  CHECK(kind_of("2001:db8::1") == "documentation");
  CHECK(kind_of("fc00::1") == "unique local");
  CHECK(kind_of("fd12::1") == "unique local");
  CHECK(kind_of("fe80::1") == "link-local");
  CHECK(kind_of("febf::1") == "link-local");
  CHECK(kind_of("fec0::1") == "site-local");
  CHECK(kind_of("ff02::1") == "multicast");
  CHECK(kind_of("4000::1") == "reserved");
  sockaddr other{};
  other.sa_family = AF_UNIX;
  CHECK_FALSE(special_address(&other).empty());
}

TEST_CASE("patterns match all of a text, quickly") {
  CHECK(glob_match("*", ""));
  CHECK(glob_match("/docs/*", "/docs/a/b"));
  CHECK_FALSE(glob_match("/docs/*", "/doc/a"));
  CHECK(glob_match("*.html", "/a.html"));
  CHECK_FALSE(glob_match("*.html", "/a.htm"));
  CHECK(glob_match("a*b*c", "a-b-b-c"));
  CHECK_FALSE(glob_match("a*b*c", "a-c-b"));
  CHECK(glob_match("", ""));
  CHECK_FALSE(glob_match("", "a"));
  std::string stars;
  for (int i = 0; i < 200; ++i) stars += "*a";
  CHECK_FALSE(glob_match(stars + "b", std::string(4000, 'a')));
}

TEST_CASE("without patterns the scope is the folder of each root") {
  doc_source source;
  source.profiler = "p";
  source.docs = {"https://docs.x.com/guide/index.html", "https://y.com/manual", "man:perf-stat.1"};
  CHECK(refused_by(source, "https://docs.x.com/guide/a/b.html") == "");
  CHECK(refused_by(source, "http://docs.x.com/guide/a") == "");
  CHECK(refused_by(source, "https://docs.x.com/other") == "outside the folder of every root");
  CHECK(refused_by(source, "https://x.com/guide/a") != "");
  CHECK(refused_by(source, "https://docs.x.com:8443/guide/a") != "");
  CHECK(refused_by(source, "https://docs.x.com/guide/../x") != "");
  CHECK(refused_by(source, "https://docs.x.com/guidebook") != "");
  CHECK(refused_by(source, "https://y.com/manual") == "");
  CHECK(refused_by(source, "https://y.com/manual/a") == "");
  CHECK(refused_by(source, "https://y.com/manual2") != "");
  CHECK(refused_by(source, "https://y.com/") != "");
  CHECK(refused_by(source, "man:perf-stat.1") == "");
  CHECK(refused_by(source, "man:perf-record.1") != "");
  CHECK(refused_by(source, "file:///etc/passwd") != "");
}

TEST_CASE("allow widens, deny wins, and a path pattern never reaches another host") {
  doc_source source;
  source.profiler = "p";
  source.docs = {"https://x.com/a/"};
  source.allow = {"/b/*", "https://z.com/k/", "man:perf-*"};
  source.deny = {"*draft*"};
  CHECK(refused_by(source, "https://x.com/b/1") == "");
  CHECK(refused_by(source, "https://x.com/a/") == "");
  CHECK(refused_by(source, "https://x.com/a/1").find("fits no allow pattern") == 0);
  CHECK(refused_by(source, "https://evil.com/b/1") != "");
  CHECK(refused_by(source, "https://z.com/k/1/2") == "");
  CHECK(refused_by(source, "man:perf-record.1") == "");
  CHECK(refused_by(source, "https://x.com/b/draft-1") == "denied by the pattern '*draft*'");
  source.allow = {"*"};
  CHECK(refused_by(source, "https://evil.com/") != "");
  CHECK(refused_by(source, "file:///etc/hosts") != "");
  source.docs = {};
  CHECK(refused_by(source, "https://x.com/").find("no documentation root") != std::string::npos);
  source.docs = {"http://"};
  CHECK(refused_by(source, "https://x.com/").find("error: documentation root") == 0);
  source.docs = {"https://x.com/"};
  source.deny = {" "};
  CHECK(refused_by(source, "https://x.com/").find("empty") != std::string::npos);
}

TEST_CASE("pages that waste the budget are named and left out, except as roots") {
  doc_source source;
  source.profiler = "p";
  source.docs = {"https://x.com/licenses/news/"};
  const std::string base = "https://x.com/licenses/news/"; // in the root's own path such words don't count
  for (const char* page : {"", "index.html", "metrics.html", "register-pressure.html", "a/changing.html", "researcher.html", "cache.html", "gplot.html",
                           "storage.html", "logins_per_second.html", "counters.json", "guide.pdf", "page.php?id=3", "legalize.html"})
    CHECK(refused_by(source, base + page) == "");
  const std::vector<std::pair<const char*, const char*>> left_out = {
      {"license.html", "licence page"},      {"dist/LICENSE", "licence page"},         {"license.gpl.html", "licence page"},
      {"copyright/x.html", "licence page"},  {"dist.news.html", "news page"},          {"release-notes/2024.html", "release notes"},
      {"ReleaseNotes.html", "release notes"}, {"changelog.html", "release notes"},     {"search.html", "search page"},
      {"find?q=a", "search page"},           {"login", "login page"},                  {"genindex.html", "generated index"},
      {"genindex-A.html", "generated index"}, {"_sources/a.rst.txt", "source listing"}, {"a.png", "binary"},
      {"a/b.TAR.GZ", "binary"},              {"x.css", "binary"},                      {"w?title=A&action=edit", "wiki action"}};
  for (const auto& [page, rule] : left_out) {
    INFO(page);
    CHECK(refused_by(source, base + page).find(std::string("built-in rule: ") + rule) == 0);
  }
  source.docs = {"https://x.com/release-notes.html"};
  CHECK(refused_by(source, "https://x.com/release-notes.html") == "");
}

TEST_CASE("robots.txt: groups, longest match, wildcards") {
  const auto refused = [](std::string_view text, std::string_view path) { return !robots_rules::parse(text).refused(path).empty(); };
  CHECK(refused("User-agent: *\nDisallow: /", "/x"));
  CHECK_FALSE(refused("User-agent: *\nDisallow:", "/x"));
  CHECK_FALSE(refused("", "/x"));
  CHECK_FALSE(refused("User-agent: other\nDisallow: /", "/x"));
  CHECK_FALSE(refused("User-agent: *\nDisallow: /\n\nUser-agent: Pragma/1.0\nDisallow: /private", "/x")); // the group that names us
  CHECK(refused("User-agent: *\nDisallow:\nUser-agent: pragma\nUser-agent: b\nDisallow: /private", "/private/x"));
  CHECK(refused("user-agent: PRAGMA\ndisallow: /a\nuser-agent: c\ndisallow: /c\nuser-agent: pragma\ndisallow: /b", "/b")); // groups are joined
  CHECK_FALSE(refused("User-agent: pragmatic\nDisallow: /", "/x"));
  CHECK_FALSE(refused("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c"));
  CHECK(refused("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/c"));
  CHECK_FALSE(refused("User-agent: *\nDisallow: /a\nAllow: /a", "/a")); // equal: allowed
  CHECK(refused("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf"));
  CHECK_FALSE(refused("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf?z"));
  CHECK(refused("User-agent: *\nDisallow: /a*b*c", "/a1b2c3"));
  CHECK_FALSE(refused("User-agent: *\nDisallow: /a*b*c", "/a1c2b3"));
  CHECK(refused("User-agent: *\nDisallow: /x$", "/x"));
  CHECK_FALSE(refused("User-agent: *\nDisallow: /x$", "/xy"));
  CHECK(refused("User-agent: *\nDisallow: /search?", "/search?q=1"));
  CHECK(refused("User-agent: *\nDisallow: /a%3cd", "/a%3Cd"));
  CHECK(refused("User-agent: *\nDisallow: /%7Ea", "/~a"));
  CHECK(refused("\xEF\xBB\xBFUser-agent: *\r\nDisallow: /x # why\r\n", "/x"));
  CHECK(refused("User-agent: *\rDisallow: /x\r", "/x"));
  CHECK_FALSE(refused("Disallow: /x", "/x")); // belongs to no group
  CHECK_FALSE(refused("User-agent: *\nDisallow: /", "/robots.txt"));
  CHECK(refused("User-agent: *\nSitemap: http://h/s\nDisallow: /x", "/x")); // a sitemap line does not end the agents
  CHECK(robots_rules::parse("User-agent: *\nDisallow: /x").refused("/x") == "robots.txt: Disallow: /x");
}

TEST_CASE("robots.txt: delay, sitemaps, statuses, size") {
  const auto rules = robots_rules::parse("Sitemap: http://h/a.xml\nUser-agent: *\nCrawl-delay: 2.5\nsitemap: http://h/b.xml");
  CHECK(rules.crawl_delay() == 2.5);
  CHECK(rules.sitemaps() == std::vector<std::string>{"http://h/a.xml", "http://h/b.xml"});
  CHECK(robots_rules::parse("User-agent: *\nCrawl-delay: -1").crawl_delay() == 0);
  CHECK(robots_rules::parse("User-agent: *\nCrawl-delay: 1e300").crawl_delay() <= 86400);
  CHECK(robots_rules::of_status(404, "User-agent: *\nDisallow: /").refused("/x").empty());
  CHECK(robots_rules::of_status(403, "").refused("/x").empty());
  CHECK(robots_rules::of_status(503, "").refused("/x").find("HTTP 503") != std::string::npos);
  CHECK_FALSE(robots_rules::of_status(429, "").unavailable().empty());
  std::string large = "User-agent: *\nDisallow: /early\n";
  large += std::string(600 << 10, '#') + "\nDisallow: /late\n";
  CHECK_FALSE(robots_rules::parse(large).refused("/early").empty());
  CHECK(robots_rules::parse(large).refused("/late").empty());
  std::string hostile = "User-agent: *\n";
  for (int i = 0; i < 2000; ++i) hostile += "Disallow: /*a*a*a*a*a*a*a*a*a*a*b\n";
  CHECK(robots_rules::parse(hostile).refused("/" + std::string(2000, 'a')).empty());
}

TEST_CASE("sitemaps: pages, indexes, lists") {
  auto map = parse_sitemap("\n<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:i=\"urn:i\"><url><loc> http://h/a?b=1&amp;c=2 </loc>"
                           "<lastmod>2024-05-01</lastmod><i:image><i:loc>http://h/p.png</i:loc></i:image></url><url><loc><![CDATA[http://h/b]]></loc></url></urlset>");
  REQUIRE(map);
  CHECK_FALSE(map->index);
  REQUIRE(map->entries.size() == 2);
  CHECK(map->entries[0].url == "http://h/a?b=1&c=2");
  CHECK(map->entries[0].modified == "2024-05-01");
  CHECK(map->entries[1].url == "http://h/b");
  auto index = parse_sitemap("<sitemapindex><sitemap><loc>http://h/1.xml.gz</loc></sitemap></sitemapindex>");
  REQUIRE(index);
  CHECK(index->index);
  auto list = parse_sitemap("http://h/a\r\n\r\nhttps://h/b\n");
  REQUIRE(list);
  CHECK(list->entries.size() == 2);
  auto cut = parse_sitemap("<urlset><url><loc>http://h/a</loc></url><url><loc>http://h/");
  REQUIRE(cut);
  CHECK(cut->entries.size() == 1);
  CHECK(cut->truncated);
}

TEST_CASE("what is no sitemap, or a dangerous one, is refused") {
  for (const char* text : {"", "hello", "<html><body>404</body></html>", "<!DOCTYPE html><html>", "<urlset", "{\"a\": 1}"}) CHECK_FALSE(parse_sitemap(text));
  const std::string bomb = "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;\">]>"
                           "<urlset><url><loc>http://h/&c;</loc></url></urlset>";
  CHECK_FALSE(parse_sitemap(bomb));
  const std::string file = "<!DOCTYPE x [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><urlset><url><loc>http://h/&a;</loc></url></urlset>";
  CHECK_FALSE(parse_sitemap(file));
  // The same in UTF-16, where the word is not seen in the bytes.
  std::string wide = "\xFF\xFE";
  for (const char c : file) {
    wide += c;
    wide += '\0';
  }
  auto read = parse_sitemap(wide);
  CHECK((!read || read->entries.empty() || read->entries[0].url.find("root:") == std::string::npos));
  CHECK_FALSE(read);
}

TEST_CASE("gzip is unpacked with a bound") {
  static const unsigned char hello[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 0x86, 0xa6, 0x10, 0x36, 5, 0, 0, 0};
  const std::string packed(reinterpret_cast<const char*>(hello), sizeof hello);
  REQUIRE(gunzip(packed, 100));
  CHECK(*gunzip(packed, 100) == "hello");
  CHECK(*gunzip(packed, 5) == "hello");
  CHECK(gunzip(packed, 4).error().code == ec::limit_exceeded);
  CHECK(*gunzip(packed + packed, 100) == "hellohello");
  CHECK(*gunzip(packed + std::string(20, '\0'), 100) == "hello");
  CHECK(gunzip(packed.substr(0, 15), 100).error().code == ec::parse_error);
  CHECK(gunzip("\x1f\x8b nonsense", 100).error().code == ec::parse_error);
  CHECK_FALSE(gunzip("", 100));
}

TEST_CASE("each status has its meaning") {
  using kind = page_outcome::kind;
  const auto judged = [](int status, bool conditional = false, http_headers headers = {}) {
    transfer_result r;
    r.end = transfer_end::answered;
    r.response.status = status;
    r.response.headers = std::move(headers);
    return judge(r, conditional);
  };
  CHECK(judged(200).what == kind::page);
  CHECK(judged(304, true).what == kind::unchanged);
  CHECK(judged(304, false).what == kind::failed);
  CHECK(judged(404).what == kind::gone);
  CHECK(judged(410).what == kind::gone);
  for (const int status : {401, 403, 451, 204, 206, 418, 501, 999}) CHECK(judged(status).what == kind::failed);
  for (const int status : {408, 425, 429, 500, 502, 503, 504}) CHECK(judged(status).what == kind::retry);
  CHECK(judged(301).what == kind::failed); // without Location
  CHECK(judged(308, false, {{"location", "/x"}}).target == "/x");
  CHECK(judged(429, false, {{"retry-after", "7"}}).wait_seconds == 7);
  CHECK(judged(403).reason == "HTTP 403 (forbidden)");
}
