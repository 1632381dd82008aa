// crawl() as users have it, with the real parsers, on a real manual: Debian's of Valgrind, served over HTTP and read from disk.
#include "crawl_fixture.hpp"
#include "tests/fixtures/skip.hpp"

#include <filesystem>

using namespace pragma;
using namespace pragma::test;

namespace {

const std::filesystem::path manual = "/usr/share/doc/valgrind/html";

void serve(site_server& site) {
  for (const auto& file : std::filesystem::directory_iterator(manual))
    if (file.path().extension() == ".html")
      if (auto text = read_file(file.path())) site.set("/vg/" + file.path().filename().string(), html(*text));
}

} // namespace

TEST_CASE("Valgrind's manual over HTTP: read once, and after an edit only that page again") {
  if (!std::filesystem::exists(manual / "cg-manual.html")) {
    pragma::test::skip("no Valgrind manual (package valgrind)");
    return;
  }
  crawl_case c;
  serve(c.site);
  c.source.docs = {c.site.url("/vg/index.html")};
  auto first = crawl(c.source, c.store, c.options);
  REQUIRE(first);
  INFO(*first);
  CHECK(first->complete);
  CHECK(first->fetched > 20);
  CHECK(first->failed == 0);
  CHECK(first->segments > 400);
  CHECK(c.state("/vg/cg-manual.html") == page_state::fetched);
  CHECK(has(c.page("/vg/cg-manual.html").title, "Cachegrind"));
  CHECK(c.state("/vg/dist.news.html") == page_state::excluded);
  bool cited = false;
  for (const auto& s : c.store.segments.at(c.site.url("/vg/cg-manual.html"))) cited = cited || (!s.anchor.empty() && has(s.text, "Bcm"));
  CHECK(cited);

  auto text = read_file(manual / "lk-manual.html");
  REQUIRE(text);
  const auto at = text->find("Lackey is");
  REQUIRE(at != std::string::npos);
  text->insert(at, "Edited for a test. ");
  c.site.set("/vg/lk-manual.html", html(*text));
  c.store.rewritten = 0;
  auto second = crawl(c.source, c.store, c.options);
  REQUIRE(second);
  INFO(*second);
  CHECK(second->fetched == 1);
  CHECK(second->unchanged == first->fetched - 1);
  CHECK(c.store.rewritten == c.segments("/vg/lk-manual.html"));
  CHECK(second->gone == 0);

  // The same from disk, without any network.
  test_store local;
  c.source.docs = {manual.string()};
  c.options.offline = true;
  auto read = crawl(c.source, local, c.options);
  REQUIRE(read);
  CHECK(read->fetched >= first->fetched);
  CHECK(read->failed == 0);
}
