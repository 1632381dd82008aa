// Servers that mean harm or are broken: what they do ends as a reason at their page, and nothing else.
#include "crawl_fixture.hpp"

#include "crawler/address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>

using namespace pragma;
using namespace pragma::test;

namespace {

uint16_t port_of(const sockaddr* address) { return ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port); }

/// The start of a gzip of zero bytes: a deflate block in which each further bit stands for 258 more of them.
std::string zeros(size_t packed_bytes) {
  static const unsigned char head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0xec, 0xc1, 1, 1, 0, 0, 0, 0x80, 0x90, 0xfe, 0xaf, 0xee, 8, 0x0a};
  std::string out(reinterpret_cast<const char*>(head), sizeof head);
  out.append(packed_bytes, '\0');
  return out;
}

double peak_mebibytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

} // namespace

TEST_CASE("a private address is not fetched unless the source allows it") {
  crawl_case c;
  c.source.allow_private = false;
  c.site.set("/docs/", page_with("secret"));
  const auto result = c.must();
  INFO(result);
  CHECK(result.failed == 1);
  CHECK(c.state("/docs/") == page_state::failed);
  CHECK(has(c.reason("/docs/"), "127.0.0.1 (loopback)"));
  CHECK(has(c.reason("/docs/"), "allow_private"));
  CHECK(c.site.hits() == 0);
  for (const char* host : {"localhost", "0x7f.1", "2130706433", "127.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"}) {
    INFO(host);
    c.source.docs = {"http://" + std::string(host) + ":" + std::to_string(c.site.port()) + "/docs/"};
    const auto refused = c.must();
    INFO(refused);
    CHECK(refused.fetched == 0);
    CHECK(refused.failed == 1);
    CHECK(c.site.hits() == 0);
  }
}

TEST_CASE("a name that resolves to a private address is refused at the connection: DNS rebinding gets nowhere") {
  crawl_case c;
  c.source.allow_private = false;
  c.source.docs = {"http://rebind.test:" + std::to_string(c.site.port()) + "/docs/"};
  c.parts.resolve = {"rebind.test:" + std::to_string(c.site.port()) + ":127.0.0.1"};
  c.site.set("/docs/", page_with("secret"));
  c.must();
  const auto page = c.page(c.source.docs[0]);
  CHECK(page.state == page_state::failed);
  CHECK(has(page.reason, "leads to 127.0.0.1 (loopback)"));
  CHECK(c.site.hits() == 0);
  // The same name is fetched where private addresses are allowed: it was the address that was refused.
  c.source.allow_private = true;
  c.must();
  CHECK(c.page(c.source.docs[0]).state == page_state::fetched);
}

TEST_CASE("neither redirects nor links nor robots.txt nor sitemaps lead from a public site to a private one") {
  crawl_case c;
  site_server inside;
  inside.otherwise([](const site_request&) -> std::optional<site_answer> { return page_with("secret"); });
  // To the crawl, the first server is public and all else is what it is.
  c.source.allow_private = false;
  const auto open_port = c.site.port();
  c.parts.special = [open_port](const sockaddr* a) { return port_of(a) == open_port ? std::string() : special_address(a); };
  c.source.allow = {"http://*"}; // the widest scope that a user can give
  c.site.set("/robots.txt", redirect(inside.url("/robots.txt")));
  c.site.set("/docs/", page_with("start", {"to-inside", "to-file", "to-ftp", inside.url("/link"), "file:///etc/passwd", "http://169.254.169.254/latest/meta-data/"}));
  c.site.set("/docs/to-inside", redirect(inside.url("/redirected")));
  c.site.set("/docs/to-file", redirect("file:///etc/passwd"));
  c.site.set("/docs/to-ftp", redirect("ftp://127.0.0.1/x"));
  c.site.set("/sitemap.xml", redirect(inside.url("/sitemap.xml")));
  c.parts.connect_seconds = 5;
  const auto result = c.must();
  INFO(result);
  CHECK(inside.hits() == 0);
  CHECK(c.state("/docs/") == page_state::fetched);
  CHECK(c.page(inside.url("/link")).state == page_state::failed);
  CHECK(has(c.page(inside.url("/link")).reason, "loopback"));
  CHECK(c.page(inside.url("/redirected")).state == page_state::failed);
  CHECK(c.page("http://169.254.169.254/latest/meta-data/").state == page_state::failed);
  CHECK(has(c.page("http://169.254.169.254/latest/meta-data/").reason, "link-local"));
  CHECK(c.state("/docs/to-file") == page_state::failed);
  CHECK(has(c.reason("/docs/to-file"), "local files"));
  CHECK(c.state("/docs/to-ftp") == page_state::failed);
  CHECK(has(c.reason("/docs/to-ftp"), "not followed"));
  CHECK(c.page("file:///etc/passwd").state == page_state::excluded);
  for (const auto& [url, segments] : c.store.segments)
    for (const auto& s : segments) CHECK(s.text != "secret");
}

TEST_CASE("allow_private opens the hosts that the user named, not those that a page picks") {
  crawl_case c;
  site_server inside;
  inside.otherwise([](const site_request&) -> std::optional<site_answer> { return page_with("secret"); });
  c.source.allow = {"http://*"};
  const auto picked = "http://localhost:" + std::to_string(inside.port()) + "/x";
  c.site.set("/docs/", page_with("start", {picked}));
  c.must();
  CHECK(c.state("/docs/") == page_state::fetched);
  CHECK(c.page(picked).state == page_state::failed);
  CHECK(inside.hits() == 0);
}

TEST_CASE("the environment's proxy is not asked") {
  crawl_case c;
  site_server proxy;
  ::setenv("http_proxy", proxy.url().c_str(), 1);
  ::setenv("ALL_PROXY", proxy.url().c_str(), 1);
  c.site.set("/docs/", page_with("start"));
  c.must();
  ::unsetenv("http_proxy");
  ::unsetenv("ALL_PROXY");
  CHECK(c.state("/docs/") == page_state::fetched);
  CHECK(proxy.hits() == 0);
}

TEST_CASE("redirects end after five, and circles are seen") {
  crawl_case c;
  c.site.set("/docs/", page_with("start", {"r?n=0", "circle-a", "self", "nowhere", "outside"}));
  c.site.otherwise([](const site_request& r) -> std::optional<site_answer> {
    if (!r.target.starts_with("/docs/r?n=")) return std::nullopt;
    return redirect("/docs/r?n=" + std::to_string(std::stoi(r.target.substr(10)) + 1));
  });
  c.site.set("/docs/circle-a", redirect("circle-b"));
  c.site.set("/docs/circle-b", redirect("circle-a"));
  c.site.set("/docs/self", redirect("self"));
  c.site.set("/docs/nowhere", redirect("http://user:password@h/"));
  c.site.set("/docs/outside", redirect("https://example.org/login"));
  const auto result = c.must();
  INFO(result);
  CHECK(result.complete);
  CHECK(c.site.hits("/docs/r?n=5") == 1);
  CHECK(c.site.hits("/docs/r?n=6") == 0);
  CHECK(c.state("/docs/r?n=5") == page_state::failed);
  CHECK(has(c.reason("/docs/r?n=5"), "more than 5 redirects"));
  CHECK((c.state("/docs/circle-a") == page_state::failed || c.state("/docs/circle-b") == page_state::failed));
  CHECK(c.site.hits("/docs/circle-a") == 1);
  CHECK(has(c.reason("/docs/self"), "itself"));
  CHECK(c.state("/docs/nowhere") == page_state::failed);
  CHECK_FALSE(has(c.reason("/docs/nowhere"), "password@"));
  CHECK(c.state("/docs/outside") == page_state::excluded);
  CHECK(has(c.reason("/docs/outside"), "outside the folder of every root"));

  crawl_case moved;
  moved.site.set("/docs/", redirect("https://www.example.org/docs/", 301));
  const auto nothing = moved.must();
  CHECK(nothing.fetched == 0);
  CHECK(has(nothing.reason, "make that a root"));
}

TEST_CASE("bodies are bounded after decompression: gzip bomb, 100 MB page, endless body") {
  crawl_case c;
  c.source.max_page_bytes = 1 << 20;
  c.site.set("/docs/", page_with("start", {"bomb.html", "large.html", "endless.html", "headers.html", "good.html"}));
  auto bomb = html(zeros(4 << 20)); // some 8 GiB
  bomb.headers = {{"Content-Encoding", "gzip"}};
  c.site.set("/docs/bomb.html", bomb);
  auto large = html(std::string(64 << 10, 'x'));
  large.endless = 100 << 20;
  large.headers = {{"Content-Length", std::to_string(100 << 20)}};
  c.site.set("/docs/large.html", large);
  auto endless = html(std::string(64 << 10, 'y'));
  endless.endless = 1ull << 40;
  c.site.set("/docs/endless.html", endless);
  auto headers = page_with("headers");
  for (int i = 0; i < 400; ++i) headers.headers.emplace_back("X-" + std::to_string(i), std::string(1000, 'h'));
  c.site.set("/docs/headers.html", headers);
  c.site.set("/docs/good.html", page_with("good"));
  const double before = peak_mebibytes();
  const auto result = c.must();
  INFO(result);
  CHECK(result.complete);
  CHECK(peak_mebibytes() - before < 60);
  for (const char* path : {"/docs/bomb.html", "/docs/large.html", "/docs/endless.html"}) {
    INFO(path);
    CHECK(c.state(path) == page_state::failed);
    CHECK(c.reason(path) == "longer than 1.0 MiB");
    CHECK(c.site.hits(path) == 1); // no use in trying again
  }
  CHECK(c.state("/docs/headers.html") == page_state::failed);
  CHECK(c.state("/docs/good.html") == page_state::fetched);
}

TEST_CASE("a host that is not there, hangs or speaks something else fails with what happened, soon") {
  crawl_case c;
  uint16_t free_port = 0;
  {
    site_server gone;
    free_port = gone.port();
  }
  c.source.docs = {"http://127.0.0.1:" + std::to_string(free_port) + "/a", "http://no-such-host.invalid/b"};
  c.parts.connect_seconds = 2;
  auto result = c.must();
  INFO(result);
  CHECK(result.failed == 2);
  CHECK(has(c.page(c.source.docs[0]).reason, "host not reachable"));
  CHECK(has(c.page(c.source.docs[1]).reason, "host not reachable"));
  CHECK(has(result.reason, "host not reachable"));

  crawl_case slow;
  site_answer hang;
  hang.hang = true;
  slow.site.set("/docs/", page_with("start", {"hang.html", "b.html"}));
  slow.site.set("/docs/hang.html", hang);
  slow.site.set("/docs/b.html", page_with("b"));
  slow.parts.transfer_seconds = 0.2;
  result = slow.must();
  CHECK(result.complete);
  CHECK(slow.state("/docs/hang.html") == page_state::failed);
  CHECK(has(slow.reason("/docs/hang.html"), "no complete answer"));
  CHECK(slow.state("/docs/b.html") == page_state::fetched);
}

TEST_CASE("many pages of a dead host do not take many timeouts") {
  crawl_case c;
  std::vector<std::string> links;
  for (int i = 0; i < 50; ++i) links.push_back("p" + std::to_string(i) + ".html");
  c.site.set("/docs/", page_with("start", links));
  c.site.otherwise([](const site_request& r) -> std::optional<site_answer> {
    return r.target.starts_with("/docs/") ? std::optional(page_with(r.target)) : std::nullopt;
  });
  c.must();
  int connections = 0;
  c.source.allow_private = false; // ask the address check, which counts and lets nothing through
  c.parts.resolve = {"127.0.0.1:" + std::to_string(c.site.port()) + ":127.0.0.1"};
  c.parts.special = [&](const sockaddr*) {
    ++connections;
    return std::string("closed for the test");
  };
  const auto result = c.must();
  CHECK(result.failed == 51);
  CHECK(connections <= 3);
  CHECK(result.segments == 51); // all kept
}

TEST_CASE("each status has its state and its reason") {
  crawl_case c;
  std::vector<std::string> links;
  for (const int status : {204, 401, 403, 404, 410, 418, 451, 500}) {
    links.push_back(std::to_string(status));
    c.site.set("/docs/" + std::to_string(status), with_status(status));
  }
  links.push_back("image");
  auto image = html(std::string(1 << 20, 'i'));
  image.type = "image/png";
  c.site.set("/docs/image", image);
  links.push_back("octets");
  auto octets = html("\x7f""ELF");
  octets.type = "application/octet-stream";
  c.site.set("/docs/octets", octets);
  c.site.set("/docs/", page_with("start", links));
  c.must();
  CHECK(c.reason("/docs/403") == "HTTP 403 (forbidden)");
  CHECK(c.state("/docs/403") == page_state::failed);
  CHECK(c.state("/docs/401") == page_state::failed);
  CHECK(c.state("/docs/404") == page_state::gone);
  CHECK(c.state("/docs/410") == page_state::gone);
  CHECK(c.state("/docs/204") == page_state::failed);
  CHECK(c.reason("/docs/500") == "HTTP 500 (server error); asked 3 times");
  CHECK(c.state("/docs/image") == page_state::excluded);
  CHECK(has(c.reason("/docs/image"), "image/png"));
  CHECK(c.state("/docs/octets") == page_state::excluded);
  CHECK(has(c.reason("/docs/octets"), "no parser"));
  for (const auto& [url, record] : c.store.records) {
    INFO(url);
    CHECK(record.state != page_state::queued);
    CHECK((record.state == page_state::fetched || !record.reason.empty()));
  }
}

TEST_CASE("a site without end is cut, whatever it names") {
  crawl_case c;
  c.source.max_pages = 30;
  c.source.max_depth = 1000;
  c.site.otherwise([](const site_request& r) -> std::optional<site_answer> {
    if (!r.target.starts_with("/docs/")) return std::nullopt;
    std::vector<std::string> links;
    for (int i = 0; i < 3000; ++i) links.push_back("/docs/" + std::to_string(std::hash<std::string>{}(r.target) % 100'000) + "/" + std::to_string(i));
    for (int i = 0; i < 3000; ++i) links.push_back("http://other" + std::to_string(i) + ".example/" + r.target);
    return page_with(r.target, links);
  });
  const auto result = c.must();
  CHECK_FALSE(result.complete);
  CHECK(result.fetched == 30);
  CHECK(c.store.records.size() < 35'000);
}

TEST_CASE("a validator that a server made up cannot put lines into our request") {
  crawl_case c;
  auto odd = page_with("odd");
  odd.etag = "\"a\tb\x01\xff\"";
  odd.modified = std::string(5000, 'm');
  c.site.set("/docs/", odd);
  c.must();
  CHECK(c.page("/docs/").etag.empty());
  CHECK(c.page("/docs/").last_modified.empty());
  // Also when the store was given one by another hand.
  c.store.records[c.site.url("/docs/")].etag = "\"x\"\r\nX-Injected: yes";
  c.site.forget();
  c.must();
  for (const auto& r : c.site.requests()) CHECK(r.header("x-injected").empty());
  CHECK(c.state("/docs/") == page_state::unchanged);
}
