// Each of the other formats: what a user's documentation looks like in it, and what happens to bad input.
#include "base/subprocess.hpp"
#include "page_helpers.hpp"
#include "tests/fixtures/skip.hpp"

#include <algorithm>
#include <chrono>

using namespace pragma;
using namespace pragma::test;

namespace {

/// One page of text in Courier, a line each; without the cross-reference table, which readers rebuild.
std::string pdf_of(const std::vector<std::vector<std::string>>& pages) {
  std::string kids, body;
  int object = 4;
  for (const auto& lines : pages) {
    std::string content = "BT /F1 10 Tf 12 TL 40 800 Td\n";
    for (const auto& line : lines) content += "(" + line + ") Tj T*\n";
    content += "ET";
    kids += std::to_string(object) + " 0 R ";
    body += std::to_string(object) +
            " 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents " +
            std::to_string(object + 1) + " 0 R >>\nendobj\n";
    body += std::to_string(object + 1) + " 0 obj\n<< /Length " + std::to_string(content.size()) + " >>\nstream\n" + content +
            "\nendstream\nendobj\n";
    object += 2;
  }
  return "%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [" + kids + "] /Count " +
         std::to_string(pages.size()) + " >>\nendobj\n3 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>\nendobj\n" +
         body + "trailer\n<< /Root 1 0 R >>\n%%EOF\n";
}

bool installed(const std::string& program, const char* package) {
  if (!find_program(program).empty()) return true;
  pragma::test::skip(std::string(program) + " is not installed (package " + package + ")");
  return false;
}

} // namespace

TEST_CASE("the format of a page: by the server's type, by the name where that says little, by the first bytes last") {
  struct example { const char *url, *type, *bytes; page_format format; };
  const example all[] = {
      {"https://h/x", "text/html; charset=utf-8", "", page_format::html},
      {"https://h/x.md", "text/html", "", page_format::html},
      {"https://h/x.md", "text/plain; charset=utf-8", "# Title", page_format::markdown},
      {"https://h/x.rst?raw=1", "text/plain", "Title\n=====", page_format::rst},
      {"https://h/_sources/x.rst.txt", "text/plain", "Title\n=====", page_format::rst},
      {"https://h/x.pdf", "application/octet-stream", "%PDF-1.4", page_format::pdf},
      {"https://h/events.json", "text/plain", "[{}]", page_format::json_catalogue},
      {"https://h/x.json.gz", "application/octet-stream", "\x1f\x8b", page_format::json_catalogue},
      {"https://h/x.csv", "", "a,b", page_format::csv_catalogue},
      {"https://h/x.yaml", "text/plain", "a: b", page_format::yaml_catalogue},
      {"file:///usr/share/man/man1/perf-stat.1.gz", "", "\x1f\x8b", page_format::man},
      {"man:perf-stat.1", "", ".TH", page_format::man},
      {"file:///x/tool.1", "", ".TH TOOL 1", page_format::man},
      {"https://h/release-1.3", "", "Release notes", page_format::text},
      {"https://h/x", "", "<!DOCTYPE html><p>", page_format::html},
      {"https://h/x", "", "{\"Events\": []}", page_format::json_catalogue},
      {"https://h/x", "", "==PROF== Connected\n", page_format::csv_catalogue},
      {"https://h/x", "", "Just words.", page_format::text},
      {"https://h/x.html", "", "\x89PNG\r\n\x1a\n", page_format::html},
      {"https://h/x.png", "image/png", "", page_format::unknown},
      {"https://h/x.js", "text/plain", "var x;", page_format::unknown},
      {"https://h/x.js", "application/javascript", "", page_format::unknown},
  };
  for (const auto& e : all) {
    INFO(e.url << " " << e.type);
    CHECK(std::string(name(format_of(e.url, e.type, e.bytes))) == name(e.format));
  }
  CHECK(format_of("https://h/x.html", "", std::string_view("\x89PNG\0\0", 6)) == page_format::unknown);
  const auto e = refused(page_format::unknown, "x");
  CHECK(e.code == ec::unsupported);
  CHECK(contains(e.message, "https://docs.example/guide/page.html"));
}

TEST_CASE("Markdown: tables, both kinds of headings, GitHub's anchors, HTML inside") {
  const auto d = parsed(page_format::markdown, data_file("counters.md"), "https://h/repo/docs/counters.md");
  CHECK(d.title == "Counters of the example");
  REQUIRE(d.links.size() == 1);
  CHECK(d.links[0].target == "https://h/repo/docs/other.md");
  std::vector<std::string> anchors;
  for (const auto& b : d.blocks)
    if (b.what == block::type::heading) anchors.push_back(b.anchor);
  CHECK(anchors == std::vector<std::string>{"counters", "cache-counters", "cache-counters-1"});
  CHECK(find_block(d, block::type::list_item, "code_cycles"));
  CHECK(find_block(d, block::type::code, "EX_L2_MISS 17"));
  const auto all = cut(d);
  REQUIRE(find_record(all, "EX_L2_STALL"));
  CHECK(find_record(all, "EX_L2_STALL")->record.unit == "cycles");
  CHECK(find_record(all, "EX_L2_STALL")->anchor == "cache-counters");
  REQUIRE(find_record(all, "EX_RAW_HITS"));
  CHECK(find_record(all, "EX_RAW_HITS")->record.description == "Written as HTML inside Markdown.");
  CHECK(parsed(page_format::markdown, "# What's `new` in C++?").blocks.at(0).anchor == "whats-new-in-c");
}

TEST_CASE("Markdown whose link definitions unfold to gigabytes is cut") {
  const auto start = std::chrono::steady_clock::now();
  std::string bomb = "[a]: https://h/" + std::string(100'000, 'x') + "\n\n";
  for (int i = 0; i < 100'000; ++i) bomb += "[a] ";
  const auto d = parsed(page_format::markdown, bomb);
  REQUIRE_FALSE(d.notes.empty());
  CHECK(contains(d.notes.back(), "expand"));
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 60);
}

TEST_CASE("a man page: title, definitions as records, links to other pages") {
  if (!installed("mandoc", "mandoc")) return;
  const auto d = parsed(page_format::man, data_file("example.1"), "man:example.1");
  CHECK(contains(d.title, "EXAMPLE(1)"));
  CHECK(contains(d.title, "counts things"));
  const auto all = cut(d);
  REQUIRE(find_record(all, "EX_L2_MISS"));
  CHECK(find_record(all, "EX_L2_MISS")->kind == "definition");
  CHECK(find_record(all, "EX_L2_MISS")->record.description == "Lines that the second level did not have.");
  REQUIRE(find_record(all, "--verbose"));
  CHECK(find_record(all, "--verbose")->record.kind == "option");
  CHECK(std::any_of(d.links.begin(), d.links.end(), [](const auto& l) { return l.target == "man:perf-stat.1"; }));

  const auto alias = parsed(page_format::man, ".so man1/perf-stat.1\n", "man:perf-alias.1");
  CHECK(alias.blocks.empty());
  REQUIRE(alias.links.size() == 1);
  CHECK(alias.links[0].target == "man:perf-stat.1");
  // Files elsewhere are not read into the page.
  const auto spy = parsed(page_format::man, ".TH X 1\n.SH NAME\nx \\- y\n.so /etc/passwd\n.so ../../../etc/passwd\n");
  CHECK_FALSE(contains(text_of(spy), "root:"));
}

TEST_CASE("a man page of this machine, compressed as it lies there") {
  const std::string file = "/usr/share/man/man1/perf-stat.1.gz";
  auto bytes = read_file(file);
  if (!bytes || !installed("mandoc", "mandoc")) {
    pragma::test::skip(std::string(file) + " is not there");
    return;
  }
  CHECK(format_of("man:perf-stat.1", "", *bytes) == page_format::man);
  const auto d = parsed(page_format::man, *bytes, "man:perf-stat.1");
  CHECK(contains(d.title, "PERF-STAT(1)"));
  // AsciiDoc's pages have no lists of definitions in their markup; the terms are found by their shape.
  const auto* option = find_block(d, block::type::definition, "--detailed");
  REQUIRE(option);
  CHECK(contains(option->text, "detailed"));
  CHECK(find_block(d, block::type::heading, "OPTIONS")->anchor == "OPTIONS");
  CHECK(cut(d, "perf").size() > 10);
  const auto cut_off = parse_page(page_format::man, std::string_view(*bytes).substr(0, bytes->size() / 2), "man:perf-stat.1", {});
  REQUIRE_FALSE(cut_off);
  CHECK(cut_off.error().code == ec::parse_error);
}

TEST_CASE("a PDF: headings, paragraphs, tables; anchors are pages; running titles are gone") {
  if (!installed("pdftotext", "poppler-utils")) return;
  std::vector<std::vector<std::string>> pages;
  const char* const units[] = {"", "one", "two", "three", "four", "five"};
  for (int i = 1; i <= 5; ++i)
    pages.push_back({"Example manual", "", std::to_string(i) + ".1 Counters of unit " + units[i], "",
                     "This paragraph tells about the coun-", "ters of one unit.", "", "Event              Unit       Description",
                     "EX_UNIT" + std::to_string(i) + "_MISS      lines      Lines that were not there",
                     "EX_UNIT" + std::to_string(i) + "_STALL     cycles     Cycles of waiting", "", "Page " + std::to_string(i)});
  const auto d = parsed(page_format::pdf, pdf_of(pages), "https://h/manual.pdf");
  const auto* heading = find_block(d, block::type::heading, "Counters of unit two");
  REQUIRE(heading);
  CHECK(heading->level == 2);
  CHECK(heading->anchor == "page=2");
  CHECK(find_block(d, block::type::paragraph, "about the counters of one unit."));
  CHECK_FALSE(contains(text_of(d), "Example manual"));
  CHECK_FALSE(contains(text_of(d), "Page 3"));
  const auto all = cut(d);
  REQUIRE(find_record(all, "EX_UNIT3_STALL"));
  CHECK(find_record(all, "EX_UNIT3_STALL")->record.unit == "cycles");
  CHECK(find_record(all, "EX_UNIT3_STALL")->record.description == "Cycles of waiting");
  CHECK(find_record(all, "EX_UNIT3_STALL")->anchor == "page=3");
}

TEST_CASE("what is no PDF, and a PDF without text, are refused by name") {
  CHECK(refused(page_format::pdf, "<html>not found</html>").code == ec::parse_error);
  if (!installed("pdftotext", "poppler-utils")) return;
  CHECK(refused(page_format::pdf, "%PDF-1.4\nrubbish").code == ec::tool_failed);
  CHECK(refused(page_format::pdf, pdf_of({{}})).code == ec::unsupported);
}

TEST_CASE("reStructuredText: sections, five kinds of tables, directives, definitions") {
  const auto d = parsed(page_format::rst, data_file("counters.rst"), "https://h/_sources/counters.rst.txt");
  CHECK(d.title == "Counters");
  CHECK(find_block(d, block::type::heading, "Counters")->anchor == "top-label");
  CHECK(find_block(d, block::type::heading, "Cache counters")->anchor == "cache-counters");
  CHECK(find_block(d, block::type::heading, "Cache counters")->level == 2);
  CHECK(find_block(d, block::type::heading, "Sub section")->anchor == "cache-section");
  CHECK(find_block(d, block::type::heading, "Sub section")->level == 3);
  CHECK(find_block(d, block::type::paragraph, "Some words with literal_code, a link and another page."));
  CHECK(find_block(d, block::type::paragraph, "Counting needs a recent kernel."));
  CHECK_FALSE(contains(text_of(d), "a comment"));
  CHECK(find_block(d, block::type::code, "$ example --count EX_L2_MISS"));
  CHECK(find_block(d, block::type::definition, "--count <name>")->text == "Counts that event.");
  const auto all = cut(d);
  for (const auto* metric : {"EX_L2_MISS", "EX_L2_STALL", "EX_CSV_HITS", "EX_GRID_ONE", "EX_GRID_TWO", "EX_SIMPLE_ONE",
                             "EX_SIMPLE_TWO", "EX_DESCRIBED", "EX_DEFINED"}) {
    INFO(metric);
    REQUIRE(find_record(all, metric));
    CHECK_FALSE(find_record(all, metric)->record.description.empty());
    CHECK(find_record(all, metric)->anchor == "cache-section");
  }
  CHECK(find_record(all, "EX_L2_MISS")->record.description == "Lines that the second level did not have.");
  CHECK(find_record(all, "EX_CSV_HITS")->record.description == "Lines found, with a comma");
  CHECK(find_record(all, "EX_GRID_ONE")->record.description == "A cell over two lines");
  CHECK(find_record(all, "EX_SIMPLE_ONE")->record.description == "A simple row that goes on");
  std::vector<std::string> targets;
  for (const auto& l : d.links) targets.push_back(l.target);
  CHECK(targets == std::vector<std::string>{"https://docs.example/x.html", "https://h/_sources/chapter-one.rst.txt",
                                            "https://h/_sources/chapter-two.rst.txt"});
}

TEST_CASE("reStructuredText nested without end, and markup that never closes") {
  const auto start = std::chrono::steady_clock::now();
  std::string deep, stars;
  for (int i = 0; i < 400; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "- item\n\n";
  CHECK(contains(text_of(parsed(page_format::rst, deep)), "item"));
  for (int i = 0; i < 200'000; ++i) stars += " *a `b :c:`d ``e |f";
  CHECK(contains(text_of(parsed(page_format::rst, stars)), "*a"));
  CHECK(parsed(page_format::rst, "::\n\n  code only\n").blocks.size() == 1);
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 60);
}

TEST_CASE("plain text: paragraphs and indented listings") {
  const auto d = parsed(page_format::text, "First line\nsecond line.\n\n  $ indented\n  more\n\nLast.");
  REQUIRE(d.blocks.size() == 3);
  CHECK(d.blocks[0].text == "First line second line.");
  CHECK(d.blocks[1].what == block::type::code);
}
