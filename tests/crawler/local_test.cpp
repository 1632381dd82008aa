// Documentation on disk goes through the same loop: files, folders, manual pages; what lies outside stays outside.
#include "crawl_fixture.hpp"

#include "crawler/local.hpp"

#include <filesystem>
#include <fstream>

#include <sys/stat.h>

using namespace pragma;
using namespace pragma::test;

namespace fs = std::filesystem;

namespace {

struct local_case {
  temp_dir folder;
  test_store store;
  doc_source source;
  crawl_options options;
  crawl_parts parts = plain_parts();

  local_case() : folder(*temp_dir::create("pragma-docs-")) {
    source.profiler = "tool";
    source.docs = {(folder.path() / "html").string()};
    write("html/index.html", "<title>index</title><p>index</p><a href=\"sub/a.html\">a</a><a href=\"missing.html\">m</a><a href=\"../outside.html\">o</a>");
    write("html/sub/a.html", "<p>a</p>");
    write("html/unlinked.html", "<p>unlinked</p>");
    write("html/notes.md", "plain words");
    write("html/picture.png", "png");
    write("html/.hidden.html", "<p>hidden</p>");
    write("html/.git/x.html", "<p>hidden</p>");
    write("html/a b#c.html", "<p>odd name</p>");
    write("outside.html", "<p>outside</p>");
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((folder.path() / name).parent_path());
    std::ofstream(folder.path() / name, std::ios::binary) << text;
  }
  std::string url(const std::string& name) const { return file_url((folder.path() / name).string()).text(); }
  crawl_result must() {
    auto result = crawl_with(source, store, options, parts);
    INFO((result ? std::string() : render(result.error())));
    REQUIRE(result);
    return *result;
  }
  page_record page(const std::string& name) const {
    const auto found = store.records.find(name.find(':') == std::string::npos ? url(name) : name);
    page_record none;
    none.reason = "no record of " + name;
    return found == store.records.end() ? none : found->second;
  }
};

const unsigned char packed_hello[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 0x86, 0xa6, 0x10, 0x36, 5, 0, 0, 0};
const std::string packed(reinterpret_cast<const char*>(packed_hello), sizeof packed_hello);

} // namespace

TEST_CASE("a folder is read as a whole, again only where files changed") {
  local_case c;
  c.options.offline = true; // local documentation needs no network
  auto result = c.must();
  INFO(result);
  CHECK(result.complete);
  CHECK(result.fetched == 5);
  for (const char* name : {"html/index.html", "html/sub/a.html", "html/unlinked.html", "html/notes.md", "html/a b#c.html"}) {
    INFO(name);
    CHECK(c.page(name).state == page_state::fetched);
  }
  CHECK(c.page("html/picture.png").state == page_state::excluded);
  CHECK(has(c.page("html/picture.png").reason, ".png"));
  CHECK(c.store.records.count(c.url("html/.hidden.html")) == 0);
  CHECK(c.page("html/missing.html").state == page_state::gone);
  CHECK(c.page("outside.html").state == page_state::excluded);

  c.store.rewritten = 0;
  c.write("html/sub/a.html", "<p>edited</p>");
  c.write("html/new.html", "<p>new</p>");
  fs::remove(c.folder.path() / "html/unlinked.html");
  result = c.must();
  INFO(result);
  CHECK(result.fetched == 2);
  CHECK(result.unchanged == 3);
  CHECK(c.page("html/unlinked.html").state == page_state::gone);
  CHECK(c.store.segments.at(c.url("html/unlinked.html")).empty());
  CHECK(c.store.rewritten == 2);

  // The whole folder is away (not mounted): nothing is thrown away.
  fs::rename(c.folder.path() / "html", c.folder.path() / "moved");
  result = c.must();
  CHECK(has(result.reason, "root"));
  CHECK_FALSE(c.store.segments.at(c.url("html/index.html")).empty());
}

TEST_CASE("no symbolic link leads out of a folder") {
  local_case c;
  fs::create_symlink("/etc/passwd", c.folder.path() / "html/passwd.html");
  fs::create_symlink("../outside.html", c.folder.path() / "html/up.html");
  fs::create_symlink("sub/a.html", c.folder.path() / "html/inside-link.html");
  fs::create_directory_symlink("/etc", c.folder.path() / "html/etc");
  c.write("html/index.html", "<p>index</p><a href=\"etc/hostname.html\">x</a><a href=\"etc/passwd\">x</a><a href=\"sub\">x</a>");
  c.must();
  CHECK(c.page("html/passwd.html").state == page_state::excluded);
  CHECK(has(c.page("html/passwd.html").reason, "symbolic link"));
  CHECK(has(c.page("html/up.html").reason, "symbolic link"));
  CHECK(c.page("html/etc/passwd").state == page_state::excluded);
  CHECK(c.page("html/sub").state == page_state::excluded);
  CHECK(has(c.page("html/sub").reason, "folder"));
  // Inside it is the same page twice.
  const auto a = c.page("html/sub/a.html"), b = c.page("html/inside-link.html");
  CHECK((a.state == page_state::fetched) != (b.state == page_state::fetched));
  for (const auto& [url, segments] : c.store.segments)
    for (const auto& s : segments) CHECK_FALSE(has(s.text, "root:"));
  // The folder itself may be a link: the user named it.
  fs::create_directory_symlink(c.folder.path() / "html", c.folder.path() / "by-link");
  c.source.docs = {(c.folder.path() / "by-link").string()};
  c.must();
  CHECK(c.page("by-link/notes.md").state == page_state::fetched);
}

TEST_CASE("a file, a device and a pipe as roots") {
  local_case c;
  REQUIRE(::mkfifo((c.folder.path() / "pipe.html").c_str(), 0600) == 0);
  c.source.docs = {(c.folder.path() / "html/index.html").string(), (c.folder.path() / "pipe.html").string(), "/dev/zero", "/nonexistent/x.html"};
  const auto result = c.must();
  CHECK(c.page("html/index.html").state == page_state::fetched);
  CHECK(c.page("html/sub/a.html").state == page_state::fetched); // linked, in its folder
  CHECK(c.store.records.count(c.url("html/unlinked.html")) == 0);
  CHECK(has(c.page("pipe.html").reason, "not a regular file"));
  CHECK(has(c.page("file:///dev/zero").reason, "not a regular file"));
  CHECK(c.page("file:///nonexistent/x.html").state == page_state::failed);
  CHECK(has(result.reason, "/nonexistent/x.html"));
}

TEST_CASE("large and packed files") {
  local_case c;
  c.source.max_page_bytes = 10'000;
  c.write("html/large.html", std::string(20'000, 'x'));
  c.write("html/tool.1.gz", packed);
  std::string bomb = packed.substr(0, 10);
  static const unsigned char head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0xec, 0xc1, 1, 1, 0, 0, 0, 0x80, 0x90, 0xfe, 0xaf, 0xee, 8, 0x0a};
  bomb.assign(reinterpret_cast<const char*>(head), sizeof head);
  bomb.append(5000, '\0');
  c.write("html/bomb.1.gz", bomb);
  c.must();
  CHECK(c.page("html/large.html").reason == "longer than 9.8 KiB");
  CHECK(c.page("html/tool.1.gz").state == page_state::fetched);
  CHECK(c.store.segments.at(c.url("html/tool.1.gz")).at(0).text == "hello");
  CHECK(c.page("html/bomb.1.gz").state == page_state::failed);
  CHECK(has(c.page("html/bomb.1.gz").reason, "unpacks to more than"));
}

TEST_CASE("manual pages are found in the manual path, packed or not") {
  local_case c;
  c.write("man/man1/tool.1.gz", packed);
  c.write("man/man1/plain.1", "plain page");
  c.write("man/man1/alias.1", ".\\\" a comment\n.so man1/plain.1\n");
  c.write("man/man1/loop.1", ".so man1/loop.1\n");
  c.write("man/man1/escape.1", ".so ../../html/index.html\n");
  c.write("man/man5/conf.5", ".so absent.5\n");
  c.parts.man_path = {(c.folder.path() / "man").string()};
  c.source.docs = {"man:tool.1", "man:plain(1)", "man:alias.1", "man:loop.1", "man:escape.1", "man:conf.5", "man:absent.1"};
  const auto result = c.must();
  INFO(result);
  CHECK(c.store.segments.at("man:tool.1").at(0).text == "hello");
  CHECK(c.page("man:plain.1").state == page_state::excluded); // the same content as its alias, whose name is not longer
  CHECK(c.page("man:alias.1").state == page_state::fetched);
  CHECK(has(c.page("man:loop.1").reason, ".so lines"));
  CHECK(c.page("man:escape.1").state == page_state::fetched); // its own words: the line is not followed
  CHECK(has(c.page("man:conf.5").reason, "absent.5"));
  CHECK(c.page("man:absent.1").state == page_state::failed);
  CHECK(has(c.page("man:absent.1").reason, "is its package installed?"));
  CHECK(result.failed == 3);
}

TEST_CASE("a local page may lead to the web only where the user said so") {
  local_case c;
  site_server site;
  site.set("/docs/x.html", page_with("from the web"));
  c.write("html/index.html", "<p>index</p><a href=\"" + site.url("/docs/x.html") + "\">x</a>");
  c.must();
  CHECK(site.hits() == 0);
  CHECK(c.page(site.url("/docs/x.html")).state == page_state::excluded);
  c.source.docs.push_back(site.url("/docs/"));
  c.source.allow_private = true;
  c.source.delay_seconds = 0;
  c.must();
  CHECK(c.page(site.url("/docs/x.html")).state == page_state::fetched);
}
